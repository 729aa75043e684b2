"""Disaggregation's lab: pieces of a tiny model, and figures that follow from them whatever is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.disaggregation.told import Asked, over_loads, over_ratios, simulated
from engine.labs import disaggregation
from engine.labs.disaggregation import LAB, costs_from
from engine.labs.jobs import measured
from engine.settings import Refusal
from tests.engine import tiny

pytestmark = pytest.mark.slow


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disaggregation, "LENGTHS", (8, 24, 48))
    monkeypatch.setattr(disaggregation, "CONTEXTS", (8, 60))
    monkeypatch.setattr(disaggregation, "BATCHES", (1, 2, 4))
    monkeypatch.setattr("engine.jobs.stages.SECONDS", 0.01)
    monkeypatch.setattr("engine.jobs.beginnings.SECONDS", 0.01)


def results() -> dict[str, Any]:
    """As a laptop would measure them."""

    def spread(middle: float) -> dict[str, Any]:
        return {"middle": middle, "low": middle, "high": middle, "repeats": 3}

    reads = {f"read/{n}": {"n": n, "seconds": spread(0.02 + 0.0005 * n), "note": 23040} for n in disaggregation.LENGTHS}
    steps = {
        f"step/{batch}/{context}": {
            "batch": batch, "context": context + 8, "seconds": spread(0.02 + 0.002 * batch + 1e-6 * batch * context),
        }
        for batch in disaggregation.BATCHES for context in disaggregation.CONTEXTS
    }  # fmt: skip
    return {**reads, **steps}


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_every_piece_is_measured_and_makes_figures(small: None, kind: str) -> None:
    model = tiny.model(kind)
    plan = [piece["piece"] for piece in LAB.plan(model)]
    assert plan == [
        *(f"read/{n}" for n in (8, 24, 48)), *(f"step/{batch}/{context}" for context in (8, 60) for batch in (1, 2, 4)),
    ]  # fmt: skip
    found = json.loads(json.dumps({piece: measured(LAB, model, piece) for piece in plan}))
    assert found["read/24"]["note"] == model.facts.kv_bytes_per_token > 0
    assert all(one["seconds"]["low"] > 0 for one in found.values())
    for name, one in found.items():
        if name.startswith("step/"):
            context = int(name.split("/")[2])
            assert context < one["context"] < context + disaggregation.ROOM
    figures = LAB.figures(found)
    assert figures["costs"]["most"] == 4 and figures["costs"]["contexts"] == [8, 60]
    assert [len(one) for one in (figures["reads"], figures["steps"])] == [3, 6]
    assert figures["simulated"]["arrangements"].keys() == {"colocated", "chunked", "split"}
    json.dumps(figures)


def test_figures_are_those_of_the_simulation() -> None:
    found = results()
    figures, costs = LAB.figures(found), costs_from(found)
    assert (
        costs and costs.most == 16 and costs.step(16, 704) == pytest.approx(found["step/16/704"]["seconds"]["middle"])
    )
    assert figures["costs"]["worst"] == pytest.approx(0, abs=1e-9), "a straight line fits a straight line"
    assert figures["simulated"] == simulated(costs, Asked())
    assert figures["loads"] == list(over_loads(costs, Asked())) and figures["ratios"] == over_ratios(costs)
    before, after = (figures["simulated"]["arrangements"][name] for name in ("colocated", "split"))
    gained = figures["gained"]
    assert gained["source"] == "simulated" and gained["load"] == pytest.approx(70)
    assert (gained["before"], gained["after"]) == (1000 * before["pause"]["p90"], 1000 * after["pause"]["p90"])
    assert (gained["wait_before"], gained["wait_after"]) == (1000 * before["ttft"]["p90"], 1000 * after["ttft"]["p90"])


@pytest.mark.parametrize(
    "gone", [["read/16", "read/64", "read/192"], ["step/1/16"], [f"step/{b}/704" for b in disaggregation.BATCHES]]
)
def test_without_enough_measured_nothing_is_simulated(gone: list[str]) -> None:
    figures = LAB.figures({name: one for name, one in results().items() if name not in gone})
    assert [figures[name] for name in ("costs", "simulated", "loads", "ratios", "gained")] == [None] * 5
    assert LAB.figures({}) == {"reads": [], "steps": [], "costs": None, "simulated": None, "loads": None,
                               "ratios": None, "gained": None}  # fmt: skip


def test_a_batch_that_has_no_room_only_bounds_how_many_write_together() -> None:
    costs = costs_from({name: one for name, one in results().items() if name != "step/16/704"})
    assert costs and costs.most == 8


def test_so_many_copies_that_memory_is_short_are_refused(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.jobs.stages.free_bytes", lambda device: 1000)
    with pytest.raises(Refusal, match="batch_too_large"):
        measured(LAB, tiny.model("llama"), "step/2/8")


def test_nothing_of_it_can_be_run_here() -> None:
    assert LAB.runs() == {}
