"""Every station with a real service behind it: no run, and a run that goes on, is over, was stopped or broke off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import service
from engine.trace import Finished
from engine.words import say
from tests.service.fakes import World, client_of, story
from tests.views.test_stations import STATIONS
from tests.views.told import At, told
from views import lessons

pytestmark = pytest.mark.slow

STATES = ("none", "waiting", "running", "finished", "stopped", "failed")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[tuple[World, TestClient]]:
    world = World(tmp_path)
    with client_of(world) as client:
        service.use(world.service)
        yield world, client


def run_in(state: str, world: World, client: TestClient) -> str:
    """A run of the service in that state; its id, or "" for none."""
    if state == "none":
        return ""
    world.engine.loads = False
    if state == "waiting":
        world.service.call(world.service.deliver, ("down", False))
    run = str(client.post("/api/runs", json={"prompt": "Hi!", "keep": True}).json()["id"])
    events = story()
    ends = {
        "running": events[:5],
        "finished": events,
        "stopped": [*events[:5], Finished(events[5].at, "stopped")],
        "failed": [replace(Finished(9.0, "error", "model_failed", (("why", "no"),)))],
    }
    if state in ends:
        world.play(run, ends[state])
    return run


CASES = [(name, state, ("en", "zh")[(at + number) % 2])
         for at, name in enumerate(STATIONS) for number, state in enumerate(STATES)]  # fmt: skip
"""One language each: that the words are there in both is tested elsewhere."""


@pytest.mark.parametrize(("name", "state", "lang"), CASES)
def test_a_station_stands_whatever_became_of_the_run(
    at: At, desk: tuple[World, TestClient], name: str, state: str, lang: str
) -> None:
    run = run_in(state, *desk)
    app = at(name, lang=lang, **({"run": run} if run else {}))
    assert not app.exception and not app.error and not app.warning
    station = told(app, "station")
    assert station["run"] == (run or lessons.recording(lang))  # type: ignore[arg-type]
    assert station["words"]["title"] == say(f"{name}.title", lang)
