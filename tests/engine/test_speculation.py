"""Drafts change how many passes an answer takes, never the answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists

from engine.measure import clock
from engine.run import Run, admit, complete
from engine.run.speculation import LONGEST, continuation, draft_of
from engine.settings import Keeping, Refusal, Settings
from engine.settings import check as check_settings
from engine.trace import Chose, Decoded, Event, Trace
from engine.trace.invariants import check
from tests.engine import tiny

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "fixtures" / "lookup.json").read_text("utf-8"))
ECHO = "the cat the dog the cat the dog the cat "


def steps(trace: Trace) -> list[Decoded]:
    return [event for event in trace.events if isinstance(event, Decoded)]


def settings(draft: int, **how: Any) -> Settings:
    return tiny.raw(ECHO, draft=draft, max_new_tokens=24, **how)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["text"]))
def test_a_draft_is_what_followed_the_same_words(case: dict[str, Any]) -> None:
    """Three tokens before two, wherever they stand; of several places the latest. The page has the same cases."""
    assert continuation(case["text"], case["most"]) == case["draft"]


@given(lists(integers(0, 3), min_size=1, max_size=30), integers(1, 6))
def test_a_draft_is_always_looked_up_by_the_rule(text: list[int], most: int) -> None:
    """Against the rule as it reads: the longest ending of at most three tokens that stands earlier, its last place."""
    draft = continuation(text, most)
    sizes = range(min(LONGEST, len(text) - 1), 0, -1)
    places = [
        (size, start)
        for size in sizes
        for start in range(len(text) - size)
        if text[start : start + size] == text[-size:]
    ]
    if not places:
        assert draft == []
        return
    size = places[0][0]
    start = max(place for each, place in places if each == size)
    assert draft == text[start + size :][:most] and 1 <= len(draft) <= most


@pytest.mark.parametrize("draft", [1, 4, 32])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_greedy_answer_is_the_same(kind: str, draft: int) -> None:
    usual, drafted = tiny.sit(kind, settings(0)), tiny.sit(kind, settings(draft))
    check(drafted.events)
    assert drafted.output_ids == usual.output_ids
    assert drafted.output_text == usual.output_text
    assert [event.token for event in drafted.chosen] == [event.token for event in usual.chosen]
    assert all(event.read == 1 + len(event.drafts) for event in steps(drafted))
    for mine, its in zip(drafted.chosen, usual.chosen, strict=True):
        assert mine.probability == pytest.approx(its.probability, abs=1e-5)


@pytest.mark.parametrize("how", [{"temperature": 0.3, "seed": 4}, {"temperature": 1.0, "seed": 9, "top_k": 5}])
def test_a_drawn_answer_is_the_same_too(how: dict[str, Any]) -> None:
    for kind in ("llama", "gpt2"):
        assert tiny.sit(kind, settings(5, **how)).output_ids == tiny.sit(kind, settings(0, **how)).output_ids


def planted(kind: str, kept: int) -> tuple[Run, Trace, list[int]]:
    """A run in whose prompt the first words of its own answer stand: a draft that is right `kept` times, then wrong."""
    return _planted(kind, kept)


def _planted(kind: str, kept: int) -> tuple[Run, Trace, list[int]]:
    model = tiny.model(kind)
    run = admit("", settings(6), model, clock.now())
    usual = complete(admit("", settings(0), model, clock.now()))
    answer = list(usual.output_ids)
    wrong = (answer[kept + 1] + 1) % 256
    draft = [*answer[1 : 1 + kept], wrong]
    return run, usual, draft


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_draft_counts_as_far_as_it_is_right(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prefix rule: what comes after the first wrong guess is worth nothing, and one word comes for free."""
    from engine.run import speculation

    run, usual, draft = planted("llama", kept)
    monkeypatch.setattr(speculation, "draft_of", lambda one: draft if len(one.chosen) == 1 else [])
    trace = complete(run)
    check(trace.events)
    first = steps(trace)[0]
    assert (first.accepted, len(first.drafts), first.read) == (kept, kept + 1, kept + 2)
    assert [one.id for one in first.drafts] == draft
    assert first.kv.length == len(run.ids) + kept + 1
    assert trace.output_ids == usual.output_ids
    assert len(steps(trace)) == len(usual.chosen) - 1 - kept


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_notes_and_lens_are_those_of_the_usual_run(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.run import speculation

    run, _, draft = planted(kind, 3)
    monkeypatch.setattr(speculation, "draft_of", lambda one: draft if len(one.chosen) == 1 else [])
    complete(run)
    usual = admit("", settings(0), run.model, clock.now())
    complete(usual)
    assert run.cache is not None and usual.cache is not None
    assert run.cache.length == usual.cache.length
    whole = slice(None)
    notes, its = (one.cache.notes(whole, 0, one.cache.length) for one in (run, usual) if one.cache)
    assert float((notes - its).abs().max()) < 1e-4
    for row in range(len(run.ids), run.lens.length):
        assert float((run.lens.row(1, 2, row) - usual.lens.row(1, 2, row)).abs().max()) < 1e-4


def test_an_end_inside_a_draft_ends_the_answer_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.run import speculation

    run, usual, draft = planted("llama", 3)
    end = usual.output_ids[2]
    assert end not in usual.output_ids[:2]
    run = admit("", run.settings, replace(run.model, end_ids=frozenset({end})), clock.now())
    monkeypatch.setattr(speculation, "draft_of", lambda one: draft if len(one.chosen) == 1 else [])
    trace = complete(run)
    check(trace.events)
    assert trace.finished is not None and trace.finished.reason == "eos"
    assert trace.output_ids == usual.output_ids[:3]


def test_a_draft_never_passes_the_limit() -> None:
    for limit in range(1, 8):
        run = admit("", replace(settings(8), max_new_tokens=limit), tiny.model("llama"), clock.now())
        trace = complete(run)
        assert len(trace.output_ids) == limit and run.cache is not None and run.cache.length <= run.cache.capacity
        assert trace.output_ids == tiny.sit("llama", replace(settings(0), max_new_tokens=limit)).output_ids


def test_a_bound_on_the_notes_holds_for_drafts() -> None:
    shape = tiny.model("llama").shape
    prompt = len(tiny.model("llama").text.prompt(settings(0)).tokens)
    usual = tiny.sit("llama", settings(0, memory=shape.bytes_at(prompt + 6)))
    trace = tiny.sit("llama", settings(6, memory=shape.bytes_at(prompt + 6)))
    assert trace.finished is not None and trace.finished.code == "notes_bound"
    assert trace.output_ids == usual.output_ids
    assert max(event.kv.bytes for event in steps(trace)) <= shape.bytes_at(prompt + 6)


def test_who_drafts_and_who_does_not_write_side_by_side() -> None:
    exams = [settings(5), settings(0), tiny.raw("Luna", draft=3), settings(4, keeping=Keeping(block=4))]
    runs = [tiny.exam("llama", exam, str(number)) for number, exam in enumerate(exams)]
    told: dict[str, list[Event]] = tiny.drive(runs)
    for run, exam in zip(runs, exams, strict=True):
        assert tuple(run.chosen) == tiny.sit("llama", replace(exam, draft=0, keeping=Keeping())).output_ids
        check([replace(run.started(False), at=0.0), *told[run.id]])


def test_it_saves_passes_where_words_come_again() -> None:
    """A model whose answer repeats itself: fewer passes than words."""
    for kind in tiny.KINDS:
        trace = tiny.sit(kind, tiny.raw(ECHO, draft=4, max_new_tokens=40))
        repeats = len(set(trace.output_ids)) < len(trace.output_ids) / 3
        if repeats:
            assert len(steps(trace)) < len([e for e in trace.events if isinstance(e, Chose)]) - 1


def test_no_draft_no_room() -> None:
    run = tiny.exam("llama", settings(0))
    complete(run)
    assert draft_of(run) == []


@pytest.mark.parametrize("how", [{"keeping": Keeping(dtype="int8")}, {"keeping": Keeping(last=4)}, {"notes": False}])
def test_drafts_want_notes_as_they_are(how: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refused:
        check_settings(Settings("a", draft=2, **how))
    assert refused.value.code == "bad_draft"


@pytest.mark.parametrize("chunk", [1, 2, 7, 100])
@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_a_paper_read_in_chunks_of_a_chosen_size(kind: str, chunk: int) -> None:
    from engine.trace import Prefilled

    usual, trace = tiny.sit(kind, tiny.raw(ECHO)), tiny.sit(kind, tiny.raw(ECHO, chunk=chunk))
    check(trace.events)
    passes = [event.stop - event.start for event in trace.events if isinstance(event, Prefilled)]
    assert sum(passes) == len(tiny.model(kind).text.prompt(tiny.raw(ECHO)).tokens)
    assert all(size == chunk for size in passes[:-1]) and passes[-1] <= chunk
    assert trace.output_ids == usual.output_ids
