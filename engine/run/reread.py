"""Writing without the notes: for every word, paper and answer so far go through the model once more, whole.

What the KV cache saves is seen when it is not used. The arithmetic is the same, so greedy answers are (rounding aside)
the same; only the work differs. K and V are made in every pass, used in that pass alone, and count as no notes; the
last pass's stay for the lens.
"""

from __future__ import annotations

from torch import Tensor

from engine.cache import Tape
from engine.measure import clock
from engine.model.tap import Pass
from engine.run import sampling
from engine.run.run import Run
from engine.settings import Refusal
from engine.trace import KV, Decoded

MOST = 1024
"""Positions a run without notes may come to: between two of its words others wait for a whole prefill."""


def check(run: Run) -> None:
    """Raises `Refusal("too_long_without_notes")`."""
    if not run.settings.notes and len(run.ids) + run.limit > MOST:
        raise Refusal("too_long_without_notes", tokens=len(run.ids) + run.limit, bound=MOST)


def snapshot(run: Run) -> KV:
    """What a run's notes take now: nothing for one that keeps none."""
    assert run.cache is not None
    kv = run.cache.snapshot()
    return kv if run.settings.notes else KV(0, 0, kv.allocated)


def next_of(runs: list[Run]) -> Run:
    """Whose turn it is to read again: who has waited longest. One a turn, so that everybody else's words go on."""
    return min(runs, key=lambda run: run.read_at)


def forget(run: Run) -> list[int]:
    """Throw away what the last pass made; all that is to be read again: `run`'s prompt and answer so far."""
    cache, _ = run.allocate()
    cache.length = 0
    run.tape = Tape(run.model.shape, 0)
    return run.ids + run.chosen


def told(run: Run, one: Pass, logits: Tensor) -> tuple[Decoded, sampling.Measured]:
    """What there is to tell of the pass `one` over everything so far, which is then kept for the lens."""
    cache, tape = run.allocate()
    measured = sampling.measure(logits)
    keys, values = cache.norm_bytes(slice(None), one.tokens - 1, one.tokens)
    seconds = tuple(one.marks.seconds())
    one.commit_chunk(tape)
    run.read_at = clock.now()
    event = Decoded(
        run.at, one.tokens - 1, sum(seconds), seconds[:-1], seconds[-1], snapshot(run),
        keys.numpy().tobytes(), values.numpy().tobytes(), 1, one.tokens,
    )  # fmt: skip
    return event, measured
