"""Without the notes the answer is the same and the work is not: everything so far is read again for every word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.measure import clock
from engine.model import LanguageModel
from engine.run import admit, complete, reread, step
from engine.settings import Fork, Refusal
from engine.trace import KV, Decoded, Prefilled, Trace, state_at
from engine.trace.invariants import BrokenTrace, check
from tests.engine import tiny


def steps(trace: Trace) -> list[Decoded]:
    return [event for event in trace.events if isinstance(event, Decoded)]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many positions went through the model in each pass."""
    lengths: list[int] = []
    forward = LanguageModel.forward

    def counted(model: LanguageModel, ids: list[list[int]], one: Any) -> torch.Tensor:
        lengths.append(len(ids[0]))
        return forward(model, ids, one)

    monkeypatch.setattr(LanguageModel, "forward", counted)
    return lengths


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize(
    "how", [{}, {"repetition_penalty": 1.4}, {"heads_off": ((0, 1), (2, 3))}, {"temperature": 1.5, "seed": 5}]
)
def test_the_words_are_the_same(kind: str, how: dict[str, Any]) -> None:
    with_notes, without = (tiny.sit(kind, tiny.raw(notes=notes, **how)) for notes in (True, False))
    assert with_notes.output_ids == without.output_ids and len(without.output_ids) == 12
    assert with_notes.output_text == without.output_text
    check(without.events)


def test_everything_is_read_again_for_each_word_and_the_trace_says_so(passes: list[int]) -> None:
    trace = tiny.sit("llama", tiny.raw("Luna, Max", notes=False, max_new_tokens=4))
    assert trace.started is not None
    prompt = len(trace.started.prompt)
    assert passes == [prompt, prompt + 1, prompt + 2, prompt + 3]
    assert [event.read for event in steps(trace)] == passes[1:]
    assert [event.position for event in steps(trace)] == [prompt, prompt + 1, prompt + 2]
    passes.clear()
    tiny.sit("llama", tiny.raw("Luna, Max", max_new_tokens=4))
    assert passes == [prompt, 1, 1, 1], "one prefill, then a token a step"


def test_no_notes_are_told_of_at_any_moment() -> None:
    trace = tiny.sit("gemma3", tiny.raw(notes=False))
    for step_ in range(len(trace.events) + 1):
        state = state_at(trace.events, step_)
        assert (state.columns, state.kv_bytes) == (0, 0)
    assert {event.together for event in steps(trace)} == {1}


def test_a_trace_that_tells_it_otherwise_is_broken() -> None:
    trace = tiny.sit("llama", tiny.raw(notes=False, max_new_tokens=3))
    for kind, change in [(Decoded, {"read": 1}), (Decoded, {"kv": KV(9, 9, 99)}), (Prefilled, {"kv": KV(9, 9, 99)})]:
        events = list(trace.events)
        index = next(number for number, event in enumerate(events) if isinstance(event, kind))
        events[index] = replace(events[index], **change)  # type: ignore[type-var]
        with pytest.raises(BrokenTrace):
            check(events)
    plain = list(tiny.sit("llama", tiny.raw(max_new_tokens=3)).events)
    index = next(number for number, event in enumerate(plain) if isinstance(event, Decoded))
    plain[index] = replace(plain[index], read=7)  # type: ignore[type-var]
    with pytest.raises(BrokenTrace):
        check(plain)


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_where_its_words_looked_can_be_seen_as_of_any_run(kind: str) -> None:
    runs = [tiny.exam(kind, tiny.raw(notes=notes)) for notes in (True, False)]
    for run in runs:
        complete(run)
    ours, theirs = (run.lens for run in runs)
    assert ours.length == theirs.length
    for layer in range(ours.layers):
        torch.testing.assert_close(ours.map(layer, 1), theirs.map(layer, 1), atol=1e-4, rtol=1e-3)


def test_others_write_meanwhile_and_each_answers_as_alone() -> None:
    prompts = {"a": "Luna", "b": "Max", "c": "今天", "d": "cat"}
    exams = {name: tiny.raw(prompt, notes=name in "ad") for name, prompt in prompts.items()}
    runs = [tiny.exam("llama", exam, name) for name, exam in exams.items()]
    told = tiny.drive(runs)
    for name, exam in exams.items():
        events = tuple(told[name])
        assert Trace(events).output_ids == tiny.sit("llama", exam).output_ids
        assert all(event.read == 1 or event.together == 1 for event in events if isinstance(event, Decoded))


def test_one_reads_again_a_turn_and_nobody_waits_for_ever() -> None:
    """Whoever came much later waits as long for a turn as who came first."""
    runs = [
        admit(str(number), tiny.raw("Luna", notes=False), tiny.model("llama"), clock.now() - 20 * number)
        for number in range(3)
    ]
    order: list[str] = []
    while any(not run.finished for run in runs):
        step(runs[0].model, [run for run in runs if not run.finished],
             lambda run, event: order.append(run.id) if isinstance(event, Decoded) else None)  # fmt: skip
    assert len(order) == 3 * 11
    for number in range(6, len(order) - 6):
        assert set(order[number : number + 4]) == {"0", "1", "2"}


def test_a_stop_counts_between_two_layers() -> None:
    run = tiny.exam("llama", tiny.raw(notes=False))
    heard = 0

    def hear() -> None:
        nonlocal heard
        heard += 1
        if run.chosen and len(run.chosen) == 3:
            run.stop_reason = "stopped"

    events: list[Any] = [run.started(False)]
    while not run.finished:
        step(run.model, [run], lambda _, event: events.append(event), hear)
    check(events)
    assert len(run.chosen) == 3 and events[-1].reason == "stopped"
    assert heard == 3 * run.model.shape.layers + 1, "the fourth pass ended after its first layer"


def test_a_bound_on_notes_does_not_concern_who_has_none() -> None:
    assert tiny.sit("llama", tiny.raw(notes=False, memory=1)).finished.reason == "length"  # type: ignore[union-attr]


def refused(**settings: Any) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        tiny.exam("llama", tiny.raw(**settings))
    return refusal.value


def test_what_would_hold_everybody_up_or_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(notes=False, fork=Fork("x", 0, 1)).code == "fork_without_notes"
    monkeypatch.setattr(reread, "MOST", 20)
    told = refused(prompt="a" * 10, notes=False, max_new_tokens=11)
    assert (told.code, told.values) == ("too_long_without_notes", {"tokens": 21, "bound": 20})
    assert tiny.sit("llama", tiny.raw("a" * 10, notes=False, max_new_tokens=10)).finished
    parent = tiny.exam("llama", tiny.raw("a", notes=False), "first")
    complete(parent)
    fork = tiny.raw("a", fork=Fork("first", 1, parent.chosen[1]))
    with pytest.raises(Refusal) as refusal:
        admit("second", fork, parent.model, clock.now(), parent=parent)
    assert refusal.value.code == "fork_not_kept", "there are no notes to take over"
