"""A trace as one file, `*.trace`: a zip that other tools can open, and that is read as data from a stranger.

    header.json         what the file is, see `Header`
    events.jsonl        one event per line (at least one), `docs/trace.schema.json`
    looks.safetensors   optional, where each token looked, see `engine.trace.looks`

Reading bounds every size before it believes it, takes no member it does not know, and hands out only traces that
keep `engine.trace.invariants`. `docs/trace.md` describes the format. Imports neither torch nor, for events alone,
numpy.
"""

from __future__ import annotations

import io
import json
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic_core import from_json, to_json

from engine.settings import Refusal
from engine.trace import Event, Trace, codec
from engine.trace.invariants import BrokenTrace, check
from engine.trace.looks import Looks

SUFFIX = ".trace"
FORMAT = "open-book-exam trace"
VERSION = 2
"""Version 1 had no `reused`, and fewer settings: its files are read as they are."""

MAX_FILE = 32 * 2**20
"""Bytes of a file."""
MAX_UNPACKED = 96 * 2**20
"""Bytes of all members together, unpacked."""
MAX_LINE = 8 * 2**20
"""Bytes of one event: a prompt of 32,768 tokens takes about 3 MB."""
MAX_EVENTS = 100_000

_HEADER, _EVENTS, _LOOKS = "header.json", "events.jsonl", "looks.safetensors"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time on every member (the zip format's own zero), so that the same trace gives the same bytes."""
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, RuntimeError, struct.error)
"""What `zipfile` raises for archives that are broken, encrypted or packed in a way it does not know."""


@dataclass(frozen=True, slots=True)
class Lens:
    """The layer and head worth looking through first, counted from 0; `head` None is the layer's mean."""

    layer: Annotated[int, Field(ge=0)]
    head: Annotated[int, Field(ge=0)] | None


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself. `machine` is where the run was measured, in words; `created` is ISO 8601."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    title: str
    created: str
    recorded: bool = False
    """True for recordings shipped with the project, made by `python -m engine record`."""
    lens: Lens | None = None
    machine: str = ""
    weights_sha256: str = ""


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A header, the events, and, where they were kept, the looks."""

    header: Header
    trace: Trace
    looks: Looks | None = None


for _kind in (Lens, Header):
    _kind.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[union-attr]
_HEADER_ADAPTER: TypeAdapter[Header] = TypeAdapter(Header)


def write(path: Path | str, file: TraceFile) -> None:
    """Writes the file whole or not at all. Raises as `to_bytes`, and `OSError`."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        partial.write_bytes(to_bytes(file))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def to_bytes(file: TraceFile) -> bytes:
    """The file's bytes: the same for the same content. Raises the `Refusal` that `read` would: it reads them back."""
    header = {"format": FORMAT, "version": VERSION, **_HEADER_ADAPTER.dump_python(file.header, mode="json")}
    members = {
        _HEADER: json.dumps(header, ensure_ascii=False, indent=2).encode(),
        _EVENTS: b"".join(codec.to_json(event) + b"\n" for event in file.trace.events),
    }
    if file.looks is not None:
        members[_LOOKS] = file.looks.to_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            member = zipfile.ZipInfo(name, _EPOCH)
            member.create_system, member.external_attr = 3, 0o644 << 16  # the same on every system
            archive.writestr(member, data, zipfile.ZIP_DEFLATED, compresslevel=9)
    data = buffer.getvalue()
    read(data)
    return data


def read(source: Path | str | bytes) -> TraceFile:
    """The trace in a file or in its bytes.

    Raises `Refusal`: `trace_not_ours`, `trace_newer` (value `version`), `trace_too_big` or `trace_too_long` (value
    `limit`), `trace_broken` (value `where`; its cause tells the rule); `OSError` when the file cannot be opened.
    """
    data = source if isinstance(source, bytes) else _load(Path(source))
    if len(data) > MAX_FILE:
        raise Refusal("trace_too_big", limit=_size(MAX_FILE))
    header, members = _unpack(data)
    trace = Trace(tuple(_read_events(members[_EVENTS])))
    with _reading(_EVENTS):
        check(trace.events)
    with _reading(_HEADER):
        _check_header(header, trace)
    looks = None
    if _LOOKS in members:
        with _reading(_LOOKS):
            looks = Looks.from_bytes(members[_LOOKS])
            _check_looks(looks, trace)
    return TraceFile(header, trace, looks)


def _load(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(MAX_FILE + 1)


def _unpack(data: bytes) -> tuple[Header, dict[str, bytes]]:
    """The header and the members' bytes. Sizes are believed only as upper bounds, and checked first."""
    if not data.startswith(b"PK\3\4"):
        raise Refusal("trace_not_ours")
    _check_directory(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = {info.filename: info for info in archive.infolist()}
            if _HEADER not in infos:
                raise Refusal("trace_not_ours")
            if sum(info.file_size for info in infos.values()) > MAX_UNPACKED:
                raise Refusal("trace_too_big", limit=_size(MAX_UNPACKED))
            header = _read_header(_member(archive, infos[_HEADER]))  # first: a newer version may have more members
            if not {_HEADER, _EVENTS} <= infos.keys() <= {_HEADER, _EVENTS, _LOOKS}:
                raise _broken("zip")
            if len(infos) != len(archive.infolist()):
                raise _broken("zip")
            return header, {name: _member(archive, infos[name]) for name in infos.keys() - {_HEADER}}
    except _ZIP_ERRORS as error:
        raise _broken("zip") from error


def _check_directory(data: bytes) -> None:
    """Reads the archive's last record before `zipfile` believes it: few members, no comment, no 64-bit sizes."""
    end = data[-22:]
    if end[:4] != b"PK\5\6" or data[-42:-38] == b"PK\6\7":
        raise _broken("zip")
    members, directory_bytes = struct.unpack_from("<HL", end, 10)
    if members > 16 or directory_bytes > 4096:
        raise Refusal("trace_not_ours")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    # Only with a length asked for, and only for these two methods, does `zipfile` bound what it unpacks.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _broken(info.filename)
    with archive.open(info) as stream:
        data = stream.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise _broken(info.filename)
    return data


def _read_header(data: bytes) -> Header:
    with _reading(_HEADER):
        values = from_json(data)
    if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
        raise Refusal("trace_not_ours")
    version = values.pop("version", None)
    if type(version) is not int or version < 1:
        raise _broken(_HEADER)
    if version > VERSION:
        raise Refusal("trace_newer", version=version)
    with _reading(_HEADER):
        header = _HEADER_ADAPTER.validate_json(to_json(values), strict=True)
        datetime.fromisoformat(header.created)
    return header


def _read_events(data: bytes) -> Iterator[Event]:
    if data.count(b"\n") > MAX_EVENTS:
        raise Refusal("trace_too_long", limit=MAX_EVENTS)
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n")):
        if len(line) > MAX_LINE:
            raise Refusal("trace_too_big", limit=_size(MAX_LINE))
        with _reading(_EVENTS, number):
            event = codec.from_json(line)
        yield event


def _check_header(header: Header, trace: Trace) -> None:
    started, lens = trace.started, header.lens
    if lens is not None and (
        started is None or lens.layer >= started.facts.layers or (lens.head or 0) >= started.facts.heads
    ):
        raise ValueError("the lens is a layer and head of the model")
    if header.weights_sha256 and (started is None or header.weights_sha256 != started.facts.weights_sha256):
        raise ValueError("the weights are those of the run")


def _check_looks(looks: Looks, trace: Trace) -> None:
    started = trace.started
    if started is None:
        raise ValueError("a run that never started looked nowhere")
    looks.check(len(trace.words), started.facts.layers, started.facts.heads, len(started.prompt))


@contextmanager
def _reading(member: str, line: int | None = None) -> Iterator[None]:
    """Turns what is wrong in a member into a refusal that says where."""
    try:
        yield
    except BrokenTrace as error:
        raise _broken(member, error.number) from error
    except ValueError as error:
        raise _broken(member, line) from error


def _broken(member: str, line: int | None = None) -> Refusal:
    """`where` is written as compilers write it: file, colon, line from 1."""
    return Refusal("trace_broken", where=member if line is None else f"{member}:{line + 1}")


def _size(limit: int) -> str:
    return f"{limit // 2**20} MB"
