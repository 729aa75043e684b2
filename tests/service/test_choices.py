"""The routes about one word, while the engine holds the run and when only its recording is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from engine.trace.looks import Looks
from tests.service.fakes import World, error, nothing_yet, start, story

TOLD: dict[str, Any] = {
    "position": 3, "token": 7, "settings": {"temperature": 0.5}, "candidates": [(7, "a", False), (9, "b", True)],
    "stages": [{"name": "model", "left": 384, "entropy": 1.5, "probabilities": [0.6, 0.3]}], "drawn": 9,
}  # fmt: skip


def test_the_engine_is_asked_with_what_was_given_and_nothing_else(client: TestClient, world: World) -> None:
    world.engine.answers = {"choice": TOLD, "reads": (2, 4, bytes(range(8)))}
    run = start(client)
    world.play(run, story())
    told = client.get(f"/api/runs/{run}/choice?step=1&temperature=0.5&top_k=3").json()
    assert told == {
        **TOLD, "source": "computed",
        "candidates": [{"id": 7, "text": "a", "repeated": False}, {"id": 9, "text": "b", "repeated": True}],
    }  # fmt: skip
    client.get(f"/api/runs/{run}/choice?step=0&top_p=0.5&min_p=0&repetition_penalty=1.5&seed=0")
    reads = client.get(f"/api/runs/{run}/reads?row=3")
    assert (reads.headers["X-Layers"], reads.headers["X-Source"], reads.content) == ("2", "computed", bytes(range(8)))
    assert [message[2:] for message in world.engine.told("job") if message[2] != "looks"] == [
        ("choice", {"run": run, "step": 1, "settings": {"temperature": 0.5, "top_k": 3}}),
        ("choice", {"run": run, "step": 0,
                    "settings": {"top_p": 0.5, "min_p": 0, "repetition_penalty": 1.5, "seed": 0}}),
        ("reads", {"run": run, "row": 3}),
    ]  # fmt: skip


def test_a_saved_run_tells_the_strongest_looks_and_that_choices_are_gone(client: TestClient, world: World) -> None:
    looks = Looks(np.zeros((3, 2, 5, 8), np.uint16), np.zeros((3, 2, 5, 8), np.uint16))
    looks.positions[1, 1, 2, :2], looks.weights[1, 1, 2, :2] = (3, 1), (40_000, 20_000)
    looks.positions[1, 1, 3, 0], looks.weights[1, 1, 3, 0] = 1, 30_000
    looks.positions[1, 1, 4, 0], looks.weights[1, 1, 4, 0] = 2, 65_535  # the layer's mean is no head
    world.engine.answers = {"looks": {"looks": looks.to_bytes(), "lens": (1, 2)}}
    run = start(client)
    world.play(run, story())
    client.get(f"/api/runs/{run}/trace")  # saved
    world.service.call(world.service.deliver, ("down", False))
    reply = client.get(f"/api/runs/{run}/reads?row=3")
    assert (reply.headers["X-Source"], reply.headers["X-Layers"]) == ("recorded", "2")
    assert [*reply.content] == [0, 0, 0, 0, 0, round(30_000 / 257), 0, round(40_000 / 257)]
    assert error(client.get(f"/api/runs/{run}/reads?row=1")) == (404, "row_not_recorded")
    assert error(client.get(f"/api/runs/{run}/choice?step=0")) == (404, "choices_not_kept")


@pytest.mark.parametrize("path", ["choice?step=0", "reads?row=3"])
def test_nothing_is_told_of_a_run_that_waits_or_is_not_there(tmp_path: Path, path: str) -> None:
    nothing_yet(tmp_path, path)


BAD = ["", "step=-1", "step=x", "step=0&temperature=-1", "step=0&temperature=nan", "step=0&top_p=0", "step=0&top_k=1.5",
       "step=0&min_p=2", "step=0&repetition_penalty=0", "step=0&seed=-1"]  # fmt: skip


@pytest.mark.parametrize("query", BAD)
def test_bad_questions_are_refused_in_words(client: TestClient, query: str) -> None:
    assert error(client.get(f"/api/runs/x/choice?{query}")) == (422, "bad_field")
