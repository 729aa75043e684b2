"""Attention recomputed from the tape is what the library's eager attention shows, at every row of prompt and answer."""

from __future__ import annotations

import struct
from functools import cache

import pytest
import torch
from torch import Tensor

from engine import run as story
from engine.cache.lens import quantise
from engine.jobs import attention
from engine.model import tap
from engine.run import Run, complete, passes
from engine.settings import Refusal
from engine.trace.looks import FULL, KEPT, Looks
from tests.engine import tiny

CLOSE = {"atol": 1e-5, "rtol": 0}


@cache
def finished(kind: str, prompt: str = tiny.PAPER[:50]) -> Run:
    run = tiny.exam(kind, tiny.raw(prompt))
    complete(run)
    return run


@cache
def eager(kind: str, ids: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Every layer's maps `(heads, n, n)`, as the library makes them."""
    with torch.inference_mode():
        output = tiny.network(kind)(torch.tensor([ids]), output_attentions=True, use_cache=False)
    return tuple(layer[0] for layer in output.attentions)


def maps_of(kind: str, run: Run) -> tuple[Tensor, ...]:
    return eager(kind, (*run.ids, *run.chosen[:-1]))


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_rows_of_the_whole_prompt_and_of_every_decode_step_are_eager_attention(kind: str) -> None:
    run = finished(kind)
    expected, length = maps_of(kind, run), len(run.ids) + len(run.chosen) - 1
    assert run.lens.length == length > len(run.ids) + 3 > 3 * tiny.WINDOW
    for layer, maps in enumerate(expected):
        torch.testing.assert_close(
            run.lens.rows(layer, 0, len(run.ids)), maps[:, : len(run.ids), : len(run.ids)], **CLOSE
        )
        for row in range(length):
            torch.testing.assert_close(run.lens.rows(layer, row, row + 1)[:, 0], maps[:, row, : row + 1], **CLOSE)
        torch.testing.assert_close(run.lens.rows(layer, len(run.ids) - 2, length), maps[:, len(run.ids) - 2 :], **CLOSE)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_head_a_mean_and_a_map_are_eager_attention(kind: str) -> None:
    run = finished(kind)
    for layer, maps in enumerate(maps_of(kind, run)):
        torch.testing.assert_close(run.lens.map(layer, None), maps.mean(0), **CLOSE)
        torch.testing.assert_close(run.lens.row(layer, None, 20), maps[:, 20, :21].mean(0), **CLOSE)
        for head in range(tiny.SIZES["num_attention_heads"]):
            torch.testing.assert_close(run.lens.map(layer, head), maps[head], **CLOSE)
            torch.testing.assert_close(run.lens.row(layer, head, 20), maps[head, 20, :21], **CLOSE)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_rows_sum_to_one_and_nothing_looks_ahead_or_behind_its_window(kind: str) -> None:
    run = finished(kind)
    for layer, window in enumerate(run.model.shape.windows):
        weights = run.lens.map(layer, 0)
        torch.testing.assert_close(weights.sum(-1), torch.ones(len(weights)), **CLOSE)
        assert torch.equal(weights, weights.tril())
        assert not window or torch.equal(weights, weights.triu(1 - window))
    assert tuple(run.model.shape.windows) == ((8, 0, 8) if kind == "gemma3" else (0, 0, 0))


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
def test_a_prompt_read_in_chunks_has_the_same_maps(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "CHUNK", 11)
    writer, reader = (tiny.exam(kind, tiny.raw(text, max_new_tokens=9), text) for text in ("Luna", tiny.PAPER[:50]))
    story.step(writer.model, [writer], lambda run, event: None)
    tiny.drive([writer, reader], {"Luna": [], reader.id: []})
    for layer, maps in enumerate(maps_of(kind, reader)):
        torch.testing.assert_close(reader.lens.map(layer, None), maps.mean(0), **CLOSE)


def test_seven_prompt_tokens_and_four_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries of 7, 1, 1, 1 tokens; rows 7x7, then 1x8, 1x9, 1x10; the newest token has none, ten notes are kept."""
    asked: list[int] = []
    real = tap.Pass.attended
    monkeypatch.setattr(tap.Pass, "attended", lambda self, layer, q: (asked.append(q.shape[2]), real(self, layer, q)))
    run = tiny.exam("llama", tiny.raw("abcdefg", max_new_tokens=4))
    complete(run)
    layers = run.model.shape.layers
    assert len(run.ids) == 7 and len(run.chosen) == 4
    assert asked == [7] * layers + [1] * (3 * layers)
    assert run.cache is not None and run.cache.length == 10 == run.lens.length
    assert run.lens.rows(0, 0, 7).shape == (4, 7, 7)
    assert [run.lens.row(0, 0, row).shape[0] for row in (7, 8, 9)] == [8, 9, 10]
    with pytest.raises(Refusal, match="no_row"):
        run.lens.row(0, 0, 10)


def test_repeated_words_are_rows_of_their_own() -> None:
    run = tiny.exam("llama", tiny.raw("a,a", max_new_tokens=1))
    complete(run)
    assert run.ids[0] == run.ids[2] and run.lens.map(0, 0).shape == (3, 3)


@pytest.mark.parametrize(
    ("layer", "head", "row", "code"),
    [
        (3, 0, 0, "no_layer"),
        (-1, 0, 0, "no_layer"),
        (0, 4, 0, "no_head"),
        (0, -1, 0, "no_head"),
        (0, 0, -1, "no_row"),
        (0, 0, 10**6, "no_row"),
    ],
)
def test_what_is_not_there_is_refused_by_name(layer: int, head: int, row: int, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        finished("llama").lens.row(layer, head, row)
    assert refused.value.code == code


def test_before_anything_is_read_there_is_nothing_to_see() -> None:
    with pytest.raises(Refusal, match="not_kept"):
        _ = tiny.exam("llama", tiny.raw()).lens


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_looks_are_the_strongest_positions_of_the_rows_that_chose(kind: str) -> None:
    run = finished(kind)
    kept = attention.looks_of(run)
    looks, maps = Looks.from_bytes(kept["looks"]), maps_of(kind, run)
    heads, prompt = run.model.shape.heads, len(run.ids)
    looks.check(len(run.chosen), run.model.shape.layers, heads, prompt)
    for row in range(prompt - 1, prompt - 1 + len(run.chosen)):
        for layer, whole in enumerate(maps):
            for head, weights in [*enumerate(whole[:, row]), (None, whole[:, row].mean(0))]:
                best = weights.topk(KEPT).values
                found = torch.tensor([weight for _, weight in looks.row(layer, head, row, prompt)])
                torch.testing.assert_close(found, best[: len(found)], atol=1e-5 + 1 / FULL, rtol=0)
    layer, head = kept["lens"]
    assert 0 <= layer < run.model.shape.layers and 0 <= head < heads


def test_the_head_shown_first_is_the_one_that_looked_at_the_words_it_wrote() -> None:
    run = tiny.exam("llama", tiny.raw("abc"))
    run.ids, run.chosen = [10, 11, 12], [20, 11, 21]
    positions = torch.zeros((3, 3, 5, KEPT), dtype=torch.long)
    weights = torch.zeros(positions.shape)
    positions[1, 1, 3, 0], weights[1, 1, 3, 0] = 1, 0.6  # layer 1, head 3 looks at 11 as it writes 11
    positions[0, 0, 0, 0], weights[0, 0, 0, 0] = 1, 1.0  # layer 0, head 0 looks at 11 as it writes 20
    positions[1, 2, 4, 0], weights[1, 2, 4, 0] = 1, 1.0  # a mean is no head
    assert attention.copying_head(run, positions, weights) == (1, 3)


def test_a_run_that_chose_nothing_has_no_looks() -> None:
    run = tiny.exam("llama", tiny.raw())
    run.stop_reason = "stopped"
    complete(run)
    with pytest.raises(Refusal, match="not_kept"):
        attention.looks_of(run)


def test_quantised_weights_are_little_endian_and_off_by_half_a_step_at_most() -> None:
    weights = torch.tensor([0.0, 1.0, 0.5, 1 / 3, 1.0000001])
    assert struct.unpack("<5H", quantise(weights, 65535)) == (0, 65535, 32768, 21845, 65535)
    assert list(quantise(weights, 255)) == [0, 255, 128, 85, 255]
