"""The remedies' routes: what there is to measure, what was, and the figures of the same code as the command's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine import labs
from engine.labs.recorded import record
from engine.settings import Settings
from tests.engine.test_labs import Words
from tests.service.fakes import World, client_of

PLAN = [{"piece": "words/2", "n": 2}, {"piece": "words/4", "n": 4}]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("service.labs.LABS", {"words": Words()})
    monkeypatch.setitem(labs.LABS, "words", Words())
    return World(tmp_path)


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    with client_of(world) as client:
        client.get("/api/health")
        world.service.call(world.service.models.want, "small")
        world.engine.answers |= {"lab_plan": PLAN, "lab_piece": {"words": 3, "busy": None}}
        yield client


def measure(client: TestClient, **body: Any) -> Any:
    return client.post("/api/measures", json={"kind": "lab", "lab": "words", **body})


def test_before_anything_was_measured_the_plan_and_the_runs_are_told(world: World, client: TestClient) -> None:
    told = client.get("/api/labs/words").json()
    assert (told["name"], told["stage"], told["model"]) == ("words", "decode", "small")
    assert told["plan"] == PLAN and told["results"] == {}
    assert told["figures"] == {"words": [None, None], "gained": None}
    assert Settings(**{**told["runs"]["before"], "fork": None}).max_new_tokens == 2
    assert told["machine"]["weights"] == "00ff"
    assert client.get("/api/labs").json() == {
        "model": "small",
        "labs": [{"name": "words", "stage": "decode", "measured": 0, "taken": None, "gained": None, "recorded": None}],
    }
    client.get("/api/labs/words")
    assert [message[2] for message in world.engine.told("job")] == ["lab_plan"], "asked once"


def test_what_was_measured_is_kept_and_makes_the_figures(world: World, client: TestClient, tmp_path: Path) -> None:
    first = measure(client, piece="words/2").json()
    assert first["name"] == "words/2" and first["result"]["words"] == 3 and first["result"]["taken"]
    assert world.engine.told("job")[-1][2:] == ("lab_piece", {"model": "small", "lab": "words", "piece": "words/2"})
    world.engine.answers["lab_piece"] = {"words": 7, "busy": None}
    second = measure(client, piece="words/4").json()
    told = client.get("/api/labs/words").json()
    assert told["results"] == {"words/2": first["result"], "words/4": second["result"]}
    assert told["figures"] == {"words": [3, 7], "gained": {"n": 4}} == Words().figures(told["results"])
    (line,) = client.get("/api/labs").json()["labs"]
    assert (line["measured"], line["gained"], line["taken"]) == (2, {"n": 4}, second["result"]["taken"])
    with client_of(World(tmp_path)) as again:
        again.post("/api/runs", json={"prompt": "x"})
        assert again.get("/api/labs").json()["labs"] == [line]
    assert client.get("/api/measures").json()["results"] == {}, "other figures are not mixed with a lab's"


def test_a_result_that_is_shipped_is_told_without_a_model(
    world: World, client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/api/labs/words/recorded").json()["error"]["code"] == "no_lab_recorded"
    monkeypatch.setattr("engine.labs.recorded.FOLDER", tmp_path / "labs")
    results = {"words/2": {"words": 3, "busy": 0.0}, "words/4": {"words": 8, "busy": 0.0}}
    report = {"lab": "words", "model": "other", "machine": {"device": "cpu"}, "taken": "2026-12-01T10:00:00+00:00"}
    record(Words(), {**report, "plan": PLAN, "results": results, "figures": "not kept: they follow"})
    told = client.get("/api/labs/words/recorded").json()
    assert told == {**client.get("/api/labs/words").json(), **told}, "the shape of what is measured here"
    assert {key: told[key] for key in report if key != "lab"} == {key: report[key] for key in report if key != "lab"}
    assert told["figures"] == Words().figures(results) and told["plan"] == PLAN
    (line,) = client.get("/api/labs").json()["labs"]
    assert line["recorded"] == {**{key: told[key] for key in ("model", "machine", "taken")}, "gained": {"n": 5}}
    assert line["gained"] is None, "what another machine gained is not this one's"
    monkeypatch.setattr(Words, "version", 2)
    assert client.get("/api/labs/words/recorded").status_code == 404, "an older way to measure"


def test_results_of_an_older_way_to_measure_count_as_none(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(client, piece="words/2")
    monkeypatch.setattr(Words, "version", 2)
    assert client.get("/api/labs/words").json()["results"] == {}


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("labs/lunch", 422, "no_lab"),
        ("labs/%2e%2e", 422, "no_lab"),
        ("labs?model=nobody", 422, "unknown_model"),
        ("labs/words?model=big", 503, "model_absent"),
    ],
)
def test_what_is_not_there_is_refused(client: TestClient, path: str, status: int, code: str) -> None:
    reply = client.get(f"/api/{path}")
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [({"lab": "lunch"}, "no_lab"), ({"model": "nobody"}, "unknown_model"), ({"piece": 7}, "bad_field")],
)
def test_what_cannot_be_measured_is_refused(client: TestClient, body: dict[str, Any], code: str) -> None:
    assert measure(client, **body).json()["error"]["code"] == code
