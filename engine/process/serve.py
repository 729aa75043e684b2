"""The engine process: jobs in, events out. The only process that imports torch, and one thread of it.

Started as `python -m engine.process`; reads one line of JSON from standard input
(`{"address": [host, port], "key": hex, "device": "", "dtype": ""}`), connects back and speaks the tuples of
`docs/api.md`. It ends by itself when the connection ends, however the other side died.
"""

from __future__ import annotations

import gc
from collections import deque
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from engine.settings import Refusal
from engine.trace import Event, Finished, Layer, Queued, Started

if TYPE_CHECKING:
    from engine.cache.paged import Pool
    from engine.jobs.notes import Watch
    from engine.model import LanguageModel
    from engine.run import Run

Message = tuple[Any, ...]

POOL_BYTES = 2**29
"""Of the blocks that runs of one model share, where notes are kept in blocks."""


class EngineProcess:
    """Models, active runs and kept runs of this process."""

    def __init__(self, connection: Connection, device: str, dtype: str) -> None:
        self.connection = connection
        self.device = device
        self.dtype = dtype
        self.models: dict[str, LanguageModel] = {}
        self.active: dict[str, Run] = {}
        self.kept: dict[str, Run] = {}
        self.pools: dict[tuple[str, int], Pool] = {}
        self.watches: dict[str, Watch] = {}
        self._warm: set[str] = set()
        self._working = ""
        self._inbox: deque[Message] = deque()
        self._outbox: dict[str, list[Event]] = {}

    def serve(self) -> None:
        """Until the other side says quit or goes away (raises `EOFError` then). While runs are active at most one job
        is done between two steps, so that many questions slow the answers instead of stopping them."""
        while True:
            while self._inbox or self.connection.poll(0 if self.active else None):
                message = self._inbox.popleft() if self._inbox else self.connection.recv()
                if message[0] == "quit":
                    return
                self._handle(message)
                if message[0] == "job" and self.active:
                    break
            self._turn()

    def _turn(self) -> None:
        """One step of every model that has active runs."""
        from engine.run import step

        for model in {id(run.model): run.model for run in self.active.values()}.values():
            runs = [run for run in self.active.values() if run.model is model]
            step(model, runs, self._emit, self._hear)
        self._flush()
        if self.watches:
            from engine.jobs.notes import check_watched

            check_watched(self)

    def _hear(self) -> None:
        """Between two layers of a prefill: a stop counts at once (unless its run still waits in the inbox), and so
        does the end of a job that waits; everything else waits for its turn."""
        while self.connection.poll(0):
            message = self.connection.recv()
            if message[0] == "stop" and message[1] in self.active:
                self._handle(message)
            elif message[0] == "cancel":
                self._inbox = deque(m for m in self._inbox if m[:2] != ("job", message[1]))
                self._working = "" if message[1] == self._working else self._working
            else:
                self._inbox.append(message)

    def give_way(self) -> None:
        """For a long job, between two of its layers or steps. Raises `Refusal` to end it: `others_at_work` when a run
        waits to begin, `job_cancelled` when nobody waits for the job any more."""
        self._hear()
        if not self._working:
            raise Refusal("job_cancelled")
        if any(message[0] == "submit" for message in self._inbox):
            raise Refusal("others_at_work")

    def _emit(self, run: Run, event: Event) -> None:
        self._outbox.setdefault(run.id, []).append(event)
        if isinstance(event, (Queued, Started, Layer)):
            self._flush()
        elif isinstance(event, Finished):
            self.active.pop(run.id, None)
            if run.cache is not None:
                self.kept[run.id] = run

    def _flush(self) -> None:
        for run_id, events in self._outbox.items():
            self.connection.send(("events", run_id, events))
        self._outbox.clear()

    def _handle(self, message: Message) -> None:
        match message:
            case ("submit", run_id, settings, pressed):
                self._submit(run_id, settings, pressed)
            case ("stop", run_id, reason):
                self._stop(run_id, reason)
            case ("release", run_id):
                self.kept.pop(run_id, None)
                self.watches.pop(run_id, None)
            case ("job", job_id, name, arguments):
                self._job(job_id, name, arguments)
            case ("load", name):
                self._load(name)

    def _submit(self, run_id: str, settings: Any, pressed: float) -> None:
        from engine.measure import clock
        from engine.run import admit, prefix, reset_peak

        try:
            parent = self._find(settings.fork.run) if settings.fork else None
            drafts = self._model(settings.draft_model) if settings.draft and settings.draft_model else None
            run = admit(run_id, settings, self._model(settings.model), pressed, parent=parent, drafts=drafts)
            if settings.reuse and not settings.fork:
                prefix.look_for(run, [*self.active.values(), *self.kept.values()])
            if settings.keeping.block:
                run.pool = self._pool(run.model, settings.keeping.block)
        except Exception as error:  # noqa: BLE001 - a prompt that cannot be read must not take anyone's run with it
            refusal = _refusal(error, "model_failed")
            finished = Finished(clock.now() - pressed, "error", refusal.code, tuple(refusal.values.items()))
            self.connection.send(("events", run_id, [finished]))
            return
        if not self.active:
            reset_peak(run.model.shape.device)
        run.opening = run.model.facts.model not in self._warm
        self._warm.add(run.model.facts.model)
        self.active[run_id] = run

    def _stop(self, run_id: str, reason: Any) -> None:
        if run := self.active.get(run_id):
            run.stop_reason = reason

    def _job(self, job_id: str, name: str, arguments: dict[str, Any]) -> None:
        from engine.process import jobs

        self._working = job_id
        try:
            result = jobs.JOBS[name](self, **arguments)
        except Exception as error:  # noqa: BLE001 - a failing job must not take anyone's run with it
            refusal = _refusal(error, "job_failed")
            self.connection.send(("failed", job_id, refusal.code, refusal.values))
        else:
            self.connection.send(("result", job_id, result))

    def run(self, run_id: str) -> Run:
        """An active or kept run. Raises `Refusal("not_kept")`."""
        found = self._find(run_id)
        if found is None:
            raise Refusal("not_kept")
        return found

    def _find(self, run_id: str) -> Run | None:
        return self.active.get(run_id) or self.kept.get(run_id)

    def _pool(self, model: LanguageModel, size: int) -> Pool:
        """The blocks that runs of a model share."""
        from engine.cache.paged import Pool

        key = (model.facts.model, size)
        if key not in self.pools:
            block = model.shape.bytes_at(size)
            self.pools[key] = Pool(model.shape, max(1, POOL_BYTES // block), size)
        return self.pools[key]

    def _model(self, name: str) -> LanguageModel:
        if name in self.models:
            return self.models[name]
        if not name and self.models:
            return next(iter(self.models.values()))
        raise Refusal("model_not_ready", model=name)

    def _load(self, name: str) -> None:
        """Load a model besides those loaded; tells progress, then `ready` or `refused`."""

        def progress(fraction: float, what: str) -> None:
            self.connection.send(("status", "loading", {"model": name, "progress": fraction, "what": what}))

        progress(0.0, "import")
        try:
            from engine import weights
            from engine.model import load

            source = weights.resolve(name, progress)
            model = load(
                source.folder, name=name, weights_sha256=source.sha256, device=self.device, dtype=self.dtype,
                progress=progress,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - weights from anywhere must not take anyone's run with them
            refusal = _refusal(error, "model_not_loaded", model=name)
            fields = {"model": name, "code": refusal.code, "values": refusal.values}
            self.connection.send(("status", "refused", fields))
            return
        self.models[name] = model
        gc.freeze()  # a full collection over the libraries' objects would make somebody's word take 200 ms longer
        self.connection.send(("status", "ready", {"model": name, "facts": model.facts}))


def _refusal(error: Exception, code: str, **values: str) -> Refusal:
    """The error itself if it is a refusal, else `code` with what went wrong."""
    return (
        error if isinstance(error, Refusal) else Refusal(code, **values, why=f"{type(error).__name__}: {error}"[:300])
    )
