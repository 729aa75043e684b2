"""A paper's first tokens read once more: what the model says after them is what a run of just them would say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.jobs import beginnings
from engine.run import Run, complete
from engine.settings import Refusal
from tests.engine import tiny


def engine(run: Run, active: int = 0) -> Any:
    return SimpleNamespace(run=lambda _: run, active=dict.fromkeys(range(active)), give_way=lambda: None)


def sat(kind: str, prompt: str = tiny.PAPER, **settings: Any) -> Run:
    run = tiny.exam(kind, tiny.raw(prompt, max_new_tokens=2, **settings))
    complete(run)
    return run


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("heads_off", [(), ((0, 0), (1, 1))])
def test_the_word_after_a_beginning_is_what_a_run_of_it_chooses(kind: str, heads_off: tuple[Any, ...]) -> None:
    run = sat(kind, heads_off=heads_off)
    assert run.cache is not None
    before = run.cache._kv.clone()
    for tokens in (1, 5, len(run.ids)):
        told = beginnings.beginning(engine(run, 1), "x", tokens)
        assert (told["tokens"], told["prompt"], told["active"]) == (tokens, len(run.ids), 1)
        short = tiny.exam(kind, tiny.raw(max_new_tokens=1, heads_off=heads_off))
        short.ids = run.ids[:tokens]
        complete(short)
        assert told["token"] == short.chosen[0]
        assert told["best"] == min(told["seconds"]) <= told["middle"] <= max(told["seconds"])
    assert torch.equal(run.cache._kv, before), "the run itself is as it was"


def test_a_long_reading_is_done_once_and_a_short_one_until_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sat("llama")
    for seconds, repeats in ((beginnings.SECONDS + 1, 1), (beginnings.SECONDS / 2, 2), (0.0, beginnings.MOST)):
        taken: list[int] = []
        monkeypatch.setattr(beginnings, "_once", lambda *_, s=seconds, t=taken: (t.append(1), (s, 7))[1])
        assert beginnings.read(run, 3, lambda: None) == ([seconds] * repeats, 7)
        assert len(taken) == repeats + (repeats > 1)


def test_what_is_refused() -> None:
    run = sat("llama", "a" * 30)
    for tokens in (0, 31):
        with pytest.raises(Refusal) as refusal:
            beginnings.beginning(engine(run), "x", tokens)
        assert (refusal.value.code, refusal.value.values) == ("no_beginning", {"most": 30})


def test_others_words_come_before_a_long_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sat("llama", "a" * 30)
    monkeypatch.setattr(beginnings, "CHUNK", 20)
    assert beginnings.beginning(engine(run, 1), "x", 20)["tokens"] == 20
    with pytest.raises(Refusal, match="others_at_work"):
        beginnings.beginning(engine(run, 1), "x", 21)
    monkeypatch.setattr(beginnings, "LONGEST", 25)
    with pytest.raises(Refusal, match="too_long_to_time"):
        beginnings.beginning(engine(run), "x", 26)


def test_it_gives_way_between_layers() -> None:
    run = sat("llama")
    asked: list[int] = []

    def give_way() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise Refusal("others_at_work")

    with pytest.raises(Refusal, match="others_at_work"):
        beginnings.beginning(SimpleNamespace(run=lambda _: run, active={}, give_way=give_way), "x", 5)
    assert beginnings.beginning(engine(run), "x", 5)["tokens"] == 5, "the model still works"
