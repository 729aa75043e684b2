"""A fork goes on from another run's notes: nothing is read again, and the answer is the one a fresh run would give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.jobs import attention
from engine.measure import clock
from engine.model.text import StreamDecoder
from engine.run import Run, admit, complete
from engine.settings import Fork, Refusal, Settings
from engine.trace import Chose, Decoded, Layer, Prefilled, Reused, Trace
from engine.trace.invariants import check
from tests.engine import tiny

KEPT = 5


def parent_of(kind: str, **how: Any) -> Run:
    run = tiny.exam(kind, tiny.raw(**how), "first")
    complete(run)
    return run


def forked(parent: Run, kept: int, token: int, **how: Any) -> tuple[Run, Trace]:
    settings = replace(parent.settings, fork=Fork("first", kept, token), **how)
    run = admit("second", settings, parent.model, clock.now(), parent=parent)
    return run, complete(run)


def refusal(parent: Run | None, settings: Settings, kind: str = "llama") -> str:
    with pytest.raises(Refusal) as refused:
        admit("second", settings, tiny.model(kind), clock.now(), parent=parent)
    return refused.value.code


@pytest.mark.parametrize("kept", [0, 1, KEPT])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_fork_answers_what_the_library_makes_of_the_same_beginning(kind: str, kept: int) -> None:
    parent = parent_of(kind)
    token = parent.told[kept].candidates[1].id
    run, trace = forked(parent, kept, token)
    check(trace.events)
    beginning = [*parent.ids, *parent.chosen[:kept], token]
    with torch.inference_mode():
        theirs = tiny.network(kind).generate(
            torch.tensor([beginning]), attention_mask=torch.ones(1, len(beginning)), do_sample=False,
            max_new_tokens=parent.settings.max_new_tokens - kept - 1,
        )  # fmt: skip
    assert [*run.ids, *trace.output_ids] == theirs[0].tolist()
    assert trace.output_ids == tuple(run.chosen)


def test_a_fork_costs_no_prefill_and_says_so() -> None:
    parent = parent_of("llama")
    _, trace = forked(parent, KEPT, parent.told[KEPT].candidates[1].id)
    assert not [event for event in trace.events if isinstance(event, (Layer, Prefilled))]
    lengths = [event.position for event in trace.events if isinstance(event, Decoded)]
    assert lengths == list(range(len(parent.ids) + KEPT, len(parent.ids) + parent.limit - 1))
    reused = trace.reused
    assert isinstance(reused, Reused) and (reused.run, reused.stop) == ("first", len(parent.ids) + KEPT)
    assert reused.written == tuple(parent.told[:KEPT])
    decoder = StreamDecoder(parent.model.text, ())
    assert reused.text == "".join(decoder.push(index)[1] for index in parent.chosen[:KEPT])


def test_the_word_put_is_told_as_the_other_run_would_have() -> None:
    parent = parent_of("llama")
    there = parent.told[KEPT]
    _, trace = forked(parent, KEPT, there.candidates[3].id)
    first = trace.chosen[0]
    assert (first.probability, first.rank) == (there.candidates[3].probability, 3)
    assert (first.candidates, first.entropy) == (there.candidates, there.entropy)
    assert trace.ttft == first.at


@pytest.mark.parametrize("how", [{}, {"temperature": 1.5, "seed": 3}, {"temperature": 0.8, "repetition_penalty": 1.3}])
def test_putting_the_very_word_it_chose_gives_the_same_answer(how: dict[str, Any]) -> None:
    """Also where words are drawn: the random numbers go on from the same place."""
    parent = tiny.exam("llama", tiny.raw(**how), "first")
    text = complete(parent).output_text
    for kept in (0, KEPT, len(parent.chosen) - 1):
        run, trace = forked(parent, kept, parent.chosen[kept])
        assert run.chosen == parent.chosen
        assert trace.output_text == text
        again, _ = forked(run, min(kept + 1, len(parent.chosen) - 1), run.chosen[min(kept + 1, len(run.chosen) - 1)])
        assert again.chosen == parent.chosen


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_the_lens_sees_the_words_that_came_along(kind: str) -> None:
    parent = parent_of(kind)
    run, _ = forked(parent, KEPT, parent.chosen[KEPT])
    assert run.lens.length == parent.lens.length
    for row in (0, len(run.ids), run.lens.length - 1):
        assert torch.equal(run.lens.row(1, 2, row), parent.lens.row(1, 2, row))
    assert attention.looks_of(run) == attention.looks_of(parent)


def test_the_other_run_is_left_alone() -> None:
    parent = parent_of("llama")
    assert parent.cache is not None
    before = parent.cache._kv.clone()
    _, trace = forked(parent, 1, parent.told[1].candidates[2].id)
    assert torch.equal(before[..., : parent.cache.length, :], parent.cache._kv[..., : parent.cache.length, :])
    assert len(trace.words) == len(parent.chosen)


def test_what_cannot_be_gone_on_from_is_refused() -> None:
    parent = parent_of("llama")
    token = parent.chosen[2]
    good = replace(parent.settings, fork=Fork("first", 2, token))
    assert refusal(None, good) == "fork_not_kept"
    assert refusal(parent, replace(good, prompt="another paper")) == "fork_differs"
    assert refusal(parent, replace(good, heads_off=((0, 0),))) == "fork_differs"
    assert refusal(parent, good, "qwen3") == "fork_differs"
    assert refusal(parent, replace(good, fork=Fork("first", len(parent.chosen), token))) == "no_word"
    unlikely = next(index for index in range(tiny.VOCABULARY) if index not in {c.id for c in parent.told[2].candidates})
    assert refusal(parent, replace(good, fork=Fork("first", 2, unlikely))) == "not_a_candidate"
    for fork in (Fork("../x", 2, token), Fork("first", -1, token), Fork("first", 2, -1)):
        assert refusal(parent, replace(good, fork=fork)) == "bad_fork"


def test_a_run_that_is_let_go_before_the_fork_begins_is_an_error_with_a_sentence() -> None:
    parent = parent_of("llama")
    run = admit("second", replace(parent.settings, fork=Fork("first", 2, parent.chosen[2])), parent.model, clock.now(),
              parent=parent)  # fmt: skip
    parent.cache = None
    finished = complete(run).finished
    assert finished is not None and (finished.reason, finished.code) == ("error", "fork_not_kept")


def test_a_fork_keeps_its_bounds() -> None:
    """A lower limit ends it at the word put; a bound on the notes that is too low for those taken over ends it too."""
    parent = parent_of("llama")
    _, trace = forked(parent, KEPT, parent.chosen[KEPT], max_new_tokens=2)
    assert trace.finished is not None and trace.finished.reason == "length" and len(trace.words) == KEPT + 1
    _, trace = forked(parent, KEPT, parent.chosen[KEPT], memory=parent.model.shape.bytes_at(len(parent.ids)))
    assert trace.finished is not None
    assert (trace.finished.reason, trace.finished.code) == ("out_of_memory", "notes_bound")


def test_words_that_came_along_count_neither_for_ttft_nor_for_tpot() -> None:
    parent = parent_of("llama")
    _, trace = forked(parent, KEPT, parent.chosen[KEPT])
    own = [event.at for event in trace.events if isinstance(event, Chose)]
    assert trace.ttft == own[0] and trace.tpot == (own[-1] - own[0]) / (len(own) - 1)
    assert len(trace.itl) == len(own) - 1
