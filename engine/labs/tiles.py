"""Attention without its matrix: the online softmax, tile by tile, as the papers have it, to be looked at and tested.

The weights of n queries on n keys are an n × n matrix. Reading keys a tile at a time, a row needs only its largest
score so far, m, and the sum of exp(score − m) so far, l (Milakov & Gimelshein 2018): when a later tile brings a larger
score, what was summed before is scaled by exp(m − m'). FlashAttention (Dao et al. 2022) does so for a tile of queries
at a time, and with causality leaves out every tile that lies wholly above the diagonal.

The engine's runs use torch's fused kernel, not this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Tile:
    """What is at hand when one tile is done: rows [row, row_stop) against keys [column, column_stop)."""

    row: int
    row_stop: int
    column: int
    column_stop: int
    largest: Tensor
    """m: the largest score of each row so far, `(rows,)`."""
    total: Tensor
    """l: the sum of exp(score - m) of each row so far, `(rows,)`."""
    output: Tensor
    """The rows' output so far, not yet divided by l: `(rows, head_size)`."""


def tiles(query: Tensor, key: Tensor, value: Tensor, scale: float, size: int, window: int = 0) -> Iterator[Tile]:
    """Every tile of one head in the order it is worked through; `query`, `key`, `value` are `(positions, head_size)`.

    Position i sees j when j <= i and, with a window, i - j < window. Raises `ValueError` for a size below 1.
    """
    if size < 1:
        raise ValueError(size)
    n = query.shape[0]
    places = torch.arange(n, device=query.device)
    for row in range(0, n, size):
        rows = places[row : row + size, None]
        largest = query.new_full((rows.shape[0],), float("-inf"))
        total, output = torch.zeros_like(largest), query.new_zeros((rows.shape[0], value.shape[1]))
        first = max(0, row - window + 1) // size * size if window else 0
        for column in range(first, min(row + size, n), size):
            columns = places[None, column : column + size]
            seen = (columns <= rows) & ((rows - columns < window) if window else True)
            scores = (query[row : row + size] @ key[column : column + size].T * scale).masked_fill(~seen, float("-inf"))
            larger = torch.maximum(largest, scores.amax(1))
            # A row that has seen nothing yet has no largest score; -inf - -inf would be no number.
            known = torch.where(larger.isinf(), 0, larger)
            weights, before = (scores - known[:, None]).exp(), (largest - known).exp()
            total = total * before + weights.sum(1)
            output = output * before[:, None] + weights @ value[column : column + size]
            largest = larger
            yield Tile(row, min(row + size, n), column, min(column + size, n), largest, total, output)


def tiled(query: Tensor, key: Tensor, value: Tensor, scale: float, size: int, window: int = 0) -> Tensor:
    """The attention's output `(positions, head_size)`, by tiles."""
    result = torch.empty_like(query[:, : value.shape[1]])
    for tile in tiles(query, key, value, scale, size, window):
        result[tile.row : tile.row_stop] = tile.output / tile.total[:, None]
    return result


def naive(query: Tensor, key: Tensor, value: Tensor, scale: float, window: int = 0) -> Tensor:
    """The same as the formula stands, with the whole matrix; computed in float64."""
    places = torch.arange(query.shape[0], device=query.device)
    far = places[:, None] - places[None, :]
    seen = (far >= 0) & ((far < window) if window else True)
    scores = (query.double() @ key.double().T * scale).masked_fill(~seen, float("-inf"))
    return (scores.softmax(-1) @ value.double()).to(query.dtype)
