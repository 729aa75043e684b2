"""Finished runs are written down with where their words looked, which the engine works out when it has time.

An engine that reads somebody's long paper hears nothing for a minute. The run is on disk meanwhile without its looks,
and is written once more when they come; only an engine that dies takes them along.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from engine.settings import Refusal
from engine.trace import Trace
from engine.trace.file import Lens, TraceFile
from engine.trace.looks import Looks
from service.archive import Archive, Saved, saved_of, with_looks
from service.jobs import Jobs
from service.runs import Run

LOOKS_TOKENS = 128
"""Answers up to this length are saved with where they looked: about 10 KB a token for the bundled model."""
SOON = 2.0
"""Seconds after which a run is written down even if the engine has not told where its words looked."""

_log = logging.getLogger(__name__)


class Saving:
    """Belongs to the event loop."""

    def __init__(self, archive: Archive, jobs: Jobs) -> None:
        self._archive = archive
        self._jobs = jobs
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wanted: set[str] = set()

    def begin(self, run: Run, kept: bool) -> None:
        """A run is over: it can be read from now on, and is written down. `kept`: the engine holds its tensors.

        The looks are asked for here and now, so that the engine hears of it before it hears that this run must go or
        that another one comes: what waits for an answer is bounded by what the engine holds.
        """
        saved = saved_of(TraceFile(run.header, Trace(tuple(run.events))), run.feed, run.settings)
        self._archive.hold(saved, run.owner)
        looks = None
        if kept and 0 < len(saved.file.trace.words) <= LOOKS_TOKENS:
            looks = self._jobs.begin("looks", {"run": run.id})
            self._wanted.add(run.id)
        task = asyncio.get_running_loop().create_task(self._save(run.id, saved, looks))
        self._tasks[run.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(run.id, None))

    def wants_looks(self, run_id: str) -> bool:
        """Whether the engine has yet to tell where this run's words looked."""
        return run_id in self._wanted

    async def over(self, run_id: str, seconds: float) -> bool:
        """Whether all that will be known of a run is written down, within so many seconds."""
        if task := self._tasks.get(run_id):
            await asyncio.wait([task], timeout=seconds)
        return run_id not in self._tasks

    async def all_over(self) -> None:
        """Waits for what is being written. Whoever closes the engine fails its questions first."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _save(self, run_id: str, saved: Saved, looks: asyncio.Future[Any] | None) -> None:
        try:
            if looks is not None:
                await asyncio.wait([looks], timeout=SOON)
                if not looks.done():
                    await self._archive.save(saved)
                saved = await _with_looks(saved, looks)
            await self._archive.save(saved)
        finally:
            self._wanted.discard(run_id)


async def _with_looks(saved: Saved, looks: asyncio.Future[Any]) -> Saved:
    try:
        told = await looks
    except Refusal as refusal:  # saved without, then: its summary says so
        _log.warning("run %s is saved without its looks: %s", saved.summary.id, refusal)
        return saved
    return with_looks(saved, Looks.from_bytes(told["looks"]), Lens(*told["lens"]) if told["lens"] else None)
