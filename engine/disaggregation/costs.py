"""What one machine takes, as measured: seconds of reading by length, of a decode step by batch and context."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.measure.fit import fit_growing


@dataclass(frozen=True, slots=True)
class Costs:
    """One machine. Whoever asks for more than was measured must say so: `lengths`, `outside`."""

    fixed: float
    """Seconds of a prefill pass of no tokens: what every pass takes, however short."""
    linear: float
    """Seconds per token,"""
    square: float
    """and per token squared (attention)."""
    lengths: tuple[int, int]
    """Shortest and longest paper that was measured, in tokens."""
    steps: tuple[tuple[float, float], ...]
    """Of a decode step of 1, 2, … answers together: seconds at `contexts[0]` positions each, and at `contexts[1]`."""
    contexts: tuple[int, int]
    note: int
    """Bytes of K and V of one position."""

    @property
    def most(self) -> int:
        """Answers that were measured together: no machine writes more at a time."""
        return len(self.steps)

    def read(self, start: int, stop: int) -> float:
        """Seconds of a prefill pass over positions [start, stop) behind those before: a + b n + c n² in one pass, and
        a once more for each pass when it is done in several."""
        return self.fixed + self.linear * (stop - start) + self.square * (stop * stop - start * start)

    def step(self, batch: int, context: float) -> float:
        """Seconds of a decode step of `batch` answers that see `context` positions each on average; straight lines
        between what was measured, and beyond it the nearest that was. Attention reads each answer's own notes, so the
        average is enough."""
        near, far = self.contexts
        low, high = self.steps[batch - 1]
        share = (min(max(context, near), far) - near) / (far - near)
        return low + share * (high - low)

    def outside(self, context: float) -> bool:
        """Whether a decode step with so many positions lies beyond what was measured: the nearest is taken then."""
        return not self.contexts[0] <= context <= self.contexts[1]

    def travel(self, positions: float, bandwidth: float, latency: float) -> float:
        """Seconds that the notes of so many positions take over a link of `bandwidth` bits per second."""
        return latency + 8 * self.note * positions / bandwidth


def costs_of(reads: Sequence[tuple[int, float]], steps: Mapping[tuple[int, int], float], note: int) -> Costs | None:
    """From `reads` (tokens, seconds) and `steps` {(batch, context): seconds}; None with fewer than three lengths, two
    contexts, or two batches at both, the first of them 1. The curve through `reads` is that of
    `engine.measure.fit.fit_growing`."""
    contexts = sorted({context for _, context in steps})
    if len({n for n, _ in reads}) < 3 or len(contexts) < 2:
        return None
    near, far = contexts[0], contexts[-1]
    batches = sorted(batch for batch, context in steps if context == near and (batch, far) in steps)
    if len(batches) < 2 or batches[0] != 1:
        return None
    curve = fit_growing(reads)
    lines = [_between(batches, [steps[batch, context] for batch in batches]) for context in (near, far)]
    lengths = (min(n for n, _ in reads), max(n for n, _ in reads))
    return Costs(curve.a, curve.b, curve.c, lengths, tuple(zip(*lines, strict=True)), (near, far), note)


def _between(batches: Sequence[int], seconds: Sequence[float]) -> list[float]:
    """Seconds for every batch from 1 to the largest, on straight lines between those measured."""
    lines = []
    for batch in range(1, batches[-1] + 1):
        index = max(1, bisect_left(batches, batch))
        (low, high), (first, last) = list(pairwise(batches))[index - 1], list(pairwise(seconds))[index - 1]
        lines.append(first + (batch - low) / (high - low) * (last - first))
    return lines
