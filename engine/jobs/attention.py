"""What can be asked of the engine beside runs: small pieces of work between two steps. Results are plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.cache.lens import quantise
from engine.run import Run
from engine.settings import Refusal
from engine.trace.looks import FULL, Looks

if TYPE_CHECKING:
    from engine.jobs.desk import Desk

Job = Callable[..., Any]


def attention(desk: Desk, run: str, layer: int, row: int, head: int | None = None) -> tuple[int, int, bytes]:
    """One attention row: `(1, row + 1, uint16 values)`, weight = value / 65535. Without head: the layer's mean."""
    weights = desk.run(run).lens.row(layer, head, row)
    return 1, row + 1, quantise(weights, 65535)


def attention_map(desk: Desk, run: str, layer: int, head: int | None = None) -> tuple[int, int, bytes]:
    """All rows of one head: `(n, n, uint8 values)`, weight = value / 255."""
    weights = desk.run(run).lens.map(layer, head)
    return weights.shape[0], weights.shape[1], quantise(weights, 255)


def looks(desk: Desk, run: str) -> dict[str, Any]:
    """What a saved run keeps of its attention, and the head to show first.

    `{"looks": safetensors bytes (engine.trace.looks), "lens": (layer, head)}`.
    """
    return looks_of(desk.run(run))


def looks_of(run: Run) -> dict[str, Any]:
    """See `looks`. Raises `Refusal`: `not_kept` for a run that chose nothing, `too_long_to_keep` beyond the 65,536
    positions that 16 bits can tell apart."""
    lens = run.lens
    if not run.chosen:
        raise Refusal("not_kept")
    first = len(run.ids) - 1
    if lens.length > 65_536:
        raise Refusal("too_long_to_keep", tokens=lens.length, bound=65_536)
    positions, weights = lens.looks(range(first, first + len(run.chosen)))
    kept = Looks(positions.numpy().astype("<u2"), (weights.numpy() * FULL).round().astype("<u2"))
    return {"looks": kept.to_bytes(), "lens": copying_head(run, positions, weights)}


def copying_head(run: Run, positions: Tensor, weights: Tensor) -> tuple[int, int]:
    """The (layer, head) that looked most at the very words it was about to write: a retrieval head (Wu et al. 2024).

    For each chosen token the weight on earlier positions that hold the same token is summed; the head with the
    largest sum is worth showing first, since its picture explains the answer.
    """
    ids = torch.tensor(run.ids + run.chosen)
    targets = torch.tensor(run.chosen[: positions.shape[0]])[:, None, None, None]
    found = (weights * (ids[positions] == targets)).sum((0, 3))[:, :-1]
    layer, head = divmod(int(found.argmax()), found.shape[1])
    return layer, head
