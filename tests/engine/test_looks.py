"""Looks: rows asked for by query position, and refusal of anything that cannot be where a run looked."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from safetensors.numpy import save

from engine.trace.looks import FULL, Looks

ROWS, LAYERS, HEADS, PROMPT = 3, 2, 4, 5


def looks() -> Looks:
    """Every row looks at position 0 with 0.8, at itself with 0.2 - the two that a real row often has most of."""
    positions = np.zeros((ROWS, LAYERS, HEADS + 1, 8), np.uint16)
    weights = np.zeros_like(positions)
    positions[..., 1] = np.arange(PROMPT - 1, PROMPT - 1 + ROWS).reshape(-1, 1, 1)
    weights[..., 0], weights[..., 1] = round(0.8 * FULL), round(0.2 * FULL)
    return Looks(positions, weights)


def test_rows_are_asked_for_by_the_position_of_their_query() -> None:
    kept = looks()
    assert kept.row(1, 3, PROMPT - 1, PROMPT) == [(0, 0.8), (4, 0.2)]
    assert kept.row(0, None, PROMPT + 1, PROMPT) == [(0, 0.8), (6, 0.2)]


def test_the_mean_has_its_own_place() -> None:
    kept = looks()
    kept.positions[0, 1, HEADS, 0] = 2
    assert kept.row(1, None, PROMPT - 1, PROMPT)[0] == (2, 0.8)
    assert kept.row(1, HEADS - 1, PROMPT - 1, PROMPT)[0] == (0, 0.8)


@pytest.mark.parametrize(
    ("layer", "head", "row"),
    [
        (0, 0, PROMPT - 2),
        (0, 0, PROMPT - 1 + ROWS),
        (LAYERS, 0, PROMPT),
        (-1, 0, PROMPT),
        (0, HEADS, PROMPT),
        (0, -1, PROMPT),
    ],
)
def test_what_is_not_kept_is_not_made_up(layer: int, head: int, row: int) -> None:
    with pytest.raises(IndexError):
        looks().row(layer, head, row, PROMPT)


def test_bytes_come_back_the_same() -> None:
    kept = looks()
    data = kept.to_bytes()
    again = Looks.from_bytes(data)
    assert np.array_equal(again.positions, kept.positions)
    assert np.array_equal(again.weights, kept.weights)
    assert again.to_bytes() == data
    assert (again.rows, again.layers, again.heads) == (ROWS, LAYERS, HEADS)
    again.check(ROWS, LAYERS, HEADS, PROMPT)


def _safetensors(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


SMALL = np.zeros((1, 1, 2, 8), np.uint16)
HUGE = [2**40, 2**20, 2, 8]
NOT_LOOKS = {
    "empty": b"",
    "noise": b"\xff" * 64,
    "a header longer than the data": (2**62).to_bytes(8, "little") + b"{}",
    "one array": save({"positions": SMALL}),
    "another array": save({"positions": SMALL, "weights": SMALL, "more": SMALL}),
    "signed": save({"positions": SMALL.astype(np.int16), "weights": SMALL}),
    "floats": save({"positions": SMALL, "weights": SMALL.astype(np.float16)}),
    "two shapes": save({"positions": SMALL, "weights": SMALL[:0]}),
    "flat": save({"positions": SMALL.ravel(), "weights": SMALL.ravel()}),
    "nine kept": save({"positions": np.zeros((1, 1, 2, 9), np.uint16), "weights": np.zeros((1, 1, 2, 9), np.uint16)}),
    "no head": save({"positions": SMALL[:, :, :1], "weights": SMALL[:, :, :1]}),
    "a shape larger than the data": _safetensors(
        {name: {"dtype": "U16", "shape": HUGE, "data_offsets": [0, 0]} for name in ("positions", "weights")}
    ),
    "an unknown type": _safetensors(
        {name: {"dtype": "PICKLE", "shape": [0], "data_offsets": [0, 0]} for name in ("positions", "weights")}
    ),
}


@pytest.mark.parametrize("data", NOT_LOOKS.values(), ids=NOT_LOOKS.keys())
def test_what_are_no_looks_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        Looks.from_bytes(data)


def _ahead(kept: Looks) -> None:
    kept.positions[0, 0, 0, 1] = PROMPT


def _weakest_first(kept: Looks) -> None:
    kept.weights[0, 0, 0, 2] = kept.weights[0, 0, 0, 1] + 1


def _too_much(kept: Looks) -> None:
    kept.weights[0, 0, 0, :2] = FULL


@pytest.mark.parametrize("spoil", [_ahead, _weakest_first, _too_much])
def test_looks_that_cannot_be(spoil: Callable[[Looks], None]) -> None:
    kept = looks()
    spoil(kept)
    with pytest.raises(ValueError):
        kept.check(ROWS, LAYERS, HEADS, PROMPT)


@pytest.mark.parametrize("sizes", [(ROWS + 1, LAYERS, HEADS), (ROWS, LAYERS - 1, HEADS), (ROWS, LAYERS, HEADS + 1)])
def test_looks_of_another_run(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError):
        looks().check(*sizes, PROMPT)
