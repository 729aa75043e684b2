"""What labs measure with: a run sat for the measurement and thrown away, and two ways timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from engine.labs.base import give_way
from engine.measure import clock
from engine.measure.quiet import undisturbed
from engine.model import LanguageModel
from engine.run import Run, admit, step
from engine.settings import Refusal, Settings
from engine.trace import Event, Trace

ROUNDS = 5
SECONDS = 1.5


def sit(model: LanguageModel, settings: Settings, **kwargs: Any) -> tuple[Run, Trace]:
    """One run from start to end, alone and for nobody: the run, with its notes, and its trace. `kwargs` are `Run`'s.

    Raises the `Refusal` that the run ended with, where it did.
    """
    run = admit("", settings, model, clock.now(), **kwargs)
    return run, finish(run)


def finish(run: Run) -> Trace:
    """A run from start to end. Raises the `Refusal` that it ended with, where it did."""
    events: list[Event] = [run.started(False)]
    while not run.finished:
        give_way()
        step(run.model, [run], lambda _, event: events.append(event), give_way)
    trace = Trace(tuple(events))
    if trace.finished and (code := trace.finished.code):
        raise Refusal(code, **dict(trace.finished.values))
    return trace


def alternate(
    sides: Mapping[str, Callable[[], object]], device: torch.device, rounds: int = ROUNDS, seconds: float = SECONDS
) -> dict[str, list[float]]:
    """Seconds of each side, one after another in every round, every other round backwards, so that a machine that gets
    slower or faster does so for all. A first round does not count, unless it alone took longer than `seconds`; no round
    is begun after that long. A side that gives a number tells its own seconds."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    with undisturbed():
        for number in range(rounds + 1):
            for name in order if number % 2 else order[::-1]:
                give_way()
                clock.synchronise(device)
                begin = clock.now()
                own = sides[name]()
                clock.synchronise(device)
                taken[name].append(own if isinstance(own, float) else clock.now() - begin)
            if number == 0 and sum(map(sum, taken.values())) < seconds:
                taken = {name: [] for name in sides}
            elif sum(map(sum, taken.values())) > seconds:
                break
    return taken
