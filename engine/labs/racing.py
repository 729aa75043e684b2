"""Two ways to write one answer, timed side by side: step by step in turns, so that what disturbs one disturbs both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from engine.labs.base import give_way
from engine.measure import clock
from engine.model import LanguageModel
from engine.run import Run, admit, step
from engine.settings import Refusal, Settings
from engine.trace import Event, Trace


@dataclass(frozen=True, slots=True)
class Sat:
    """One run that is over: its trace, its bound in tokens, and the seconds that its steps after prefill took."""

    trace: Trace
    limit: int
    seconds: float


def race(model: LanguageModel, sides: Mapping[str, Settings], drafts: LanguageModel | None = None) -> dict[str, Sat]:
    """A run of each side, written in turns: a step for the one that has written least, until all are over. `drafts` is
    the model that `Settings.draft_model` names. They belong to nobody; raises the `Refusal` that one of them ended
    with, and what `give_way` raises."""
    runs = {side: admit(side, settings, model, clock.now(), drafts=drafts) for side, settings in sides.items()}
    events: dict[str, list[Event]] = {side: [run.started(False)] for side, run in runs.items()}
    seconds = dict.fromkeys(runs, 0.0)

    def keep(side: str, run: Run, event: Event) -> None:
        events[side].append(event)

    for side, run in runs.items():
        while run.reading:
            step(model, [run], partial(keep, side), give_way)
    while going := [side for side, run in runs.items() if not run.finished]:
        side = min(going, key=lambda one: len(runs[one].chosen))
        give_way()
        clock.synchronise(model.shape.device)
        begin = clock.now()
        step(model, [runs[side]], partial(keep, side))
        clock.synchronise(model.shape.device)
        seconds[side] += clock.now() - begin
    sat = {side: Sat(Trace(tuple(events[side])), run.limit, seconds[side]) for side, run in runs.items()}
    for one in sat.values():
        if one.trace.finished and (code := one.trace.finished.code):
            raise Refusal(code, **dict(one.trace.finished.values))
    return sat
