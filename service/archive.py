"""Finished runs on disk, and the recordings that ship with the project. A link to a run survives a restart.

One run is two files in one folder: `ID.trace` (`engine.trace.file`), and beside it `ID.json` with its summary and its
owner, which is nobody else's business and therefore not in the trace. Number and bytes are bounded, oldest first.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from engine.settings import Refusal, Settings
from engine.trace import codec
from engine.trace import file as tracefile
from engine.trace.file import SUFFIX, Lens, TraceFile
from engine.trace.looks import Looks
from service.feed import Feed
from service.summary import Looking, Summary, summarise

MAX_RUNS = 500
MAX_BYTES = 2**30
"""Of runs on disk; the oldest are removed."""
MAX_OPEN = 16
"""Finished runs held in memory, those last asked for."""
MAX_LISTED = 50

_ID = re.compile(r"[A-Za-z0-9_-]{16}")
"""Ids of runs. Nothing else ever becomes part of a path."""
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Saved:
    """A finished run in memory: its lines, to send, and its file's content, for everything else."""

    summary: Summary
    feed: Feed
    file: TraceFile


@dataclass(frozen=True, slots=True)
class Entry:
    """What `ID.json` holds."""

    summary: Summary
    owner: str


Entry.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)


class Archive:
    """Belongs to the event loop; files are read and written on one thread of its own, one after another."""

    def __init__(self, folder: Path, recordings: Path) -> None:
        self._folder = folder
        self._recording_paths = {path.stem: path for path in sorted(recordings.glob(f"*{SUFFIX}"))}
        self._recordings: dict[str, Saved] = {}
        self._unsaved: dict[str, Saved] = {}
        self._open: OrderedDict[str, Saved] = OrderedDict()
        self._entries: dict[str, Entry] = {}
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="archive")

    def beside(self, name: str) -> Path:
        """A place next to the runs, for what else is kept on this machine."""
        return self._folder.parent / name

    async def start(self) -> None:
        """Read what is there: the recordings whole, and the summaries of all runs."""
        for name, path in self._recording_paths.items():
            try:
                self._recordings[name] = await self._work(lambda name=name, path=path: _load(path, name, True))  # type: ignore[misc]
            except Refusal as refusal:
                _log.error("recording %s cannot be read: %s", name, refusal)
        self._entries = await self._work(self._read_entries)

    def close(self) -> None:
        """Waits for what is being written."""
        self._disk.shutdown()

    async def _work(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)

    async def get(self, run_id: str) -> Saved:
        """A finished run or a recording. Raises `Refusal`: `unknown_run`, or those of `engine.trace.file.read`."""
        if here := self._recordings.get(run_id) or self._unsaved.get(run_id):
            return here
        saved = self._open.get(run_id)
        if saved is None:
            if not _ID.fullmatch(run_id):
                raise Refusal("unknown_run")
            saved = await self._work(lambda: self._open.get(run_id) or _load(self._path(run_id), run_id, False))
        self._remember(run_id, saved)
        return saved

    def hold(self, saved: Saved, owner: str) -> None:
        """A run is over: it is listed and can be read from now on, even before it is on disk."""
        run_id = saved.summary.id
        self._entries[run_id] = Entry(saved.summary.short(), owner)
        self._unsaved[run_id] = saved

    async def save(self, saved: Saved) -> None:
        """Write a run that `hold` was called for; once more when there is more of it, unless newer ones have taken its
        place meanwhile. A disk that is full is told in the log; the run then stays in memory as long as others do."""
        run_id = saved.summary.id
        if run_id not in self._entries:
            return
        self._entries[run_id] = entry = replace(self._entries[run_id], summary=saved.summary.short())
        try:
            removed = await self._work(lambda: self._write(saved, entry))
        except (OSError, Refusal):
            _log.exception("run %s could not be saved", run_id)
            removed = []
        self._unsaved.pop(run_id, None)
        self._remember(run_id, saved)
        for old in removed:
            self._entries.pop(old, None)
            self._open.pop(old, None)

    async def file_of(self, run_id: str) -> bytes:
        """The trace file's bytes. Raises as `get`."""
        saved = await self.get(run_id)
        path = self._recording_paths.get(run_id) or self._path(run_id)
        return await self._work(lambda: path.read_bytes() if path.exists() else tracefile.to_bytes(saved.file))

    def recordings(self) -> list[Summary]:
        return [saved.summary.short() for saved in self._recordings.values()]

    def lens_of(self, weights_sha256: str) -> Lens | None:
        """The layer and head that a recording of the same weights is looked at with: a live run's first choice."""
        headers = (saved.file.header for saved in self._recordings.values())
        return next((each.lens for each in headers if each.weights_sha256 == weights_sha256 and each.lens), None)

    def owned(self, owner: str) -> list[Summary]:
        """That owner's finished runs, newest first."""
        mine = [entry.summary for entry in self._entries.values() if entry.owner == owner]
        return sorted(mine, key=lambda summary: summary.created, reverse=True)[:MAX_LISTED]

    def _remember(self, run_id: str, saved: Saved) -> None:
        self._open[run_id] = saved
        self._open.move_to_end(run_id)
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)

    def _path(self, run_id: str, suffix: str = SUFFIX) -> Path:
        return self._folder / f"{run_id}{suffix}"

    def _write(self, saved: Saved, entry: Entry) -> list[str]:
        """Write the two files; the ids of older runs that had to go for them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        run_id = saved.summary.id
        tracefile.write(self._path(run_id), saved.file)
        note = self._path(run_id, ".json")
        partial = note.with_suffix(".part")
        partial.write_bytes(_ENTRY.dump_json(entry))
        partial.replace(note)
        return self._prune()

    def _prune(self) -> list[str]:
        traces = sorted(((path.stat(), path) for path in self._folder.glob(f"*{SUFFIX}")), key=lambda p: p[0].st_mtime)
        count, size, removed = len(traces), sum(stat.st_size for stat, _ in traces), []
        for stat, path in traces:
            if count <= MAX_RUNS and size <= MAX_BYTES:
                break
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)
            count, size = count - 1, size - stat.st_size
            removed.append(path.stem)
        return removed

    def _read_entries(self) -> dict[str, Entry]:
        entries = {}
        for path in self._folder.glob("*.json"):
            try:
                entry = _ENTRY.validate_json(path.read_bytes())
            except (OSError, ValidationError):
                _log.warning("%s is damaged and not listed", path.name)
            else:
                entries[entry.summary.id] = entry
        return entries


def saved_of(file: TraceFile, feed: Feed, settings: Settings | None = None) -> Saved:
    """A finished run from its file's content. `settings` speak for a run that never started."""
    asked = settings or Settings("")
    summary = summarise(file.header, file.trace.events, asked.prompt, asked.model, "finished", kept=False)
    return Saved(replace(summary, looks=_looking(file)), feed, file)


def _looking(file: TraceFile) -> Looking:
    if file.looks is not None:
        return "saved"
    return "not_saved" if file.trace.words else ""


def with_looks(saved: Saved, looks: Looks, lens: Lens | None) -> Saved:
    """The same run with where its words looked, and the head that is worth showing first."""
    header = replace(saved.file.header, lens=lens or saved.file.header.lens)
    file = replace(saved.file, header=header, looks=looks)
    return replace(saved, file=file, summary=replace(saved.summary, lens=header.lens, looks="saved"))


def _load(path: Path, run_id: str, recorded: bool) -> Saved:
    try:
        file = tracefile.read(path)
    except OSError:
        raise Refusal("unknown_run") from None
    file = replace(file, header=replace(file.header, id=run_id, recorded=recorded))
    return saved_of(file, Feed((codec.to_json(event) for event in file.trace.events), closed=True))
