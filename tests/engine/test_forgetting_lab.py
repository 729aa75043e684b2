"""Forgetting measured: what goes at which word, the words put through it, the figures."""

from __future__ import annotations

from typing import Any

import pytest

from engine.cache.forgetting import ForgettingCache
from engine.labs import forcing, forgetting
from engine.labs.lessons import Paper, papers
from engine.settings import Keeping, check
from tests.engine import tiny

pytestmark = pytest.mark.slow

PAPER = Paper("cat", tiny.PAPER[:60], ("Luna",), "Luna", 6)
LAB = forgetting.LAB


@pytest.mark.parametrize("way", forgetting.WAYS)
@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_what_goes_at_which_word_is_what_each_row_could_not_see(kind: str, way: str) -> None:
    model = tiny.model(kind)
    told = forgetting.forgotten(model, PAPER, way, 12)
    run = forcing.sit(model, PAPER.settings(forgetting.kept_as(way, 12), model), None).run
    both = forcing.beside(model, PAPER.settings(model=model), forgetting.kept_as(way, 12))
    cache = both.kept.run.cache
    assert isinstance(cache, ForgettingCache) and run.cache is not None
    prompt, words = told["prompt"], len(told["words"])
    full = next(layer for layer, window in enumerate(model.shape.windows) if not window)
    for word in range(words):
        row = prompt + word - 1
        seen = cache.sees(full, row, row + 1)[0].tolist()
        assert seen == [told["gone"][position] is None or told["gone"][position] > word for position in range(row + 1)]
    assert sum(gone is None for gone in told["gone"]) == 12
    assert told["bytes"] == model.shape.bytes_at(12) < told["exact_bytes"]
    assert told["kl"][0] == 0  # the paper itself was read with all its notes
    assert max(told["kl"][1:]) > 0


@pytest.mark.parametrize("way", forgetting.WAYS)
def test_a_budget_that_holds_everything_changes_nothing(way: str) -> None:
    told = forgetting.forgotten(tiny.model("llama"), PAPER, way, 200)
    assert told["same"] and all(told["agree"]) and set(told["gone"]) == {None}
    assert max(told["kl"]) < 1e-6 and told["fact_kept"] == len(told["fact"]) > 0


def test_all_ways_keep_the_same_number() -> None:
    for budget in forgetting.BUDGETS:
        kept = [forgetting.kept_as(way, budget) for way in forgetting.WAYS]
        assert {one.first + one.heavy + one.last for one in kept} == {budget}
        assert [one.first for one in kept] == [0, 4, 4] and [one.heavy > 0 for one in kept] == [False, False, True]


def test_a_paper_s_tokens_and_where_its_fact_stands() -> None:
    told = forgetting.tokens_of(tiny.model("llama"), PAPER)
    assert "".join(told["tokens"][position] for position in told["fact"]).strip(" .") == "Luna"
    start, stop = told["own"]
    assert "".join(told["tokens"][start:stop]) == PAPER.prompt


def test_every_piece_of_the_plan_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("llama")
    monkeypatch.setattr(forgetting, "papers", lambda lab: (PAPER,))
    monkeypatch.setattr(forgetting, "paper", lambda lab, name: PAPER)
    monkeypatch.setattr(forgetting, "BUDGETS", (10, 20))
    plan = LAB.plan(model)
    assert len({piece["piece"] for piece in plan}) == len(plan) == 7
    results = {piece["piece"]: LAB.measure(model, piece) for piece in plan}
    told = LAB.figures(results)["papers"]["cat"]
    assert told["text"] == results["cat/paper"]
    assert {way: list(budgets) for way, budgets in told["ways"].items()} == {w: ["10", "20"] for w in forgetting.WAYS}
    assert told["ways"]["sink"]["20"]["gone"] == results["cat/sink/20"]["gone"]


def piece(way: str, budget: int, right: bool) -> dict[str, Any]:
    return {
        "way": way, "budget": budget, "exact_right": True, "right": right, "kl": [0.0], "agree": [True],
        "bytes": budget, "exact_bytes": 300, "before": {"middle": 1.0}, "after": {"middle": 1.5},
        "slower": 1.5,
    }  # fmt: skip


def test_the_least_budget_and_what_was_gained() -> None:
    name = papers("forgetting")[0].name
    results = {
        f"{name}/{way}/{budget}": piece(way, budget, right)
        for way, budget, right in [
            ("window", 64, False),
            ("heavy", 64, False),
            ("heavy", 128, True),
            ("heavy", 192, True),
        ]
    }
    figures = LAB.figures(results)
    assert figures["papers"][name]["least"] == {"window": None, "sink": None, "heavy": 128}
    assert figures["gained"] == {"budget": 128, "share": 43, "agreed": 100, "slower": 1.5}
    assert LAB.figures({})["gained"] is None


def test_runs_begin_without_the_remedy_and_can_be_asked_for() -> None:
    runs = LAB.runs()
    assert next(iter(runs.values())).keeping == Keeping()
    assert {name: run.keeping.first for name, run in runs.items()} == {"exact": 0, "window": 0, "sink": 4, "heavy": 4}
    for run in runs.values():
        check(run)
