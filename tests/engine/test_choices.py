"""A choice made again, stage by stage, ends in the library's own distribution and draws what was drawn."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import LongTensor, Tensor
from transformers import GenerationConfig

from engine.jobs import choices
from engine.run import Run, complete
from engine.settings import Keeping, Refusal
from engine.trace import Chose
from tests.engine import tiny

WARM: dict[str, Any] = {
    "temperature": 1.3, "top_k": 40, "top_p": 0.9, "min_p": 0.03, "repetition_penalty": 1.4, "seed": 7,
}  # fmt: skip
OFF: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
ORDER = ["model", "repetition_penalty", "temperature", "top_k", "top_p", "min_p"]


@cache
def finished(kind: str, **settings: Any) -> tuple[Run, tuple[Chose, ...]]:
    run = tiny.exam(kind, tiny.raw(tiny.PAPER[:50], **settings))
    return run, complete(run).chosen


def at_once(kind: str, ids: list[int], settings: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The library's own logits after `ids`, and its own processors for these settings applied to them at once."""
    network = tiny.network(kind)
    with torch.inference_mode():
        logits = network(torch.tensor([ids]), use_cache=False).logits[:, -1].float()
    config = GenerationConfig(
        do_sample=True, temperature=settings["temperature"], top_k=settings["top_k"], top_p=settings["top_p"],
        min_p=settings["min_p"] or None, repetition_penalty=settings["repetition_penalty"],
    )  # fmt: skip
    config._eos_token_tensor = None  # what `generate` sets before it asks
    processors = network._get_logits_processor(generation_config=config, input_ids_seq_length=len(ids))
    return logits[0], processors(LongTensor([ids]), logits)[0]


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("settings", [WARM, OFF, {**OFF, "top_k": 3}, {**OFF, "top_p": 0.3, "repetition_penalty": 2.0}])
def test_the_last_stage_is_what_the_librarys_processors_make_at_once(kind: str, settings: dict[str, Any]) -> None:
    run, _ = finished(kind)
    for step in (0, 3, len(run.chosen) - 1):
        told = choices.choose_again(run, step, settings)
        before = (run.ids + run.chosen)[: len(run.ids) + step]
        logits, scores = at_once(kind, before, settings)
        ids = [token for token, _, _ in told["candidates"]]
        first, last = told["stages"][0], told["stages"][-1]
        assert first["probabilities"] == pytest.approx(logits.softmax(-1)[ids].tolist(), abs=1e-5)
        assert last["probabilities"] == pytest.approx(scores.softmax(-1)[ids].tolist(), abs=1e-5)
        assert last["left"] == int((scores > -torch.inf).sum())
        assert (
            torch.topk(scores, 5).indices.tolist()[: last["left"]]
            == [token for _, token in sorted(zip(last["probabilities"], ids, strict=True), reverse=True)][
                : min(5, last["left"])
            ]
        )


def test_every_setting_that_is_on_is_a_stage_in_the_order_of_generate() -> None:
    run, _ = finished("llama")
    assert [stage["name"] for stage in choices.choose_again(run, 2, WARM)["stages"]] == ORDER
    assert [stage["name"] for stage in choices.choose_again(run, 2, OFF)["stages"]] == ["model"]
    told = choices.choose_again(run, 2, {**OFF, "top_k": 3})
    assert [stage["left"] for stage in told["stages"]] == [tiny.VOCABULARY, 3]
    assert told["stages"][0]["entropy"] > told["stages"][1]["entropy"]


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("settings", [{}, WARM, {**WARM, "temperature": 0}, {"temperature": 1.7, "seed": 3}])
def test_with_its_own_settings_every_word_is_chosen_again(kind: str, settings: dict[str, Any]) -> None:
    run, chose = finished(kind, **settings)
    told = [choices.choose_again(run, step, {}) for step in range(len(run.chosen))]
    assert [one["drawn"] for one in told] == run.chosen == [one["token"] for one in told]
    for event, one in zip(chose, told, strict=True):
        ids = [token for token, _, _ in one["candidates"]]
        own = dict(zip(ids, one["stages"][0]["probabilities"], strict=True))
        assert ids[:3] == [candidate.id for candidate in event.candidates[:3]]
        assert own[event.token.id] == pytest.approx(event.probability, abs=1e-5)
        assert one["stages"][0]["entropy"] == pytest.approx(event.entropy, abs=1e-4)


def test_the_same_seed_draws_the_same_and_another_draws_otherwise() -> None:
    run, _ = finished("llama")
    drawn = [
        [choices.choose_again(run, 4, {**OFF, "temperature": 3.0, "seed": seed})["drawn"] for seed in range(12)]
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) > 3
    other, _ = finished("llama", temperature=3.0, seed=5)
    assert choices.choose_again(other, 0, {"seed": 5})["drawn"] == other.chosen[0]


def test_a_greedy_choice_ends_in_one_token_and_knows_the_penalty_only() -> None:
    run, _ = finished("llama")
    told = choices.choose_again(run, 5, {**WARM, "temperature": 0, "repetition_penalty": 1.5})
    assert [stage["name"] for stage in told["stages"]] == ["model", "repetition_penalty", "greedy"]
    last = dict(zip([token for token, *_ in told["candidates"]], told["stages"][-1]["probabilities"], strict=True))
    assert told["stages"][-1]["left"] == 1 and last[told["drawn"]] == 1 and sum(last.values()) == 1
    assert told["stages"][-1]["entropy"] == 0


def test_candidates_say_which_were_there_already() -> None:
    run, _ = finished("llama")
    told = choices.choose_again(run, 6, {})
    before = set((run.ids + run.chosen)[: len(run.ids) + 6])
    assert [(token, repeated) for token, _, repeated in told["candidates"]] == [
        (token, token in before) for token, *_ in told["candidates"]
    ]
    assert told["position"] == len(run.ids) + 5


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_choosing_again_writes_nothing(kind: str) -> None:
    run, _ = finished(kind)
    assert run.cache is not None
    before, length = run.cache._kv[..., : run.cache.length, :].clone(), run.cache.length
    choices.choose_again(run, 3, WARM)
    assert run.cache.length == length == run.lens.length
    assert torch.equal(before, run.cache._kv[..., :length, :])


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_reads_are_the_strongest_of_each_layers_heads(kind: str) -> None:
    run, _ = finished(kind)
    ids = torch.tensor([[*run.ids, *run.chosen[:-1]]])
    with torch.inference_mode():
        maps = tiny.network(kind)(ids, output_attentions=True, use_cache=False).attentions
    for row in (0, 9, run.lens.length - 1):
        expected = torch.stack([layer[0, :, row, : row + 1].amax(0) for layer in maps])
        torch.testing.assert_close(choices.reads_of(run.lens, row), expected, atol=1e-5, rtol=0)


BAD: list[tuple[int, dict[str, Any], str]] = [
    (-1, {}, "no_word"), (10**6, {}, "no_word"), (0, {"temperature": -1}, "out_of_range"),
    (0, {"temperature": float("nan")}, "out_of_range"), (0, {"top_p": 0}, "out_of_range"),
    (0, {"seed": -1}, "out_of_range"), (0, {"repetition_penalty": 0}, "out_of_range"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "settings", "code"), BAD)
def test_what_cannot_be_chosen_is_refused(step: int, settings: dict[str, Any], code: str) -> None:
    with pytest.raises(Refusal, match=code):
        choices.choose_again(finished("llama")[0], step, settings)


WAYS: list[dict[str, Any]] = [
    {"keeping": Keeping(last=10, first=2)}, {"keeping": Keeping(last=10, heavy=4)}, {"keeping": Keeping(block=4)},
    {"notes": False}, {"kernel": "math"}, {"heads_off": ((0, 1), (1, 2))}, {"draft": 3},
]  # fmt: skip


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_however_the_notes_are_kept_a_choice_comes_out_as_it_was_told(kind: str, way: dict[str, Any]) -> None:
    run, chose = finished(kind, **way)
    for step, event in enumerate(chose):
        told = choices.choose_again(run, step, {})
        own = dict(zip([token for token, *_ in told["candidates"]], told["stages"][0]["probabilities"], strict=True))
        assert [own[one.id] for one in event.candidates[:3]] == pytest.approx(
            [one.probability for one in event.candidates[:3]], abs=1e-5
        )
        assert told["drawn"] == event.token.id


def test_notes_squeezed_after_a_word_was_chosen_do_not_give_its_logits_again() -> None:
    run, chose = finished("llama", keeping=Keeping(dtype="int2"))
    with pytest.raises(Refusal, match="choice_differs"):
        choices.choose_again(run, 0, {})
    assert choices.choose_again(run, 1, {})["drawn"] == chose[1].token.id


def test_a_run_without_notes_cannot_choose_again() -> None:
    run = tiny.exam("llama", tiny.raw())
    with pytest.raises(Refusal, match="not_kept"):
        choices.choose_again(run, 0, {})
    run.allocate()
    with pytest.raises(Refusal, match="no_word"):
        choices.choose_again(run, 0, {})
    with pytest.raises(Refusal, match="no_row"):
        choices.reads_of(finished("llama")[0].lens, 10**6)
