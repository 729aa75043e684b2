"""The route of what is simulated: the simulation's own figures with the costs measured here, or recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine.disaggregation.told import Asked, over_loads, simulated
from engine.labs import recorded
from engine.labs.disaggregation import LAB, costs_from
from tests.engine.test_lab_disaggregation import results
from tests.service.fakes import World, client_of

pytestmark = pytest.mark.slow


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(recorded, "FOLDER", tmp_path / "none")
    world = World(tmp_path)
    with client_of(world) as client:
        client.get("/api/health")
        world.service.call(world.service.models.want, "small")
        world.engine.answers["lab_plan"] = []
        client.world = world  # type: ignore[attr-defined]
        yield client


def measure(client: TestClient) -> None:
    for piece, result in results().items():
        client.world.engine.answers["lab_piece"] = result  # type: ignore[attr-defined]
        assert client.post("/api/measures", json={"kind": "lab", "lab": LAB.name, "piece": piece}).status_code == 200


def ask(client: TestClient, query: str = "", what: str = "simulate") -> Any:
    return client.get(f"/api/labs/disaggregation/{what}?{query}")


def test_what_is_asked_for_is_simulated_with_the_costs_measured_here(client: TestClient) -> None:
    reply = ask(client)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "costs_not_measured")
    measure(client)
    costs = costs_from(results())
    assert costs
    told = ask(client, "load=0.9&bandwidth=1e7&seed=5&split=3%2B1&mix=passages").json()
    assert told == {"source": "simulated", **simulated(costs, Asked(0.9, 1e7, 5, "3+1", "passages"))}
    assert ask(client).json()["arrangements"] == simulated(costs, Asked())["arrangements"]
    figures = client.get("/api/labs/disaggregation").json()["figures"]
    assert figures["simulated"]["arrangements"] == ask(client).json()["arrangements"]
    loads = ask(client, "bandwidth=1e7", "loads").json()
    assert loads == {"source": "simulated", "loads": list(over_loads(costs, Asked(bandwidth=1e7)))}
    assert figures["loads"] == ask(client, what="loads").json()["loads"]


def test_recorded_costs_need_no_model(client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(client, "recorded=true").json()["error"]["code"] == "no_lab_recorded"
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    plain = {key: {} for key in ("machine", "plan")}
    recorded.record(LAB, {"lab": LAB.name, "model": "m", "taken": "t", **plain, "results": results()})
    costs = costs_from(results())
    assert costs
    assert ask(client, "recorded=true&seed=3").json() == {"source": "simulated", **simulated(costs, Asked(seed=3))}
    assert ask(client, "recorded=true", "loads").json()["loads"] == list(over_loads(costs, Asked()))


@pytest.mark.parametrize(
    "query", ["load=0", "load=9", "bandwidth=1", "bandwidth=nan", "seed=-1", "seed=x", "split=2%2B1", "mix=lunch"]
)
def test_what_is_out_of_bounds_is_refused(client: TestClient, query: str) -> None:
    reply = ask(client, query)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "bad_field")
    assert reply.json()["error"]["values"]["field"] == query.partition("=")[0]


def test_models_that_are_not_there_are_refused(client: TestClient) -> None:
    assert ask(client, "model=nobody").json()["error"]["code"] == "unknown_model"
