"""The answers are the library's own: alone, in chunks, in a ragged batch, greedy and sampled. All in fp32."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import run as story
from engine.cache import RunCache
from engine.measure import clock
from engine.model.tap import Pass
from engine.run import admit, passes
from engine.settings import Settings
from engine.trace import Chose, Event, Prefilled
from tests.engine import tiny

LONG = tiny.PAPER[:70]
SHORT = "Luna"
SAMPLED = {"temperature": 0.9, "top_k": 40, "top_p": 0.95, "seed": 5}


def ids_of(kind: str, settings: Settings) -> list[int]:
    return [token.id for token in tiny.model(kind).text.prompt(settings).tokens]


def chosen(events: list[Event]) -> list[int]:
    return [event.token.id for event in events if isinstance(event, Chose)]


def generated(kind: str, ids: list[int], attention: str, **how: Any) -> tuple[int, ...]:
    """What the library's own `generate` answers."""
    with torch.random.fork_rng():
        torch.manual_seed(how.pop("seed", 0))
        output = tiny.network(kind, attention).generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=12, **how
        )
    return tuple(output[0, len(ids) :].tolist())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("prompt", [LONG, SHORT])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_greedy_ids_are_those_of_generate(kind: str, prompt: str, attention: str) -> None:
    settings = tiny.raw(prompt)
    assert tiny.sit(kind, settings).output_ids == generated(kind, ids_of(kind, settings), attention, do_sample=False)


@pytest.mark.parametrize(
    "how",
    [SAMPLED, {"temperature": 1.0, "seed": 3}, {"temperature": 2.5, "top_p": 0.5}, {"temperature": 0.5, "top_k": 3}],
)
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_sampled_ids_are_those_of_generate_with_the_same_seed(kind: str, how: dict[str, Any]) -> None:
    settings = tiny.raw(LONG, **how)
    theirs = {"top_k": 0, "top_p": 1.0, **how}
    assert tiny.sit(kind, settings).output_ids == generated(
        kind, ids_of(kind, settings), "sdpa", do_sample=True, **theirs
    )


def test_a_temperature_too_small_to_divide_by_is_greedy() -> None:
    assert tiny.sit("llama", tiny.raw(temperature=1e-300)).output_ids == tiny.sit("llama", tiny.raw()).output_ids


def our_logits(kind: str, ids: list[int], cuts: list[int]) -> Tensor:
    """Logits after each piece of `ids` cut at `cuts`, one pass per piece."""
    model = tiny.model(kind)
    cache = RunCache(model.shape, len(ids))
    logits = []
    for start, stop in zip([0, *cuts], [*cuts, len(ids)], strict=True):
        one = Pass([cache], stop - start)
        logits.append(model.forward([ids[start:stop]], one))
        cache.length = stop
    return torch.cat(logits)


@pytest.mark.parametrize("cuts", [[5], [8], [9], [20], [7, 8, 9, 30], [16, 17, 33, 39], list(range(1, 12))])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_pieces_of_any_size_give_the_logits_of_the_whole(kind: str, cuts: list[int]) -> None:
    """Pieces that end inside and outside the window of 8, and single tokens: cached equals uncached."""
    ids = ids_of(kind, tiny.raw(LONG))
    assert len(ids) > 40 > tiny.WINDOW
    with torch.inference_mode():
        expected = tiny.network(kind)(torch.tensor([ids])).logits[0, [cut - 1 for cut in [*cuts, len(ids)]]]
    assert (our_logits(kind, ids, cuts) - expected).abs().max() <= 1e-5 * expected.abs().max()


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 8, 9, 40])
@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
def test_a_prompt_read_in_chunks_gets_the_same_answer(kind: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another run writes, prefill goes in chunks; what comes out is the same, step by step."""
    monkeypatch.setattr(passes, "CHUNK", size)
    model, alone = replace(tiny.model(kind), end_ids=frozenset()), tiny.sit(kind, tiny.raw(LONG))
    writer = admit("writer", tiny.raw(SHORT, max_new_tokens=60), model, clock.now())
    told: dict[str, list[Event]] = {"writer": [], "reader": []}
    story.step(model, [writer], lambda run, event: told[run.id].append(event))
    reader = admit("reader", tiny.raw(LONG, max_new_tokens=len(alone.chosen)), model, clock.now())
    tiny.drive([writer, reader], told)
    read = [event for event in told["reader"] if isinstance(event, Prefilled)]
    assert [event.start for event in read] == list(range(0, len(reader.ids), size))[: len(read)]
    assert len(read) > 1 and read[-1].stop == len(reader.ids)
    assert tuple(reader.chosen) == alone.output_ids
    assert tuple(writer.chosen) == tuple(chosen(told["writer"]))
    for mine, theirs in zip((e for e in told["reader"] if isinstance(e, Chose)), alone.chosen, strict=True):
        assert mine.probability == pytest.approx(theirs.probability, rel=1e-4)
        assert mine.entropy == pytest.approx(theirs.entropy, abs=1e-4)


PROMPTS = [LONG, SHORT, "a", "今天天气如何？", LONG[:17]]


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, SAMPLED])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_run_in_a_ragged_batch_answers_as_it_would_alone(kind: str, how: dict[str, Any]) -> None:
    exams = [tiny.raw(prompt, **how | ({"seed": seed} if how else {})) for seed, prompt in enumerate(PROMPTS)]
    runs = [tiny.exam(kind, exam, str(number)) for number, exam in enumerate(exams)]
    told = tiny.drive(runs)
    assert max(event.together for events in told.values() for event in events if event.type == "decoded") == len(runs)
    for run, exam in zip(runs, exams, strict=True):
        assert tuple(run.chosen) == tiny.sit(kind, exam).output_ids


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_logits_in_a_ragged_batch_are_those_alone(kind: str) -> None:
    model = tiny.model(kind)
    lists = [ids_of(kind, tiny.raw(prompt)) for prompt in PROMPTS]
    caches = []
    for ids in lists:
        caches.append(RunCache(model.shape, len(ids) + 1))
        model.forward([ids], Pass([caches[-1]], len(ids)))
        caches[-1].length = len(ids)
    batch = Pass(caches, 1)
    together = model.forward([[number] for number in range(len(lists))], batch)
    for number, ids in enumerate(lists):
        with torch.inference_mode():
            expected = tiny.network(kind)(torch.tensor([[*ids, number]])).logits[0, -1]
        assert (together[number] - expected).abs().max() <= 1e-4
