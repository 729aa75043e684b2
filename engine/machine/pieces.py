"""All that there is to measure of a machine with a model, done by the engine's own jobs, without a service.

A piece during which others were at work is done again, a bounded number of times; the quietest is kept, with how busy
they were in its `busy`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from engine.jobs import machine, stages
from engine.jobs.desk import Desk
from engine.labs.papers import of_length
from engine.labs.timing import sit
from engine.machine.results import Kind, name_of, wait_of
from engine.measure.quiet import BUSY, Elsewhere
from engine.model import LanguageModel
from engine.recordings.exams import recordings
from engine.run import Run
from engine.settings import Settings

LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Tokens of the papers whose wait is measured, as the page *Waiting* offers them (its `sweep.js`)."""
ANSWER = 10
"""Words of each answer, as there."""
TRIES = 3
"""Of a piece that others disturb. Called again, the command tries once more only what was disturbed."""
PATIENCE = 2.0
"""Seconds that are waited for others to rest before a piece is tried again."""
LOOK = 0.5
"""Seconds of one look at what others do."""

Work = Callable[[], dict[str, Any]]


@dataclass
class Alone:
    """A desk (`engine.jobs.desk.Desk`) with one model, where nobody else asks for anything."""

    models: dict[str, LanguageModel]
    active: dict[str, Run] = field(default_factory=dict)
    kept: dict[str, Run] = field(default_factory=dict)

    def run(self, run_id: str) -> Run:
        return self.kept[run_id]

    def give_way(self) -> None:
        """Nobody waits."""


def pieces(model: LanguageModel) -> Iterator[tuple[str, Work]]:
    """What there is to measure, by the name of its result: peaks, then decode in batches and the parts of both stages
    for every exam that is recorded with this model, then the wait for papers of growing length.

    The first run after the model was loaded is slower than any other: a short one is sat before.
    """
    name = model.facts.model
    desk = Alone({name: model})
    for shape in machine.plan(model.facts.device):
        yield name_of("peak", {"name": shape.name}), partial(machine.peak, desk, name, shape.name)
    sit(model, of_length(model, LENGTHS[0]))
    for exam in (one for one in recordings() if one.settings.model in ("", name)):
        run, _ = sit(model, exam.settings)
        desk.kept = {exam.name: run}
        yield from _of_run(desk, exam.name, len(run.ids))
    desk.kept = {}
    for length in (one for one in LENGTHS if one + ANSWER < model.facts.context):
        yield name_of("wait", {"prompt": length}), partial(wait, model, length)


def _of_run(desk: Desk, run: str, prompt: int) -> Iterator[tuple[str, Work]]:
    def named(kind: Kind, **told: Any) -> str:
        return name_of(kind, {"prompt": prompt, **told})

    for batch in stages.BATCHES:
        yield named("batch", batch=batch), partial(stages.decode_batch, desk, run, batch)
    for stage in ("prefill", "decode"):
        yield named("parts", stage=stage), partial(stages.parts, desk, run, stage)


def wait(model: LanguageModel, length: int) -> dict[str, Any]:
    """How long a paper of `length` tokens makes one wait, from the trace of a run that is sat for it, and `busy`."""
    settings = of_length(model, length, Settings("x", mode="raw", max_new_tokens=ANSWER, timeout=600))
    elsewhere = Elsewhere()
    _, trace = sit(model, settings)
    return {"run": "", **wait_of(trace), "busy": elsewhere.cores}


def quietest(work: Work, before: Mapping[str, Any] | None = None, tries: int = TRIES) -> dict[str, Any]:
    """The result of a piece with `taken`, done until others let it be, `tries` times at most; of these and the one
    `before`, if there was one, whichever was the least disturbed."""
    best = dict(before) if before else None
    for _ in range(tries):
        if best is not None and not _disturbed(best):
            break
        rest()
        now = {**work(), "taken": datetime.now(UTC).isoformat(timespec="seconds")}
        if best is None or (now["busy"] or 0) < (best["busy"] or 0):
            best = now
    assert best is not None
    return best


def _disturbed(result: Mapping[str, Any]) -> bool:
    return (result["busy"] or 0) > BUSY


def rest(patience: float | None = None) -> None:
    """Wait until others rest, not longer than `patience` seconds."""
    end = time.monotonic() + (PATIENCE if patience is None else patience)
    while time.monotonic() < end:
        elsewhere = Elsewhere()
        time.sleep(LOOK)
        if not elsewhere.disturbing:
            return
