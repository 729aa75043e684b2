"""Shared notes: the bytes of each way are those of real caches, and reading once per group changes no word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.labs import groups
from engine.labs.groups import LAB, variants
from engine.labs.jobs import measured
from engine.labs.timing import sit
from tests.engine import tiny

pytestmark = pytest.mark.slow


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "CONTEXTS", (16, 64, 4096))
    monkeypatch.setattr(groups, "PROMPT", 24)
    monkeypatch.setattr(groups, "STEPS", 2)


def by_name(told: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in told}


def test_each_way_has_the_bytes_its_formula_says() -> None:
    model = tiny.model("llama")
    facts = model.facts
    found = by_name(variants(model.facts))
    assert found["own"]["per_token"] == facts.kv_bytes_per_token
    assert found["ordinary"]["per_token"] == 2 * facts.layers * facts.heads * facts.head_size * 4
    assert found["multi"]["per_token"] == 2 * facts.layers * 1 * facts.head_size * 4
    assert found["latent"]["per_token"] == facts.layers * (4 * facts.head_size + facts.head_size // 2) * 4
    assert all(one["per_token"] == facts.layers * one["values"] * 4 for one in found.values())


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3", "gpt2"])
def test_every_piece_is_measured_and_makes_figures(small: None, kind: str) -> None:
    model = tiny.model(kind)
    plan = [piece["piece"] for piece in LAB.plan(model)]
    assert plan == ["cache", "decode/16", "decode/64", "ids"]
    results = {piece: measured(LAB, model, piece) for piece in plan}
    figures = LAB.figures(json.loads(json.dumps(results)))
    found = by_name(variants(model.facts))
    for name, allocated in figures["cache"]["allocated"].items():
        assert allocated == figures["cache"]["positions"] * found[name]["per_token"]
    assert set(figures["cache"]["allocated"]) == {"ordinary", "own", "multi"}
    assert [one["n"] for one in figures["decode"]] == [16, 64]
    assert all(one["time"] == one["repeated"]["middle"] / one["grouped"]["middle"] for one in figures["decode"])
    assert figures["ids"] == {"n": 24, "words": 16, "same": True, "busy": results["ids"]["busy"]}
    assert figures["gained"] is None, "short notes prove nothing"


def test_what_was_gained_is_said_of_the_longest_notes() -> None:
    step = {"low": 1.0, "high": 1.0, "repeats": 1}
    results = {
        f"decode/{n}": {"n": n, "grouped": {**step, "middle": 2.0}, "repeated": {**step, "middle": float(m)}}
        for n, m in ((4096, 8), (1024, 3))
    }
    assert LAB.figures(results)["gained"] is None
    results["cache"] = {"positions": 8, "allocated": {"ordinary": 90, "own": 30, "multi": 10}}
    figures = LAB.figures(results)
    assert figures["gained"] == {"bytes": 3.0, "n": 4096, "time": 4.0}
    assert [one["n"] for one in figures["decode"]] == [1024, 4096]


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_both_runs_say_the_same_words(kind: str) -> None:
    runs = LAB.runs()
    assert [settings.grouped for settings in runs.values()] == [False, True]
    ids = []
    for settings in runs.values():
        _, trace = sit(tiny.model(kind), tiny.raw(grouped=settings.grouped))
        ids.append([one.token.id for one in trace.chosen])
    assert ids[0] == ids[1]
