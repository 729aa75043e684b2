"""A finished run is written down with where its words looked, however long the engine has no time to tell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from engine.settings import Refusal
from engine.trace import file as tracefile
from engine.trace.file import Lens
from engine.trace.looks import Looks
from service import core, saving
from service.jobs import MAX_WAITING, Jobs
from service.runs import KEPT_RUNS
from tests.service.fakes import Message, World, client_of, error, run_async, start, story

LOOKS = Looks(np.zeros((3, 2, 5, 8), np.uint16), np.zeros((3, 2, 5, 8), np.uint16))
TOLD = {"looks": LOOKS.to_bytes(), "lens": (1, 2)}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A service whose engine is busy: it answers when the test says so. Nobody's patience is long here."""
    monkeypatch.setattr(saving, "SOON", 0.01)
    monkeypatch.setattr(core, "SECONDS", 0.01)
    return World(tmp_path)


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    with client_of(world) as client:
        yield client


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def looks_job(world: World, run: str) -> str:
    """The number of the question where a run looked."""
    asked = [message[1] for message in world.engine.told("job") if message[2:] == ("looks", {"run": run})]
    assert len(asked) == 1
    return str(asked[0])


def on_disk(tmp_path: Path, run: str) -> tracefile.TraceFile | None:
    path = tmp_path / "runs" / f"{run}.trace"
    return tracefile.read(path) if path.exists() else None


def test_a_busy_engine_tells_later_and_nothing_is_lost(client: TestClient, world: World, tmp_path: Path) -> None:
    run = start(client)
    assert client.get(f"/api/runs/{run}").json()["looks"] == ""
    world.play(run, story())
    start(client, "a long paper " * 2800)  # and the engine reads it
    until(lambda: (tmp_path / "runs" / f"{run}.json").exists())
    first = on_disk(tmp_path, run)
    assert first is not None and first.looks is None, "what is known is on disk already"
    assert client.get(f"/api/runs/{run}").json()["looks"] == "saving"
    assert error(client.get(f"/api/runs/{run}/trace")) == (503, "looks_wanted")
    assert world.engine.told("cancel") == []

    world.service.call(world.service.deliver, ("result", looks_job(world, run), TOLD))
    until(lambda: client.get(f"/api/runs/{run}").json()["looks"] == "saved")
    last = on_disk(tmp_path, run)
    assert last is not None and last.looks is not None and last.header.lens == Lens(1, 2)
    assert tracefile.read(client.get(f"/api/runs/{run}/trace").content).looks is not None
    assert client.get("/api/runs?owner=").status_code == 200


def test_an_engine_that_answers_at_once_is_not_waited_for_on_disk(client: TestClient, world: World) -> None:
    world.engine.answers = {"looks": TOLD}
    run = start(client, owner="me")
    world.play(run, story())
    until(lambda: client.get(f"/api/runs/{run}").json()["looks"] == "saved")
    assert [each["looks"] for each in client.get("/api/runs?owner=me").json()["runs"]][:1] == ["saved"]


def test_an_engine_that_dies_takes_the_looks_along_and_that_is_said(
    client: TestClient, world: World, tmp_path: Path
) -> None:
    run = start(client, owner="me")
    world.play(run, story())
    world.service.call(world.service.deliver, ("down", False))
    until(lambda: client.get(f"/api/runs/{run}").json()["looks"] == "not_saved")
    until(lambda: on_disk(tmp_path, run) is not None)
    assert tracefile.read(client.get(f"/api/runs/{run}/trace").content).looks is None
    assert [each["looks"] for each in client.get("/api/runs?owner=me").json()["runs"]][:1] == ["not_saved"]


def test_a_program_that_is_closed_meanwhile_has_the_run_on_disk(world: World, tmp_path: Path) -> None:
    with client_of(world) as client:
        run = start(client)
        world.play(run, story())
    assert on_disk(tmp_path, run) is not None
    with client_of(World(tmp_path)) as client:
        assert client.get(f"/api/runs/{run}").json()["looks"] == "not_saved"


def test_a_run_that_wrote_nothing_has_no_looks_to_save(client: TestClient, world: World) -> None:
    run = start(client)
    world.service.call(world.service.deliver, ("down", False))
    until(lambda: client.get(f"/api/runs/{run}").json()["state"] == "finished")
    assert client.get(f"/api/runs/{run}").json()["looks"] == ""


def test_the_engine_hears_the_question_before_it_lets_a_run_go(client: TestClient, world: World) -> None:
    """All in one message loop: the question must not wait for a task that begins later."""

    def many(runs: list[str]) -> None:
        for run in runs:
            world.service.deliver(("events", run, story()))

    runs = [start(client) for _ in range(KEPT_RUNS)]
    world.service.call(many, runs)
    more = [start(client) for _ in range(3)]
    world.service.call(many, more)
    kinds = [(m[0], m[3]["run"] if m[0] == "job" else m[1]) for m in world.engine.sent if m[0] in ("job", "release")]
    released = [run for kind, run in kinds if kind == "release"]
    assert released == runs[:3]
    for run in released:
        assert kinds.index(("job", run)) < kinds.index(("release", run))
    world.service.call(world.service.deliver, ("result", looks_job(world, runs[0]), TOLD))
    until(lambda: client.get(f"/api/runs/{runs[0]}").json()["looks"] == "saved")


def test_patient_questions_take_nobodys_place_and_end_with_the_engine() -> None:
    async def story_of_questions() -> None:
        sent: list[Message] = []
        desk = Jobs(sent.append)
        patient = [desk.begin("looks", {"run": str(number)}) for number in range(MAX_WAITING + 1)]
        asked = asyncio.create_task(desk.ask("attention", {}))
        await asyncio.sleep(0)
        desk.result(sent[-1][1], "answer")
        assert await asked == "answer"
        desk.result(sent[0][1], "first")
        assert await patient[0] == "first"
        desk.fail_all(Refusal("engine_died"))
        with pytest.raises(Refusal, match="engine_died"):
            await patient[1]
        assert all(each.done() and (each.exception() or True) for each in patient)

    run_async(story_of_questions())
