"""The service itself: one object per process that ties the engine, the runs, the archive and the models together.

It belongs to the event loop. The page's scripts run in other threads and reach it through `Service.call`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from engine import weights
from engine.settings import Refusal, Settings
from service.archive import Archive
from service.attention import Shared, Weights, recorded
from service.engine_client import EngineClient
from service.feed import Feed
from service.jobs import SECONDS, Jobs
from service.models import Models
from service.runs import Runs
from service.saving import Saving
from service.summary import Summary

TICK = 1.0
"""Seconds between two looks at who is still watching."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Engine(Protocol):
    """What the service needs of `EngineClient`; tests bring a small one of their own."""

    def start(self) -> None: ...
    def send(self, message: tuple[Any, ...]) -> None: ...
    def kill(self) -> None: ...
    async def close(self) -> None: ...


class Service:
    """`engine` is made with the function that its messages go to."""

    def __init__(
        self, engine: Callable[[Callable[[tuple[Any, ...]], None]], Engine], archive: Archive, models: Models
    ) -> None:
        self.engine = engine(self.deliver)
        self.archive = archive
        self.models = models
        models.load = lambda name: self.engine.send(("load", name))
        self.jobs = Jobs(self.engine.send)
        self.runs = Runs(self.engine.send, lambda run: self._saving.begin(run, run.id in self.runs.kept))
        self._shared = Shared()
        self._saving = Saving(archive, self.jobs)
        self._phase = "starting"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Everything started, and at the end everything ended."""
        self.loop = asyncio.get_running_loop()
        self.engine.start()
        await self.archive.start()
        ticking = asyncio.create_task(self._ticking())
        self.models.start()
        try:
            yield
        finally:
            await self.engine.close()
            self.jobs.fail_all(Refusal("engine_died"))
            self.runs.kept.clear()
            self.runs.end_all(Refusal("program_closed"))
            await self._saving.all_over()
            ticking.cancel()
            self.archive.close()

    def call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function of the service from another thread, in the event loop."""
        done: concurrent.futures.Future[_T] = concurrent.futures.Future()

        def work() -> None:
            try:
                done.set_result(function(*arguments))
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever called
                done.set_exception(error)

        self.loop.call_soon_threadsafe(work)
        return done.result(10)

    # What people ask for

    def submit(self, settings: Settings, owner: str = "", keep: bool = False) -> str:
        """Start a run; its id. Raises the refusals of `service.bounds` and of `Models.want`, `queue_full`,
        `fork_not_kept` and `engine_failed`."""
        if self._phase == "failed":
            raise Refusal("engine_failed")
        if settings.fork and settings.fork.run not in {*self.runs.live, *self.runs.kept}:
            raise Refusal("fork_not_kept")
        name = settings.model or self.models.default
        self.models.want(name)
        if settings.draft and settings.draft_model:
            self.models.want(settings.draft_model)
        return self.runs.submit(replace(settings, model=name), owner, keep)

    async def summary(self, run_id: str) -> Summary:
        """Raises `Refusal("unknown_run")`, or those of a file that cannot be read."""
        if run := self.runs.live.get(run_id):
            self.runs.touch(run)
            return run.summary(kept=True)
        return self._as_it_is((await self.archive.get(run_id)).summary)

    def listed(self, owner: str) -> list[Summary]:
        """That owner's runs, newest first, then the recordings."""
        mine = [run.summary(kept=True).short() for run in self.runs.live.values() if owner and run.owner == owner]
        saved = [self._as_it_is(one) for one in self.archive.owned(owner)] if owner else []
        return [*reversed(mine), *saved, *self.archive.recordings()]

    def _as_it_is(self, summary: Summary) -> Summary:
        """A finished run's summary with what only this moment knows."""
        kept = summary.id in self.runs.kept
        looks = "saving" if self._saving.wants_looks(summary.id) else summary.looks
        return replace(summary, kept=kept, looks=looks)

    async def feed(self, run_id: str) -> Feed:
        """The lines of a run, live or saved. Raises as `summary`."""
        run = self.runs.live.get(run_id)
        return run.feed if run else (await self.archive.get(run_id)).feed

    async def follow(self, run_id: str, start: int) -> AsyncGenerator[bytes, None]:
        """Frames of lines from line `start` on, until the run is over. Raises as `summary`."""
        feed, run = await self.feed(run_id), self.runs.live.get(run_id)
        try:
            async with aclosing(feed.follow(start)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            if run is not None:
                self.runs.left(run)

    async def trace(self, run_id: str) -> bytes:
        """The trace file, whole. Raises as `summary`, `unfinished`, and `looks_wanted` while the engine is too busy to
        tell where its words looked."""
        if run_id in self.runs.live:
            raise Refusal("unfinished")
        if not await self._saving.over(run_id, SECONDS):
            raise Refusal("looks_wanted")
        return await self.archive.file_of(run_id)

    async def attention(self, run_id: str, layer: int, head: int | None, row: int | None) -> Weights:
        """One row, or the map when `row` is None. Raises as `summary`, and what the engine refuses."""
        run = self.runs.live.get(run_id)
        if run is None and run_id not in self.runs.kept:
            return recorded((await self.archive.get(run_id)).file, layer, head, row)
        if run is not None and (row is None or run.state == "queued"):
            raise Refusal("unfinished")  # a map of a growing run would be old before it was drawn
        return await self._shared.get((run_id, layer, head, row), lambda: self._ask(run_id, layer, head, row))

    async def _ask(self, run_id: str, layer: int, head: int | None, row: int | None) -> Weights:
        arguments = {"run": run_id, "layer": layer, "head": head}
        if row is None:
            rows, columns, data = await self.jobs.ask("map", arguments)
        else:
            rows, columns, data = await self.jobs.ask("attention", {**arguments, "row": row})
        return Weights(row or 0, rows, columns, data, "computed")

    def health(self) -> dict[str, Any]:
        """See `docs/api.md`; `error` is a `Refusal` or None."""
        name = self.models.default
        status = self.models.status(name)
        return {
            "engine": self._engine_phase(status.state),
            "progress": status.progress,
            "doing": status.doing,
            "active": len(self.runs.active),
            "queued": len(self.runs.waiting),
            "model": name,
            "error": Refusal("engine_failed") if self._phase == "failed" else status.error,
        }

    def _engine_phase(self, state: str) -> str:
        if self._phase == "failed" or state in ("failed", "absent"):
            return "failed"
        if state in ("fetching", "loaded"):
            return "ready" if state == "loaded" else "fetching"
        return "loading" if self._phase == "connected" else self._phase

    def recordings(self) -> list[Summary]:
        return self.archive.recordings()

    # What the engine says

    def deliver(self, message: tuple[Any, ...]) -> None:
        """One message of the engine process, or of its client (`up`, `down`)."""
        match message:
            case ("events", run_id, events):
                self.runs.take(run_id, events)
            case ("result", job, value):
                self.jobs.result(job, value)
            case ("failed", job, code, values):
                self.jobs.failed(job, Refusal(code, **values))
            case ("status", phase, fields):
                self._model_status(phase, **fields)
            case ("up",):
                self._phase = "connected"
                self.models.engine_up()
            case ("down", final):
                self._phase = "failed" if final else "restarting"
                self.models.engine_down()
                self.jobs.fail_all(Refusal("engine_died"))
                self.runs.engine_gone(final)
            case _:
                raise ValueError(f"unknown message {message[0]!r}")

    def _model_status(self, phase: str, model: str, **fields: Any) -> None:
        match phase:
            case "loading":
                self.models.loading(model, fields.get("progress"), fields.get("what", ""))
            case "ready":
                self.models.loaded(model)
                facts = fields["facts"]
                self.runs.model_ready(model, facts, self.archive.lens_of(facts.weights_sha256))
            case "refused":
                refusal = Refusal(fields["code"], **fields["values"])
                self.models.refused(model, refusal)
                self.runs.model_refused(model, refusal)

    async def _ticking(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self.runs.tick():
                _log.error("the engine is stuck and is ended")
                self.engine.kill()


def from_environment() -> Service:
    """The service with the real engine, as `OPEN_BOOK_EXAM_MODEL`, `…_DEVICE` and `…_DTYPE` say."""
    model, device, dtype = (os.environ.get(f"OPEN_BOOK_EXAM_{name}", "") for name in ("MODEL", "DEVICE", "DTYPE"))
    archive = Archive(weights.home() / "runs", Path(__file__).parents[1] / "assets" / "recordings")
    models = Models(weights, model or weights.DEFAULT)
    return Service(lambda deliver: EngineClient(deliver, device=device, dtype=dtype), archive, models)
