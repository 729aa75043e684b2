"""Speculative decoding on tiny models: figures are the run's own counts, words are the same, who can guess for whom."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import weights
from engine.labs import speculative
from engine.labs.jobs import measured
from engine.labs.lessons import Paper
from engine.labs.speculative import LAB, answer_of, cost, others, passes_of
from engine.settings import Settings
from tests.engine import tiny

pytestmark = pytest.mark.slow

ECHO = "the cat the dog the cat the dog the cat "
PAPERS = (Paper("one", ECHO, (), "", 16), Paper("two", "Luna", (), "", 9))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speculative, "SECONDS", 0.01)
    monkeypatch.setattr(speculative, "ROWS", (1, 2, 5))
    monkeypatch.setattr(speculative, "CONTEXT", 20)
    monkeypatch.setattr(speculative, "papers", lambda lab: PAPERS)
    monkeypatch.setattr(speculative, "paper", lambda lab, name: next(one for one in PAPERS if one.name == name))


def sound(one: dict[str, Any]) -> None:
    """Every word after the first came from a pass, and what is accepted is what was written."""
    assert sum(1 + each["accepted"] for each in one["passes"]) == len(one["words"]) - 1
    written = 1
    for each in one["passes"]:
        assert each["read"] == 1 + len(each["drafts"]) == 1 + len(each["chances"])
        ids = [word[0] for word in one["words"][written : written + each["accepted"]]]
        assert [draft[0] for draft in each["drafts"][: each["accepted"]]] == ids
        written += each["accepted"] + 1


@pytest.mark.parametrize("draft", [1, 4])
@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_an_answer_is_told_as_the_run_had_it(small: None, kind: str, draft: int) -> None:
    one = json.loads(json.dumps(answer_of(tiny.model(kind), "one", draft)))
    sound(one)
    settings = Settings(ECHO, max_new_tokens=16)
    usual = tiny.sit(kind, settings)
    assert one["same"] and [word[0] for word in one["words"]] == list(usual.output_ids)
    assert one["text"] == usual.output_text and one["limit"] == 16
    assert max(len(each["drafts"]) for each in one["passes"]) <= draft
    assert one["plain"]["repeats"] >= 1 and one["drafted"]["middle"] > 0


def test_passes_are_timed_and_nothing_of_them_is_kept(small: None) -> None:
    told = passes_of(tiny.model("llama"))
    assert told["n"] == 20 and [one["rows"] for one in told["rows"]] == [1, 2, 5]
    assert all(one["low"] > 0 and one["repeats"] >= 1 for one in told["rows"])


def test_what_a_pass_costs_lies_on_the_line_between_two_that_were_timed() -> None:
    rows = [{"rows": 1, "times": 1.0}, {"rows": 2, "times": 1.2}, {"rows": 6, "times": 2.0}]
    assert [cost(rows, read) for read in (1, 2, 4, 6, 8)] == pytest.approx([1.0, 1.2, 1.6, 2.0, 2.4])


def test_every_piece_is_measured_and_makes_figures(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path))  # no other model is there
    model = tiny.model("llama")
    plan = [piece["piece"] for piece in LAB.plan(model)]
    assert plan == [*(f"answer/{name}/{draft}" for name in ("one", "two") for draft in (4, 8)), "passes", "smaller"]
    results = json.loads(json.dumps({piece: measured(LAB, model, piece) for piece in plan}))
    figures = LAB.figures(results)
    rows = figures["passes"]["rows"]
    assert rows[0]["times"] == 1 and figures["passes"]["needed"]["4"] == pytest.approx(rows[2]["times"] - 1)
    for one in figures["answers"]:
        told = results[f"answer/{one['paper']}/{one['draft']}"]
        assert one["steps"] == len(told["passes"]) and one["offered"] == sum(
            len(each["drafts"]) for each in told["passes"]
        )
        assert one["accepted"] == one["tokens"] - 1 - one["steps"]
        assert one["per_step"] == pytest.approx((one["tokens"] - 1) / one["steps"])
        assert one["ratio"] == pytest.approx(told["drafted"]["middle"] / told["plain"]["middle"])
        expected = sum(cost(rows, each["read"]) for each in told["passes"]) / (one["tokens"] - 1)
        assert one["expected"] == pytest.approx(expected)
    assert figures["same"] == {"of": 4, "same": 4}
    assert figures["smaller"]["name"] == "" and {one["why"] for one in figures["smaller"]["looked"]} == {"not_smaller"}
    gained = figures["gained"]
    by = {(one["paper"], one["draft"]): one for one in figures["answers"]}
    assert (gained["best"], gained["worst"]) == (by["one", 4]["ratio"], by["two", 4]["ratio"])
    assert gained["k"] == 4 and gained["same"] == gained["of"] == 4
    del results["answer/two/4"], results["passes"]
    partly = LAB.figures(results)
    assert partly["gained"] is None and partly["passes"] is None and partly["answers"][0]["expected"] is None


def test_a_smaller_model_that_is_here_guesses_too(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the known models stands in for it: on disk, smaller, with the same vocabulary."""
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path))
    model = tiny.model("llama")
    name = weights.DEFAULT
    folder = weights.folder(name)
    assert {one["name"]: one["why"] for one in others(model)}[name] == "not_smaller"
    known = replace(weights.MODELS[name], parameters=100)
    monkeypatch.setitem(weights.MODELS, name, known)
    assert {one["name"]: one["why"] for one in others(model)}[name] == "absent"
    tiny.tokenizer().save_pretrained(str(folder))
    (folder / "source.json").write_text("{}")
    assert {one["name"]: one["why"] for one in others(model)}[name] == ""
    monkeypatch.setattr(speculative, "smaller_model", lambda model, by: tiny.model("gpt2"))
    plan = LAB.plan(model)
    assert [piece["piece"] for piece in plan if piece.get("by")] == ["smaller/one", "smaller/two"]
    results = {"smaller/one": measured(LAB, model, "smaller/one"), "smaller": measured(LAB, model, "smaller")}
    sound(results["smaller/one"])
    figures = LAB.figures(json.loads(json.dumps(results)))
    assert figures["smaller"]["name"] == figures["answers"][0]["by"] == name and figures["answers"][0]["same"]
    tiny.sentencepiece().save_pretrained(str(folder))
    assert {one["name"]: one["why"] for one in others(model)}[name] == "tokens"


def test_both_runs_are_one_paper_with_and_without_guesses() -> None:
    plain, drafts = LAB.runs().values()
    assert (plain.draft, drafts.draft) == (0, 8) and replace(drafts, draft=0) == plain
