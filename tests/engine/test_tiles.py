"""The online softmax by tiles is attention: against the formula, against torch's kernel, and its invariants."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from engine.labs.tiles import naive, tiled, tiles


def some(n: int, size: int = 16, seed: int = 0, spread: float = 1.0) -> tuple[torch.Tensor, ...]:
    chance = torch.Generator().manual_seed(seed)
    return tuple(torch.randn((n, size), generator=chance) * spread for _ in range(3))


@given(n=st.integers(1, 70), size=st.integers(1, 80), window=st.sampled_from([0, 1, 5, 64]), seed=st.integers(0, 99))
def test_any_tile_gives_what_the_formula_gives(n: int, size: int, window: int, seed: int) -> None:
    """To 1e-5 in fp32; scores that lie far apart need more digits, and then it is so to 1e-12."""
    for inputs, most in ((some(n, seed=seed), 1e-5), ([one.double() for one in some(n, seed=seed, spread=3)], 1e-12)):
        by_tiles = tiled(*inputs, 0.25, size, window)
        assert (by_tiles - naive(*inputs, 0.25, window)).abs().max() <= most


def test_the_formula_is_torchs_own() -> None:
    query, key, value = some(50)
    torchs = scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True, scale=0.25)[0]
    assert (torchs - naive(query, key, value, 0.25)).abs().max() <= 1e-5


def test_maximum_and_sum_are_running_ones() -> None:
    query, key, value = some(40)
    scores = (query @ key.T * 0.25).masked_fill(torch.ones(40, 40).triu(1).bool(), float("-inf"))
    for tile in tiles(query, key, value, 0.25, 16):
        seen = scores[tile.row : tile.row_stop, : tile.column_stop]
        assert torch.allclose(tile.largest, seen.amax(1))
        assert torch.allclose(tile.total, (seen - seen.amax(1, keepdim=True)).exp().sum(1), atol=1e-5)


def test_tiles_above_the_diagonal_are_never_worked_through() -> None:
    places = [(tile.row, tile.column) for tile in tiles(*some(40), 1.0, 16)]
    assert places == [(0, 0), (16, 0), (16, 16), (32, 0), (32, 16), (32, 32)]
    windowed = [(tile.row, tile.column) for tile in tiles(*some(40), 1.0, 16, window=8)]
    assert windowed == [(0, 0), (16, 0), (16, 16), (32, 16), (32, 32)]


def test_large_scores_do_not_overflow() -> None:
    query, key, value = some(30, spread=60)
    assert tiled(query, key, value, 1.0, 7).isfinite().all()


def test_a_tile_has_at_least_one_row() -> None:
    with pytest.raises(ValueError, match="0"):
        list(tiles(*some(3), 1.0, 0))
