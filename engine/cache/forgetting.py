"""Notes that are forgotten once the prompt is read: the first few stay, the newest stay, and those looked at most.

The first and the newest are StreamingLLM's sink and window (Xiao et al. 2023); those looked at most are the heavy
hitters of H2O (Zhang et al. 2023), counted from the prompt's last rows on as SnapKV does (Li et al. 2024). Positions
are forgotten in all layers and heads at once, so that a column is there or is not; the papers choose for every head.
What is kept keeps its position's rotation.

A forgotten column is no longer read, and no longer counts as notes; its K stays for the lens alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.cache import ByLayer, RunCache, Shape
from engine.settings import Keeping


class ForgettingCache(RunCache):
    """`kept`: positions that are still read, in order. `gone_at[p]`: the first row that does not see position p."""

    def __init__(self, shape: Shape, capacity: int, keeping: Keeping) -> None:
        super().__init__(shape, capacity)
        self.keeping = keeping
        self.kept = torch.zeros(0, dtype=torch.long)
        self.gone_at = torch.full((capacity,), capacity, dtype=torch.long)
        self._looked_at = torch.zeros(capacity)

    def commit(self, tokens: int) -> None:
        new = torch.arange(self.length, self.length + tokens)
        self.kept = torch.cat((self.kept, new))
        self.length += tokens

    def seen_next(self) -> Sequence[tuple[Tensor, Tensor]]:
        return ByLayer(self.shape.layers, self._seen)

    def _seen(self, layer: int) -> tuple[Tensor, Tensor]:
        row, window = self.length, self.shape.windows[layer]
        there = torch.cat((self.gone_at[:row] > row, torch.tensor([True])))
        if window:
            there[: max(0, row - window + 1)] = False
        places = there.nonzero()[:, 0]
        both = self._kv[layer].index_select(2, places.to(self._kv.device))[:, None]
        return both[0], both[1]

    def sees(self, layer: int, start: int, stop: int) -> Tensor:
        rows = torch.arange(start, stop)[:, None]
        return super().sees(layer, start, stop) & (self.gone_at[:stop] > rows).to(self.shape.device)

    def bytes_at(self, length: int) -> int:
        return self.shape.bytes_at(len(self.kept) if length == self.length else length)

    def look(self, weights: Tensor) -> None:
        """Add how much new rows looked at each position: `(positions,)`."""
        self._looked_at[: weights.shape[0]] += weights

    def forget(self) -> list[int]:
        """Let go what is not to be kept; the positions that went."""
        keep, length = self.keeping, self.length
        must = (self.kept < keep.first) | (self.kept >= length - keep.last)
        rest = self.kept[~must]
        heaviest = self._looked_at[rest].topk(min(keep.heavy, len(rest))).indices
        stays = torch.zeros(len(rest), dtype=torch.bool).index_fill_(0, heaviest, True)
        gone = rest[~stays]
        self.gone_at[gone] = length
        self.kept = torch.cat((self.kept[must], rest[stays])).sort().values
        return [int(position) for position in gone]
