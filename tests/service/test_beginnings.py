"""Timing a paper's beginning: only while the engine holds the run, with the FLOPs of that length beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from engine.plan import cost
from engine.plan.read import of_run
from engine.trace.file import read
from service.beginnings import flops_of
from tests.service.fakes import World, story

RECORDINGS = Path(__file__).parents[2] / "assets" / "recordings"


def test_the_engine_times_it_and_the_service_counts(client: TestClient, world: World) -> None:
    timed = {"tokens": 2, "prompt": 3, "token": 7, "seconds": [0.5, 0.4], "best": 0.4, "middle": 0.45}
    world.engine.answers = {"beginning": timed}
    run = str(client.post("/api/runs", json={"prompt": "Hi!", "keep": True}).json()["id"])
    world.play(run, story())
    told = client.get(f"/api/runs/{run}/beginning?tokens=2").json()
    assert told.pop("flops") == flops_of(story()[0].facts, 2)  # type: ignore[union-attr]
    assert told == {"source": "measured", **timed}
    assert client.get(f"/api/runs/{run}/beginning?tokens=0").status_code == 422


def test_a_run_that_the_engine_gave_up_cannot_be_timed(client: TestClient, world: World) -> None:
    run = str(client.post("/api/runs", json={"prompt": "Hi!", "keep": True}).json()["id"])
    world.play(run, story())
    client.get(f"/api/runs/{run}")
    world.service.runs.kept.clear()
    for name, code in ((run, "not_kept"), ("never_was_in_here", "unknown_run")):
        reply = client.get(f"/api/runs/{name}/beginning?tokens=2")
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, code)


@pytest.mark.parametrize("name", ["open-book", "chinese"])
def test_flops_are_those_of_the_formula_without_what_causality_hides(name: str) -> None:
    started = read((RECORDINGS / f"{name}.trace").read_bytes()).trace.started
    assert started
    for tokens in (1, 32, 1000):
        model = of_run(started.facts)
        assert flops_of(started.facts, tokens) == cost.prefill(model, tokens).total - cost.masked(model, tokens)
