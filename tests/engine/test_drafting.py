"""A second model's guesses: the answer is the run's own, refused guesses are forgotten, strangers are sent away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.measure import clock
from engine.model import LanguageModel, wrap
from engine.run import Run, admit, complete, drafting, step
from engine.run.drafting import Drafter
from engine.settings import Keeping, Refusal, Settings
from engine.trace import Decoded, Event, Trace
from engine.trace.invariants import check
from tests.engine import tiny

pytestmark = pytest.mark.slow

OTHERS = ("gpt2", "qwen3", "gemma3")


def exam(settings: Settings, drafts: LanguageModel | None, target: str = "llama") -> Run:
    return admit("", settings, tiny.model(target), clock.now(), drafts=drafts)


def settings(draft: int, **how: Any) -> Settings:
    return tiny.raw(draft=draft, draft_model="another" if draft else "", max_new_tokens=20, **how)


def steps(trace: Trace) -> list[Decoded]:
    return [event for event in trace.events if isinstance(event, Decoded)]


@pytest.mark.parametrize("draft", [1, 3, 8])
def test_the_same_model_guesses_everything_right(draft: int) -> None:
    usual = tiny.sit("llama", settings(0))
    trace = complete(exam(settings(draft), tiny.model("llama")))
    check(trace.events)
    assert trace.output_ids == usual.output_ids
    passes = steps(trace)
    assert passes and all(event.accepted == len(event.drafts) for event in passes[:-1])
    words = len(usual.output_ids) - 1
    assert len(passes) == -(-words // (draft + 1)), "as few passes as there can be"


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("target", ["llama", "gpt2", "gemma3"])
def test_another_model_changes_nothing_but_the_passes(target: str, other: str) -> None:
    usual = tiny.sit(target, settings(0))
    trace = complete(exam(settings(4), tiny.model(other), target))
    check(trace.events)
    assert trace.output_ids == usual.output_ids and trace.output_text == usual.output_text
    written = 1
    for event in steps(trace):
        ids = [draft.id for draft in event.drafts]
        right = next((k for k, one in enumerate(ids) if one != usual.output_ids[written + k]), len(ids))
        assert event.accepted == min(right, len(usual.output_ids) - written - 1), "the prefix rule"
        written += event.accepted + 1
    if other != target:
        assert sum(event.accepted for event in steps(trace)) < sum(len(event.drafts) for event in steps(trace))


@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_its_notes_go_back_to_what_was_accepted(kind: str) -> None:
    """Whatever was refused before, it guesses as one that reads the text for the first time."""
    model = tiny.model(kind)
    drafter = Drafter(model, model, 60)
    text = list(range(10, 22))
    for right in (0, 2, 4, 1):
        guesses = drafter.draft(text, 4)
        assert guesses == Drafter(model, model, 60).draft(text, 4) and len(guesses) == 4
        text = text + guesses[:right] + [(guesses[right] if right < 4 else 30) + 1]
    assert drafter.draft(text, 4) == drafter.draft(text, 4), "asked twice it says the same"


def test_a_long_text_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("llama")
    drafter = Drafter(model, model, 60)
    text = list(range(10, 22))
    expected = Drafter(model, model, 60).draft([*text, 30, 31], 2)
    monkeypatch.setattr(drafting, "CHUNK", 5)
    assert [drafter.draft(text, 2), drafter.draft([*text, 30], 2)] == [[], []]
    assert drafter.draft([*text, 30, 31], 2) == expected != []
    usual = tiny.sit("llama", settings(0))
    assert complete(exam(settings(3), tiny.model("gpt2"))).output_ids == usual.output_ids


def test_it_guesses_no_further_than_its_own_context() -> None:
    model = tiny.model("llama")
    short = replace(model, facts=replace(model.facts, context=10))
    assert len(Drafter(short, model, 60).draft(list(range(20, 28)), 8)) == 3, "the last guess is not read"
    assert Drafter(short, model, 60).draft(list(range(20, 31)), 8) == []
    usual = tiny.sit("llama", settings(0))
    assert complete(exam(settings(4), short)).output_ids == usual.output_ids


def test_an_end_is_guessed_once_and_ends_the_answer() -> None:
    usual = tiny.sit("llama", settings(0))
    end = usual.output_ids[3]
    assert end not in usual.output_ids[:3]
    model = replace(tiny.model("llama"), end_ids=frozenset({end}))
    trace = complete(admit("", settings(8), model, clock.now(), drafts=tiny.model("llama")))
    check(trace.events)
    assert trace.finished is not None and trace.finished.reason == "eos"
    assert trace.output_ids == usual.output_ids[:4]
    (only,) = steps(trace)
    assert [draft.id for draft in only.drafts][-1] == end and end not in [draft.id for draft in only.drafts][:-1]


def test_a_stop_string_inside_a_draft_ends_the_answer_there() -> None:
    usual = tiny.sit("llama", settings(0))
    said = [word.token.text for word in usual.chosen]
    stop = next(text for k, text in enumerate(said) if k > 1 and text.isalnum() and text not in "".join(said[:k]))
    how = {"stop": (stop,)}
    trace, plain = complete(exam(settings(8, **how), tiny.model("llama"))), tiny.sit("llama", settings(0, **how))
    check(trace.events)
    assert trace.finished is not None and trace.finished.reason == "stop_string"
    assert (trace.output_ids, trace.output_text) == (plain.output_ids, plain.output_text)


@pytest.mark.parametrize("how", [{"temperature": 0.8, "seed": 3}, {"repetition_penalty": 1.4}])
def test_an_answer_that_is_not_the_likeliest_is_the_same_too(how: dict[str, Any]) -> None:
    usual = tiny.sit("llama", settings(0, **how))
    assert complete(exam(settings(5, **how), tiny.model("llama"))).output_ids == usual.output_ids


def test_who_has_guesses_from_a_model_writes_beside_others() -> None:
    exams = [settings(4), settings(0), tiny.raw("ab" * 10, draft=3), settings(2, keeping=Keeping(block=4))]
    runs = [
        admit(
            str(number), one, tiny.model("llama"), clock.now(), drafts=tiny.model("qwen3") if one.draft_model else None
        )
        for number, one in enumerate(exams)
    ]
    told: dict[str, list[Event]] = tiny.drive(runs)
    for run, one in zip(runs, exams, strict=True):
        alone = tiny.sit("llama", replace(one, draft=0, draft_model="", keeping=Keeping()))
        assert tuple(run.chosen) == alone.output_ids and run.drafter is None
        check([replace(run.started(False), at=0.0), *told[run.id]])


def test_what_guesses_and_fails_ends_its_own_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    run = admit("one", settings(4), tiny.model("llama"), clock.now(), drafts=tiny.model("gpt2"))
    other = admit("other", settings(0), tiny.model("llama"), clock.now())
    monkeypatch.setattr(Drafter, "draft", lambda *_: 1 / 0)
    told = tiny.drive([run, other])
    assert told["one"][-1].type == "finished" and told["one"][-1].code == "model_failed"  # type: ignore[union-attr]
    assert tuple(other.chosen) == tiny.sit("llama", settings(0)).output_ids


def test_strangers_and_nobody_are_refused() -> None:
    stranger = wrap(tiny.network("gpt2"), tiny.sentencepiece(), name="stranger")
    with pytest.raises(Refusal) as refused:
        exam(settings(4), stranger)
    assert refused.value.code == "other_vocabulary"
    assert refused.value.values == {"draft": "stranger", "model": "llama"}
    with pytest.raises(Refusal) as refused:
        exam(settings(4), None)
    assert refused.value.code == "model_not_ready"
    idle = exam(replace(settings(0), draft_model="nobody"), None)
    assert idle.drafter is None, "without guesses no second model is asked for"
    step(idle.model, [idle], lambda *_: None)
