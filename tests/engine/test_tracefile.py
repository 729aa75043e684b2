"""The trace file: round trips, same bytes for same content, a refusal for everything a stranger may send."""

from __future__ import annotations

import io
import json
import os
import struct
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.settings import Refusal
from engine.trace import Trace, codec
from engine.trace import file as tracefile
from engine.trace.file import Header, Lens, TraceFile
from engine.trace.looks import Looks
from engine.words import say
from tests.engine.traces import FACTS, run, traces

HEADER = Header("open-book", "Open book 开卷", "2026-12-01T09:00:00+00:00", True, Lens(1, None), "a laptop", "00ff")
HEADER_VALUES = json.loads(
    '{"format": "open-book-exam trace", "version": 2, "id": "x", "title": "", "created": "2026-12-01"}'
)


def looks(rows: int, prompt: int = 3) -> Looks:
    """Numbers without meaning in the form of looks, each at some prompt token."""
    random = np.random.default_rng(0)
    weights = np.sort(random.integers(0, 8000, (rows, FACTS.layers, FACTS.heads + 1, 8), np.uint16), axis=-1)[..., ::-1]
    return Looks(random.integers(0, prompt, weights.shape, np.uint16), weights)


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def members(**header: Any) -> dict[str, bytes]:
    """The members of a small good file; its header with other values."""
    lines = b"".join(codec.to_json(event) + b"\n" for event in run([0.5]).events)
    return {"header.json": json.dumps(HEADER_VALUES | header).encode(), "events.jsonl": lines}


def refusal(data: bytes) -> Refusal:
    with pytest.raises(Refusal) as refused:
        tracefile.read(data)
    for lang in ("en", "zh"):
        assert say(f"errors.{refused.value.code}", lang, **refused.value.values)
    return refused.value


def measured(data: bytes) -> tuple[Refusal, int]:
    """The refusal, and the most bytes of memory that reading took."""
    tracemalloc.start()
    try:
        return refusal(data), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@given(traces(), st.booleans())
def test_what_was_written_is_read(trace: Trace, kept: bool) -> None:
    started = trace.started if kept else None
    numbers = looks(len(trace.words), len(started.prompt)) if started else None
    file = TraceFile(replace(HEADER, lens=None, weights_sha256=""), trace, numbers)
    data = tracefile.to_bytes(file)
    again = tracefile.read(data)
    assert (again.header, again.trace) == (file.header, file.trace)
    assert tracefile.to_bytes(again) == data
    if again.looks is None or file.looks is None:
        assert again.looks is file.looks
    else:
        assert np.array_equal(again.looks.positions, file.looks.positions)
        assert np.array_equal(again.looks.weights, file.looks.weights)


def test_a_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    file = TraceFile(HEADER, run([0.5, 0.75]), looks(2))
    tracefile.write(path, file)
    again = tracefile.read(path)
    assert (again.header, again.trace) == (HEADER, file.trace)
    assert again.looks is not None
    assert again.looks.rows == 2
    assert path.read_bytes() == tracefile.to_bytes(file)
    assert os.listdir(tmp_path) == ["a.trace"]


def test_other_tools_can_open_it() -> None:
    data = tracefile.to_bytes(TraceFile(HEADER, run([0.5]), looks(1)))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == ["header.json", "events.jsonl", "looks.safetensors"]
        assert json.loads(archive.read("header.json")) == {
            "format": "open-book-exam trace",
            "version": 2,
            "id": "open-book",
            "title": "Open book 开卷",
            "created": "2026-12-01T09:00:00+00:00",
            "recorded": True,
            "lens": {"layer": 1, "head": None},
            "machine": "a laptop",
            "weights_sha256": "00ff",
        }
        assert {json.loads(line)["type"] for line in archive.read("events.jsonl").splitlines()} >= {"started", "chose"}


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        tracefile.write(path, TraceFile(HEADER, run([0.5])))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.trace"]


@pytest.mark.parametrize(
    ("file", "where"),
    [
        (TraceFile(HEADER, Trace(run([0.5]).events[1:])), "events.jsonl:1"),
        (TraceFile(replace(HEADER, id="../x"), run([0.5])), "header.json"),
        (TraceFile(HEADER, run([0.5]), looks(2)), "looks.safetensors"),
    ],
)
def test_what_would_be_refused_is_not_written(file: TraceFile, where: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        tracefile.write(tmp_path / "a.trace", file)
    assert refused.value.values == {"where": where}
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"once upon a time",
        b"\x80\x04\x95pickle",
        packed({"poem.txt": b"once"}),
        packed({"header.json": b'{"format": "another"}', "events.jsonl": b""}),
        packed({"header.json": b"[]", "events.jsonl": b""}),
        packed({f"{number}.txt": b"" for number in range(200)}),
    ],
    ids=["empty", "text", "pickle", "another zip", "another format", "no object", "many members"],
)
def test_what_is_not_ours(data: bytes) -> None:
    assert refusal(data).code == "trace_not_ours"


def test_a_newer_file_is_known_by_its_header_alone() -> None:
    new = members(version=3, colour="blue") | {"sound.ogg": b"la", "events.jsonl": b'{"type": "sang"}'}
    refused = refusal(packed(new))
    assert (refused.code, refused.values) == ("trace_newer", {"version": 3})


@pytest.mark.parametrize(
    "header",
    [
        {"version": 0},
        {"version": True},
        {"version": "1"},
        {"id": "../../etc/passwd"},
        {"id": ""},
        {"id": 1},
        {"title": None},
        {"created": "yesterday"},
        {"recorded": "yes"},
        {"lens": {"layer": 2, "head": 0}},
        {"lens": {"layer": 0, "head": 4}},
        {"lens": {"layer": -1, "head": 0}},
        {"lens": {"layer": 0}},
        {"weights_sha256": "ff"},
        {"more": 1},
    ],
)
def test_a_broken_header(header: dict[str, Any]) -> None:
    refused = refusal(packed(members(**header)))
    assert (refused.code, refused.values) == ("trace_broken", {"where": "header.json"})


@pytest.mark.parametrize("header", [b"{", b"\xff", b"[" * 50_000, b'{"format": "open-book-exam trace"}'])
def test_a_header_that_is_no_header(header: bytes) -> None:
    refused = refusal(packed(members() | {"header.json": header}))
    assert (refused.code, refused.values) == ("trace_broken", {"where": "header.json"})


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        (lambda lines: [], "events.jsonl:1"),
        (lambda lines: [b"{}", *lines], "events.jsonl:1"),
        (lambda lines: [*lines[:2], b"", *lines[2:]], "events.jsonl:3"),
        (lambda lines: [*lines[:3], lines[3][:-5]], "events.jsonl:4"),
        (lambda lines: lines[1:], "events.jsonl:1"),
        (lambda lines: [*lines, lines[-1]], "events.jsonl:8"),
        (lambda lines: [lines[0].replace(b'"layers":2', b'"layers":1000000000')], "events.jsonl:1"),
    ],
)
def test_broken_events_are_named_by_their_line(lines: Any, where: str) -> None:
    good = members()["events.jsonl"].splitlines()
    assert len(good) == 7
    refused = refusal(packed(members() | {"events.jsonl": b"\n".join(lines(good))}))
    assert (refused.code, refused.values) == ("trace_broken", {"where": where})
    assert refused.__cause__ is not None


def test_broken_looks() -> None:
    for data in (b"noise", looks(2).to_bytes()):
        refused = refusal(packed(members() | {"looks.safetensors": data}))
        assert (refused.code, refused.values) == ("trace_broken", {"where": "looks.safetensors"})


def test_members_that_are_not_known_or_missing() -> None:
    for data in (
        packed(members() | {"evil.py": b"import os"}),
        packed({"header.json": members()["header.json"]}),
        packed(members(), zipfile.ZIP_BZIP2),
    ):
        assert refusal(data).code == "trace_broken"


def test_two_members_of_one_name() -> None:
    buffer = io.BytesIO(packed(members()))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("events.jsonl", members()["events.jsonl"])
    assert refusal(buffer.getvalue()).values == {"where": "zip"}


def test_an_archive_with_a_comment() -> None:
    buffer = io.BytesIO(packed(members()))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"anything may be in here"
    assert refusal(buffer.getvalue()).values == {"where": "zip"}


def test_thousands_of_members_are_not_even_listed() -> None:
    data = packed(members() | {f"{number}.txt": b"" for number in range(20_000)})
    refused, peak = measured(data)
    assert refused.code == "trace_not_ours"
    assert peak < 2**20


def test_a_file_over_the_bound_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.trace"
    with path.open("wb") as stream:
        stream.truncate(2**36)  # sparse: 64 GiB that take no room
    with pytest.raises(Refusal) as refused:
        tracefile.read(path)
    assert (refused.value.code, refused.value.values) == ("trace_too_big", {"limit": "32 MB"})


def test_a_bomb_is_refused_by_what_it_declares() -> None:
    data = packed(members() | {"events.jsonl": bytes(200 * 2**20)})
    assert len(data) < 2**20
    refused, peak = measured(data)
    assert refused.code == "trace_too_big"
    assert peak < 4 * 2**20


def test_a_bomb_that_declares_less_is_not_unpacked_further() -> None:
    """The directory says 1,000 bytes; 64 MB come out of the stream."""
    data = bytearray(packed(members() | {"events.jsonl": bytes(64 * 2**20)}))
    entry = data.rindex(b"PK\1\2")
    struct.pack_into("<L", data, entry + 24, 1000)
    refused, peak = measured(bytes(data))
    assert refused.code == "trace_broken"
    assert peak < 4 * 2**20


def test_a_member_that_declares_more_than_it_holds() -> None:
    data = bytearray(packed(members()))
    entry = data.rindex(b"PK\1\2")
    (size,) = struct.unpack_from("<L", data, entry + 24)
    struct.pack_into("<L", data, entry + 24, size + 1000)
    assert refusal(bytes(data)).code == "trace_broken"


def test_too_many_events_and_too_long_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(packed(members() | {"events.jsonl": b"\n" * 100_001})).code == "trace_too_long"
    monkeypatch.setattr(tracefile, "MAX_LINE", 100)
    assert refusal(packed(members())).code == "trace_too_big"


@given(st.data())
def test_any_damage_is_a_refusal_or_harmless(data: st.DataObject) -> None:
    """Bytes changed anywhere, or an end cut off: never another exception."""
    good = bytearray(tracefile.to_bytes(TraceFile(HEADER, run([0.5]), looks(1))))
    for place in data.draw(st.lists(st.integers(0, len(good) - 1), max_size=3)):
        good[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(good)), st.integers(0, len(good))))
    try:
        tracefile.read(bytes(good[:cut]))
    except Refusal as refused:
        assert refused.code.startswith("trace_")
