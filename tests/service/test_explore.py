"""The routes that look into a run, while the engine holds it and when only its recording is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from engine.trace.looks import Looks
from tests.service.fakes import World, error, nothing_yet, start, story


def test_the_engine_is_asked_while_it_holds_the_run(client: TestClient, world: World) -> None:
    world.engine.answers = {
        "heads_for_pair": [(1, 2, 0.73), (0, 1, 0.1)],
        "sampled_rows": (4, 2, bytes([255, 0, 9, 8] * 2)),
        "logit_lens": {"position": 2, "token": 7, "layers": [{"probability": 0.5, "rank": 0, "top": [(7, "a", 0.5)]}]},
    }
    run = start(client)
    world.play(run, story())
    heads = client.get(f"/api/runs/{run}/heads?row=3&column=1").json()
    assert heads == {
        "source": "computed", "row": 3, "column": 1,
        "heads": [{"layer": 1, "head": 2, "weight": 0.73}, {"layer": 0, "head": 1, "weight": 0.1}],
    }  # fmt: skip
    small = client.get(f"/api/runs/{run}/small?layer=1&size=2")
    assert (small.headers["X-Heads"], small.headers["X-Cells"], small.content[0]) == ("2", "2", 255)
    lens = client.get(f"/api/runs/{run}/logit-lens").json()
    assert (lens["source"], lens["token"]) == ("computed", 7)
    assert lens["layers"][0]["top"] == [{"id": 7, "text": "a", "probability": 0.5}]
    assert [message[2:] for message in world.engine.told("job") if message[2] != "looks"] == [
        ("heads_for_pair", {"run": run, "row": 3, "column": 1}),
        ("sampled_rows", {"run": run, "layer": 1, "size": 2}),
        ("logit_lens", {"run": run}),
    ]


def test_a_saved_run_tells_what_was_recorded_and_says_what_was_not(client: TestClient, world: World) -> None:
    looks = Looks(np.zeros((3, 2, 5, 8), np.uint16), np.zeros((3, 2, 5, 8), np.uint16))
    looks.positions[1, 1, 2, :2], looks.weights[1, 1, 2, :2] = (3, 1), (40_000, 20_000)
    looks.positions[1, 0, 3, 0], looks.weights[1, 0, 3, 0] = 1, 30_000
    looks.positions[1, 0, 4, 0], looks.weights[1, 0, 4, 0] = 1, 65_535  # the layer's mean is no head
    world.engine.answers = {"looks": {"looks": looks.to_bytes(), "lens": (1, 2)}}
    run = start(client)
    world.play(run, story())
    client.get(f"/api/runs/{run}/trace")  # saved
    world.service.call(world.service.deliver, ("down", False))
    reply = client.get(f"/api/runs/{run}/heads?row=3&column=1").json()
    assert reply["source"] == "recorded"
    assert [(one["layer"], one["head"]) for one in reply["heads"]] == [(0, 3), (1, 2)]
    assert [one["weight"] for one in reply["heads"]] == pytest.approx([30_000 / 65_535, 20_000 / 65_535])
    assert client.get(f"/api/runs/{run}/heads?row=3&column=2").json()["heads"] == []
    assert error(client.get(f"/api/runs/{run}/heads?row=3&column=4")) == (422, "looks_ahead")
    assert error(client.get(f"/api/runs/{run}/heads?row=1&column=1")) == (404, "row_not_recorded")
    assert error(client.get(f"/api/runs/{run}/small?layer=0")) == (404, "not_kept")
    assert error(client.get(f"/api/runs/{run}/logit-lens")) == (404, "layers_not_kept")


@pytest.mark.parametrize("path", ["heads?row=3&column=1", "small?layer=0", "logit-lens"])
def test_nothing_can_be_seen_of_a_run_that_waits_or_is_not_there(tmp_path: Path, path: str) -> None:
    nothing_yet(tmp_path, path)


BAD = ["heads?row=-1&column=0", "heads?row=1", "small?layer=0&size=0", "small?layer=0&size=999"]


@pytest.mark.parametrize("query", BAD)
def test_bad_questions_are_refused_in_words(client: TestClient, query: str) -> None:
    assert error(client.get(f"/api/runs/x/{query}")) == (422, "bad_field")
