"""Several real runs on one clock, through the real `step`: who comes when, who is in which pass, each run's trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.labs.base import give_way
from engine.measure import clock
from engine.model import LanguageModel
from engine.run import Run, admit, step
from engine.settings import RANGES, Refusal, Settings
from engine.trace import Decoded, Event, Prefilled, Started, Trace

TIMEOUT = RANGES["timeout"][1]
"""Seconds; nobody is to be ended by the clock."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Start is pressed for `settings` at `at` seconds on the common clock; or, with `after`, when the run of that name
    has chosen so many words (or is over)."""

    name: str
    settings: Settings
    at: float = 0.0
    after: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One `step`, on the common clock: whose prompt was read, and of which positions; who wrote; who had to wait."""

    start: float
    stop: float
    reads: str
    chunk: tuple[int, int] | None
    writes: tuple[str, ...]
    waits: tuple[str, ...]


class Company:
    """`sit` drives all arrivals to their ends. Then `runs`, `traces` and `pressed` hold each by name (`pressed`: when
    it came, on the common clock, which begins with the first), and `turns` what was done."""

    def __init__(
        self,
        model: LanguageModel,
        arrivals: Sequence[Arrival],
        now: Callable[[], float] = clock.now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = model
        self.pressed: dict[str, float] = {}
        self.runs: dict[str, Run] = {}
        self.turns: list[Turn] = []
        self._events: dict[str, list[Event]] = {}
        self._coming = list(arrivals)
        self._now, self._sleep = now, sleep
        self._begin = now()

    @property
    def at(self) -> float:
        return self._now() - self._begin

    @property
    def traces(self) -> dict[str, Trace]:
        return {name: Trace(tuple(events)) for name, events in self._events.items()}

    def sit(self) -> Company:
        """Raises the `Refusal` that a run ended with, where one did, and what `give_way` raises."""
        while self._coming or any(not run.finished for run in self.runs.values()):
            give_way()
            self._admit()
            going = [run for run in self.runs.values() if not run.finished]
            if going:
                self._turn(going)
            else:
                self._sleep(max(0.0, min(one.at for one in self._coming) - self.at))
        return self

    def _admit(self) -> None:
        """Those who have come since, in the order in which they came."""
        due = [(moment, one) for one in self._coming if (moment := self._moment(one)) is not None]
        for moment, one in sorted(due, key=lambda pair: pair[0]):
            self._coming.remove(one)
            settings = replace(one.settings, timeout=TIMEOUT)
            run = admit(one.name, settings, self.model, self._begin + moment, now=self._now)
            run.opening = False
            self.runs[one.name], self.pressed[one.name], self._events[one.name] = run, moment, []

    def _moment(self, one: Arrival) -> float | None:
        """When it came; None while it has not."""
        if one.after is None:
            return one.at if one.at <= self.at else None
        name, words = one.after
        if name not in self.runs:
            return None
        told = [event.at for event in self._events[name] if event.type == "chose"]
        if len(told) >= words:
            return self.pressed[name] + told[words - 1]
        return self.at if self.runs[name].finished else None

    def _turn(self, going: list[Run]) -> None:
        counts = {run.id: len(self._events[run.id]) for run in going}
        start = self.at
        step(self.model, going, lambda run, event: self._events[run.id].append(event), give_way)
        stop = self.at
        reads, chunk, writes = "", None, []
        for name, count in counts.items():
            for event in self._events[name][count:]:
                if isinstance(event, Prefilled):
                    reads, chunk = name, (event.start, event.stop)
                elif isinstance(event, Decoded):
                    writes.append(name)
                elif event.type == "finished" and event.code:
                    raise Refusal(event.code, **dict(event.values))
        waits = tuple(run.id for run in going if not run.begun and not run.finished)
        self.turns.append(Turn(start, stop, reads, chunk, tuple(writes), waits))


def member(company: Company, name: str) -> dict[str, Any]:
    """One of them in plain values, times on the common clock: `{"name", "arrived", "began", "chunks": [[start, stop,
    first position, end]], "words": [when each was chosen], "prompt": tokens, "ids", "probabilities", "text", "reading":
    seconds of its prefill passes, "ttft", "tpot"}`."""
    trace, pressed = company.traces[name], company.pressed[name]
    passes = [event for event in trace.events if isinstance(event, Prefilled)]
    began = next(event.at for event in trace.events if isinstance(event, Started))
    return {
        "name": name, "arrived": pressed, "began": pressed + began,
        "chunks": [[pressed + one.at - one.seconds, pressed + one.at, one.start, one.stop] for one in passes],
        "words": [pressed + chose.at for chose in trace.chosen],
        "prompt": len(company.runs[name].ids), "ids": list(trace.output_ids),
        "probabilities": [chose.probability for chose in trace.chosen], "text": trace.output_text,
        "reading": sum(one.seconds for one in passes), "ttft": trace.ttft, "tpot": trace.tpot,
    }  # fmt: skip
