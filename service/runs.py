"""Live runs: submitted, queued, handed to the engine, watched, and ended when nobody watches.

Everything in here belongs to the event loop; nothing waits. What is over is handed on (`on_finished`).
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from engine.settings import Refusal, Settings
from engine.trace import Event, Facts, Finished, Queued, Reason, Started, codec
from engine.trace.file import Header, Lens
from service.bounds import check, check_owner
from service.feed import Feed
from service.summary import Summary, summarise, title_of

MAX_ACTIVE = 32
"""Runs the engine advances together."""
MAX_QUEUED = 64
"""Runs that wait for one of those places."""
MEMORY = 4 * 2**30
"""Bytes that active runs may take together for keys, values and kept queries; one run is always let in."""
KEPT_RUNS = MAX_ACTIVE
KEPT_BYTES = 2**30
"""Finished runs whose tensors stay in the engine, so that their attention can be looked at exactly. As many as may be
over at the same moment: each is asked where it looked before it must go."""
FIRST_GRACE = 10.0
"""Seconds a new run goes on without anybody watching it."""
GRACE = 5.0
"""Seconds a run goes on after its last watcher left: reloading a page takes less."""
STUCK = 60.0
"""Seconds past a run's own time limit after which the engine is held to be stuck."""


@dataclass(eq=False, slots=True)
class Run:
    """One person's exam, from the press of start to its last event."""

    header: Header
    settings: Settings
    owner: str
    keep: bool
    pressed: float
    unwatched: float
    """When it was last watched or asked for."""
    grace: float = FIRST_GRACE
    state: Literal["queued", "running", "finished"] = "queued"
    ahead: int = -1
    bytes: int = 0
    """What it takes of the engine's memory; an estimate until its prompt is tokenised."""
    events: list[Event] = field(default_factory=list)
    feed: Feed = field(default_factory=Feed)

    @property
    def id(self) -> str:
        return self.header.id

    def summary(self, kept: bool) -> Summary:
        return summarise(self.header, self.events, self.settings.prompt, self.settings.model, self.state, kept)


class Runs:
    """The queue and the runs that are going on. `send` hands a message to the engine process.

    `facts` and `lenses` hold what is known of the models that are ready, by name.
    """

    def __init__(
        self,
        send: Callable[[tuple[Any, ...]], None],
        on_finished: Callable[[Run], None],
        now: Callable[[], float] = time.perf_counter,  # the clock of `engine.measure.clock`, which would import torch
    ) -> None:
        self._send = send
        self._on_finished = on_finished
        self._now = now
        self.live: dict[str, Run] = {}
        self.kept: OrderedDict[str, int] = OrderedDict()
        self.facts: dict[str, Facts] = {}
        self.lenses: dict[str, Lens | None] = {}

    @property
    def active(self) -> list[Run]:
        return [run for run in self.live.values() if run.state == "running"]

    @property
    def waiting(self) -> list[Run]:
        return [run for run in self.live.values() if run.state == "queued"]

    def submit(self, settings: Settings, owner: str = "", keep: bool = False) -> str:
        """Put a run in the queue; its id, which lets whoever knows it watch.

        Raises the refusals of `service.bounds`, and `queue_full`.
        """
        pressed, created = self._now(), datetime.now(UTC).isoformat(timespec="microseconds")
        check(settings)
        check_owner(owner)
        if len(self.waiting) >= MAX_QUEUED:
            raise Refusal("queue_full", bound=MAX_QUEUED)
        header = Header(secrets.token_urlsafe(12), title_of(settings.prompt), created)
        run = Run(header, settings, owner, keep, pressed, unwatched=pressed)
        self.live[run.id] = run
        self.admit()
        return run.id

    def stop(self, run_id: str, reason: Reason = "stopped") -> None:
        """End a run: at once while it waits, within one layer while it runs. Nothing happens to one that is over."""
        run = self.live.get(run_id)
        if run is None:
            return
        if run.state == "running":
            self._send(("stop", run_id, reason))
        else:
            self._end(run, reason)
            self.admit()

    def admit(self) -> None:
        """Hand on the waiting runs there is room for, in order; tell the others how many are before them."""
        for run in self.waiting:
            if not all(name in self.facts for name in _models(run.settings)):
                continue  # one is being loaded; others need not wait for that
            run.bytes = self._needed(run.settings, _estimate(run.settings))
            if self.active and not self._room(run.bytes):
                break
            self._tell_ahead(run, 0)
            run.state = "running"
            self._send(("submit", run.id, run.settings, run.pressed))
        for ahead, run in enumerate(self.waiting):
            self._tell_ahead(run, ahead)

    def _needed(self, settings: Settings, tokens: int) -> int:
        """Bytes for a text of `tokens`, with every model that is to read it."""
        return sum(_bytes(self.facts[name], tokens) for name in _models(settings) if name in self.facts)

    def _room(self, size: int) -> bool:
        return len(self.active) < MAX_ACTIVE and size + sum(run.bytes for run in self.active) <= MEMORY

    def _tell_ahead(self, run: Run, ahead: int) -> None:
        if run.ahead != ahead:
            run.ahead = ahead
            self._add(run, Queued(self._at(run), ahead))

    def take(self, run_id: str, events: list[Event]) -> None:
        """The engine's events of a run. Those of runs that are over here are dropped."""
        run = self.live.get(run_id)
        for event in events if run else ():
            assert run is not None
            if isinstance(event, Started):
                tokens = len(event.prompt) + run.settings.max_new_tokens
                run.bytes = self._needed(run.settings, tokens)
                self._learn_header(run, event)
            self._add(run, event)
            if isinstance(event, Finished):
                self._close(run, kept=event.reason != "out_of_memory")
                self.admit()
                return

    def _learn_header(self, run: Run, event: Started) -> None:
        header, facts = run.header, event.facts
        lens = self.lenses.get(run.settings.model)
        machine = f"{facts.device_name or facts.device}, {facts.threads} threads, {facts.dtype}"
        run.header = Header(header.id, header.title, header.created, False, lens, machine, facts.weights_sha256)

    def _at(self, run: Run) -> float:
        """Seconds since start was pressed, never before the event that was last."""
        return max(self._now() - run.pressed, run.events[-1].at if run.events else 0.0)

    def _add(self, run: Run, event: Event) -> None:
        run.events.append(event)
        run.feed.append(codec.to_json(event))

    def _end(self, run: Run, reason: Reason, refusal: Refusal | None = None) -> None:
        """End a run from here, without the engine."""
        code, values = (refusal.code, tuple(refusal.values.items())) if refusal else ("", ())
        self._add(run, Finished(self._at(run), reason, code, values))
        self._close(run, kept=False)

    def _close(self, run: Run, kept: bool) -> None:
        del self.live[run.id]
        run.state = "finished"
        if kept and any(isinstance(event, Started) for event in run.events):
            self.kept[run.id] = run.bytes
            while len(self.kept) > KEPT_RUNS or (len(self.kept) > 1 and sum(self.kept.values()) > KEPT_BYTES):
                self._send(("release", self.kept.popitem(last=False)[0]))
        self._on_finished(run)
        run.feed.close()

    def engine_gone(self, final: bool) -> None:
        """The engine died: its runs end as errors. Those that wait go on waiting, unless it will not come back."""
        self.kept.clear()
        self.facts.clear()
        for run in list(self.live.values()):
            if run.state == "running":
                self._end(run, "error", Refusal("engine_died"))
            elif final:
                self._end(run, "error", Refusal("engine_failed"))

    def end_all(self, refusal: Refusal) -> None:
        """The program is closed."""
        for run in list(self.live.values()):
            self._end(run, "error", refusal)

    def model_ready(self, model: str, facts: Facts, lens: Lens | None) -> None:
        """The engine has a model: the runs that wait for it may go on."""
        self.facts[model], self.lenses[model] = facts, lens
        self.admit()

    def model_refused(self, model: str, refusal: Refusal) -> None:
        """A model could not be loaded: the runs that wait for it end with the reason."""
        for run in self.waiting:
            if model in _models(run.settings):
                self._end(run, "error", refusal)

    def touch(self, run: Run) -> None:
        """Somebody asked for this run: that counts as watching."""
        run.unwatched = self._now()

    def left(self, run: Run) -> None:
        """A watcher left."""
        run.unwatched, run.grace = self._now(), GRACE

    def tick(self) -> bool:
        """Called every second: end what nobody watches and what waited too long. True when the engine is stuck."""
        stuck, now = False, self._now()
        for run in list(self.live.values()):
            late = now - run.pressed - run.settings.timeout
            if not run.keep and not run.feed.watchers and now - run.unwatched > run.grace:
                self.stop(run.id)
            elif run.state == "queued" and late > 0:
                self.stop(run.id, "timeout")
            stuck = stuck or (run.state == "running" and late > STUCK)
        return stuck


def _models(settings: Settings) -> tuple[str, ...]:
    """The models that a run needs: its own, and the one that guesses for it."""
    return (settings.model, *([settings.draft_model] if settings.draft and settings.draft_model else []))


def _estimate(settings: Settings) -> int:
    """Tokens a run may come to, before its prompt is tokenised: three bytes a token is little for any language."""
    return len(settings.prompt.encode()) // 3 + 64 + settings.max_new_tokens


def _bytes(facts: Facts, tokens: int) -> int:
    """Bytes of keys, values and the queries kept for the lens."""
    queries = facts.layers * facts.heads * facts.head_size * facts.value_bytes
    return min(tokens, facts.context) * (facts.kv_bytes_per_token + queries)
