"""What is found by looking into a run is what the library's own eager attention and hidden states hold."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor

from engine.jobs import explore
from engine.measure import clock
from engine.model import wrap
from engine.run import Run, admit, complete
from engine.settings import Refusal
from tests.engine import tiny

CLOSE = {"atol": 1e-5, "rtol": 0}


@cache
def finished(kind: str) -> Run:
    run = tiny.exam(kind, tiny.raw(tiny.PAPER[:50]))
    complete(run)
    return run


@cache
def eager(kind: str) -> tuple[tuple[Tensor, ...], Tensor]:
    """The library's maps `(heads, n, n)` per layer, and each layer's logits at the prompt's last position."""
    run, network = finished(kind), tiny.network(kind)
    ids = torch.tensor([[*run.ids, *run.chosen[:-1]]])
    with torch.inference_mode():
        output = network(ids, output_attentions=True, output_hidden_states=True, use_cache=False)
        _, norm = explore._body(run.model)
        states = [state[0, len(run.ids) - 1] for state in output.hidden_states[1:-1]]
        logits = network.get_output_embeddings()(norm(torch.stack(states)))
    return tuple(layer[0] for layer in output.attentions), logits


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_every_head_is_ranked_by_its_weight(kind: str) -> None:
    maps, _ = eager(kind)
    for row, column in ((20, 3), (20, 20), (finished(kind).lens.length - 1, 0), (0, 0)):
        ranked = explore.pair_of(finished(kind).lens, row, column)
        assert len(ranked) == len({(layer, head) for layer, head, _ in ranked}) == 12
        assert [weight for *_, weight in ranked] == sorted((weight for *_, weight in ranked), reverse=True)
        for layer, head, weight in ranked:
            assert weight == pytest.approx(float(maps[layer][head, row, column]), abs=1e-5)


def planted(layer: int, head: int, row: int, column: int, prompt: str) -> Run:
    """A run of a model whose one head was made to look from `row` to `column`; all others look almost evenly.

    Its query answers to the row's hidden state and its key to the column's, in the pair of dimensions that rotary
    embeddings turn least.
    """
    config = tiny.CONFIGS["llama"]()
    config.initializer_range = 0.02
    network = tiny.from_config(config)
    run = admit("", tiny.raw(prompt, max_new_tokens=1), wrap(network, tiny.tokenizer(), name="planted"), clock.now())
    states: list[Tensor] = []
    block, size = network.base_model.layers[layer], 8
    hook = block.input_layernorm.register_forward_hook(lambda _, __, output: states.append(output[0]))
    complete(run)
    hook.remove()
    group = head // 2 * 2
    with torch.no_grad():
        block.self_attn.q_proj.weight[group * size : (group + 2) * size] = 0
        block.self_attn.k_proj.weight[head // 2 * size : (head // 2 + 1) * size] = 0
        for weight, index, state in (
            (block.self_attn.q_proj.weight, head * size + 3, states[0][row]),
            (block.self_attn.k_proj.weight, head // 2 * size + 3, states[0][column]),
        ):
            weight[index] = 8 * state / state.square().sum()
    again = admit("", run.settings, run.model, clock.now())
    complete(again)
    return again


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (1, 2), (2, 3)])
def test_a_planted_head_is_found(layer: int, head: int) -> None:
    run = planted(layer, head, row=9, column=4, prompt="abcdefghijklm")
    (first, second, *_) = explore.pair_of(run.lens, 9, 4)
    assert first[:2] == (layer, head) and first[2] > 0.9
    assert second[2] < 0.3


def test_no_word_looks_ahead() -> None:
    with pytest.raises(Refusal, match="looks_ahead"):
        explore.pair_of(finished("llama").lens, 3, 4)
    with pytest.raises(Refusal, match="no_row"):
        explore.pair_of(finished("llama").lens, 10**6, 4)


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
@pytest.mark.parametrize("size", [1, 7, 32, 128])
def test_heads_in_small_are_rows_as_computed_and_the_largest_of_each_span(kind: str, size: int) -> None:
    maps, _ = eager(kind)
    length = maps[0].shape[-1]
    cells = min(size, length)
    stops = [0, *((cell + 1) * length // cells for cell in range(cells))]
    for layer, whole in enumerate(maps):
        pictures = explore.small_of(finished(kind).lens, layer, size)
        assert pictures.shape == (4, cells, cells)
        for row in range(cells):
            for column in range(cells):
                expected = whole[:, stops[row + 1] - 1, stops[column] : stops[column + 1]].amax(-1)
                torch.testing.assert_close(pictures[:, row, column], expected, **CLOSE)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_logit_lens_is_the_librarys_hidden_states_and_ends_in_what_was_said(kind: str) -> None:
    run, (_, logits) = finished(kind), eager(kind)
    said = explore.said_by_layers(run)
    assert (said["position"], said["token"]) == (len(run.ids) - 1, run.chosen[0])
    assert len(said["layers"]) == 3
    for layer, expected in zip(said["layers"], logits.softmax(-1), strict=False):
        best = expected.topk(explore.SAID)
        assert [index for index, *_ in layer["top"]] == best.indices.tolist()
        assert [probability for *_, probability in layer["top"]] == pytest.approx(best.values.tolist(), abs=1e-4)
        assert layer["probability"] == pytest.approx(float(expected[run.chosen[0]]), abs=1e-4)
        assert layer["rank"] == int((expected > expected[run.chosen[0]]).sum())
    assert said["layers"][-1]["rank"] == 0 and said["layers"][-1]["top"][0][0] == run.chosen[0]


def test_the_logit_lens_leaves_model_and_notes_as_they_were() -> None:
    run = finished("llama")
    assert run.cache is not None
    before = [(key.clone(), value.clone()) for key, value in zip(run.cache.keys, run.cache.values, strict=True)]
    length = run.cache.length
    explore.said_by_layers(run)
    assert run.cache.length == length == run.lens.length
    for (key, value), now_key, now_value in zip(before, run.cache.keys, run.cache.values, strict=True):
        assert torch.equal(key[:, :length], now_key[:, :length]) and torch.equal(
            value[:, :length], now_value[:, :length]
        )
    assert not any(module._forward_hooks for module in run.model.network.modules())


def test_a_run_that_read_nothing_has_no_logit_lens() -> None:
    run = tiny.exam("llama", tiny.raw())
    with pytest.raises(Refusal, match="not_kept"):
        explore.said_by_layers(run)
    run.allocate()
    with pytest.raises(Refusal, match="unfinished"):
        explore.said_by_layers(run)


def test_a_model_that_says_something_else_than_its_last_layer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "_body", lambda model: (model.network.base_model.layers, torch.nn.Identity()))
    with pytest.raises(Refusal, match="no_logit_lens"):
        explore.said_by_layers(finished("llama"))
