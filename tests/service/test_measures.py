"""Measuring through the routes: one piece at a time, kept per machine, and only what is this machine's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine.jobs import machine
from engine.machine.recorded import record, recorded
from engine.machine.results import fits_of, wait_of
from engine.settings import Refusal
from engine.trace import Finished, Trace
from engine.weights.catalogue import DEFAULT
from engine.words import say
from service import measures
from tests.engine.traces import FACTS, run
from tests.service.fakes import World, client_of, story

PEAK = {"name": "sum", "kind": "bandwidth", "work": 8, "best": 2.0, "rate": 4.0, "active": 0, "busy": None}


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    with client_of(world) as client:
        client.get("/api/health")
        world.service.call(world.service.models.want, "small")
        yield client


def sat(world: World, client: TestClient, **facts: Any) -> str:
    """A finished run on this machine, or on one with other `facts`."""
    run_id = client.post("/api/runs", json={"prompt": "Hi!"}).json()["id"]
    events = story()
    own = replace(FACTS, model="small", **facts)
    world.play(run_id, [replace(event, facts=own) if event.type == "started" else event for event in events])
    return str(run_id)


def code(reply: Any) -> str:
    return str(reply.json()["error"]["code"])


def test_what_there_is_to_measure_is_told_before_anything_was(client: TestClient) -> None:
    told = client.get("/api/measures").json()
    assert told["model"] == "small" and told["results"] == {} and told["batches"] == [1, 2, 4, 8, 16, 32]
    assert [shape["name"] for shape in told["plan"]] == [shape.name for shape in machine.plan("cpu")]
    assert told["machine"] == {
        "device": "cpu", "device_name": "a laptop", "threads": 2, "dtype": "float32", "torch": "2.13.0",
        "model": "small", "weights": "00ff",
    }  # fmt: skip


def test_a_result_is_kept_and_there_after_a_restart(world: World, client: TestClient, tmp_path: Path) -> None:
    world.engine.answers["peak"] = PEAK
    told = client.post("/api/measures", json={"kind": "peak", "name": "sum"}).json()
    assert told["name"] == "peak/sum" and told["result"]["rate"] == 4.0 and told["result"]["taken"]
    assert world.engine.told("job")[-1][2:] == ("peak", {"model": "small", "name": "sum"})
    assert client.get("/api/measures").json()["results"] == {"peak/sum": told["result"]}
    with client_of(World(tmp_path)) as again:
        again.post("/api/runs", json={"prompt": "x"})
        assert again.get("/api/measures").json()["results"] == {"peak/sum": told["result"]}


def test_batches_and_parts_are_kept_by_the_length_of_the_prompt(world: World, client: TestClient) -> None:
    run_id = sat(world, client)
    world.engine.answers |= {
        "decode_batch": {"prompt": 3, "batch": 8, "best": 0.5},
        "parts": {"prompt": 3, "stage": "decode", "seconds": 1.0},
    }  # fmt: skip
    batch = client.post("/api/measures", json={"kind": "batch", "run": run_id, "batch": 8}).json()
    parts = client.post("/api/measures", json={"kind": "parts", "run": run_id, "stage": "decode"}).json()
    assert (batch["name"], parts["name"]) == ("batch/3/8", "parts/3/decode")
    asked = [message[2:] for message in world.engine.told("job") if message[2] in ("decode_batch", "parts")]
    assert asked == [("decode_batch", {"run": run_id, "batch": 8}), ("parts", {"run": run_id, "stage": "decode"})]


def test_waiting_is_the_runs_own_times(world: World, client: TestClient) -> None:
    run_id = sat(world, client)
    told = client.post("/api/measures", json={"kind": "wait", "run": run_id}).json()["result"]
    summary = client.get(f"/api/runs/{run_id}").json()
    assert (told["ttft"], told["tpot"]) == (summary["ttft"], summary["tpot"])
    assert told["prompt"] == 3 and told["contexts"] == [4, 5] and len(told["itl"]) == 2


def test_case_6_of_the_clock() -> None:
    told = wait_of(run([0.50, 0.60, 0.75, 0.80]))
    assert told["ttft"] == 0.50 and told["tpot"] == pytest.approx(0.10)
    assert told["itl"] == pytest.approx([0.10, 0.15, 0.05]) and told["middle"] == pytest.approx(0.10)
    assert wait_of(run([0.5]))["tpot"] is None and wait_of(run([0.5]))["middle"] is None
    assert wait_of(run([0.5, 0.8, 0.8, 0.8]))["tpot"] == pytest.approx(0.10)


def test_a_run_that_broke_off_has_no_times_to_keep() -> None:
    whole = run([0.5, 0.6])
    for reason in ("stopped", "timeout", "error", "out_of_memory"):
        broken = Trace((*whole.events[:-1], Finished(1.0, reason)))  # type: ignore[arg-type]
        with pytest.raises(Refusal) as refusal:
            wait_of(broken)
        assert refusal.value.code == "nothing_to_keep"
    for events in (whole.events[:-1], whole.events[:1], ()):
        with pytest.raises(Refusal) as refusal:
            wait_of(Trace(tuple(events)))
        assert refusal.value.code == "unfinished"


@pytest.mark.parametrize("change", [{"device_name": "another"}, {"dtype": "bfloat16"}, {"weights_sha256": "aa"}])
def test_what_was_sat_elsewhere_is_not_this_machines(world: World, client: TestClient, change: dict[str, Any]) -> None:
    run_id = sat(world, client, **change)
    for body in ({"kind": "wait"}, {"kind": "batch", "batch": 1}, {"kind": "parts", "stage": "decode"}):
        reply = client.post("/api/measures", json={**body, "run": run_id})
        assert (reply.status_code, code(reply)) == (409, "measured_elsewhere")
    assert client.get("/api/measures").json()["results"] == {}


def test_only_one_piece_is_measured_at_a_time(world: World, client: TestClient) -> None:
    first: list[Any] = []
    thread = threading.Thread(
        target=lambda: first.append(client.post("/api/measures", json={"kind": "peak", "name": "sum"}))
    )
    thread.start()
    while not world.engine.told("job"):
        pass
    second = client.post("/api/measures", json={"kind": "peak", "name": "matvec"})
    assert (second.status_code, code(second)) == (503, "measuring")
    job = world.engine.told("job")[-1][1]
    world.service.call(world.service.deliver, ("result", job, PEAK))
    thread.join(20)
    assert first[0].status_code == 200
    world.engine.answers["peak"] = PEAK
    assert client.post("/api/measures", json={"kind": "peak", "name": "sum"}).status_code == 200


def test_a_refusal_of_the_engine_is_told_and_the_desk_is_free_again(world: World, client: TestClient) -> None:
    def refuse() -> None:
        while not world.engine.told("job"):
            pass
        job = world.engine.told("job")[-1][1]
        world.service.call(world.service.deliver, ("failed", job, "no_shape", {"name": "x"}))

    thread = threading.Thread(target=refuse)
    thread.start()
    reply = client.post("/api/measures", json={"kind": "peak", "name": "x"})
    thread.join(20)
    assert (reply.status_code, code(reply)) == (422, "no_shape")
    world.engine.answers["peak"] = PEAK
    assert client.post("/api/measures", json={"kind": "peak", "name": "sum"}).status_code == 200


def test_who_goes_away_ends_a_piece_that_has_not_begun(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser's stop closes the connection: the job that waits in the engine is called off."""
    monkeypatch.setattr(measures, "LOOK", 0.01)

    async def ask() -> None:
        import asyncio

        from service.api import create

        async with world.service.running():
            world.service.models.want("small")
            await asyncio.sleep(0.05)
            sent: list[Any] = []
            body = json.dumps({"kind": "peak", "name": "sum"}).encode()
            messages = [{"type": "http.request", "body": body, "more_body": False}]

            async def receive() -> Any:
                if messages:
                    return messages.pop(0)
                while not world.engine.told("job"):
                    await asyncio.sleep(0.01)
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                sent.append(message)

            headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
            scope = {
                "type": "http", "method": "POST", "path": "/measures", "raw_path": b"/measures", "query_string": b"",
                "headers": headers, "http_version": "1.1", "scheme": "http", "server": ("localhost", 80),
                "client": ("127.0.0.1", 1), "root_path": "", "asgi": {"version": "3.0"},
            }  # fmt: skip
            await asyncio.wait_for(_swallow(create(world.service)(scope, receive, send)), 10)
            job = world.engine.told("job")[-1][1]
            assert ("cancel", job) in world.engine.sent

    from tests.service.fakes import run_async

    run_async(ask())


async def _swallow(work: Any) -> None:
    import asyncio
    from contextlib import suppress

    with suppress(asyncio.CancelledError):
        await work


def test_the_curves_find_again_what_was_planted() -> None:
    """Times made of a + b n + c n² give a, b and c back, and nothing is left over."""

    def wait(n: int) -> dict[str, Any]:
        contexts = [n + step for step in range(1, 6)]
        middle = 0.05 + 2e-6 * (n + 3)
        return {"prompt": n, "ttft": 0.02 + 3e-4 * n + 5e-8 * n * n, "contexts": contexts, "middle": middle}

    lengths = (32, 128, 512, 1024, 4096)
    found = fits_of({f"wait/{n}": wait(n) for n in reversed(lengths)} | {"batch/3/1": {}, "parts/3/decode": {}})
    assert [found["ttft"][name] for name in "abc"] == pytest.approx([0.02, 3e-4, 5e-8], rel=1e-6)
    assert [found["tpot"][name] for name in "ab"] == pytest.approx([0.05, 2e-6], rel=1e-6)
    assert found["tpot"]["c"] == pytest.approx(0, abs=1e-15)
    assert [n for n, _ in found["ttft"]["points"]] == list(lengths)
    assert found["ttft"]["residuals"] == pytest.approx([0] * 5, abs=1e-9)


def test_a_curve_wants_four_lengths_and_a_word_alone_has_no_gap() -> None:
    waits = {f"wait/{n}": {"prompt": n, "ttft": n / 100, "contexts": [], "middle": None} for n in (1, 2, 3)}
    assert fits_of(waits) == {"ttft": None, "tpot": None} == fits_of({})
    waits["wait/9"] = {"prompt": 9, "ttft": 0.2, "contexts": [10, 11], "middle": 0.1}
    assert fits_of(waits)["ttft"] and fits_of(waits)["tpot"] is None


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({}, 422, "bad_field"),
        ({"kind": "lunch"}, 422, "bad_field"),
        ({"kind": "batch", "batch": "8"}, 422, "bad_field"),
        ({"kind": "parts", "stage": "lunch"}, 422, "bad_field"),
        ({"kind": "peak", "more": 1}, 422, "bad_field"),
        ({"kind": "wait"}, 422, "unknown_run"),
        ({"kind": "wait", "run": "../../etc/passwd"}, 404, "unknown_run"),
        ({"kind": "batch", "run": "neverwasinhere12", "batch": 4}, 404, "unknown_run"),
        ({"kind": "peak", "model": "nobody"}, 422, "unknown_model"),
        ({"kind": "peak", "model": "big"}, 503, "model_absent"),
    ],
)
def test_what_makes_no_sense_is_refused(client: TestClient, body: dict[str, Any], status: int, expected: str) -> None:
    reply = client.post("/api/measures", json=body)
    assert code(reply) == expected and (reply.status_code == status or expected == "unknown_run")
    assert client.get("/api/measures").json()["results"] == {}


def test_without_a_model_there_is_what_was_recorded(world: World) -> None:
    """And why there is no more; with the model loaded, it is still there."""
    world.engine.loads = False
    with client_of(world) as client:
        told = client.get("/api/measures", headers={"Accept-Language": "zh"}).json()
        assert told["problem"]["code"] == "model_not_ready"
        assert told["problem"]["message"] == say("errors.model_not_ready", "zh", model="small")
        assert (told["machine"], told["context"], told["plan"], told["results"]) == (None, None, [], {})
        assert told["fits"] == {"ttft": None, "tpot": None}
        assert told["recorded"] == json.loads(json.dumps(recorded(DEFAULT))) and told["recorded"]["results"]
        ready = ("status", "ready", {"model": "small", "facts": replace(FACTS, model="small")})
        world.service.call(world.service.deliver, ready)
        later = client.get("/api/measures").json()
        assert later["problem"] is None and later["machine"]["model"] == "small"
        assert later["recorded"] == told["recorded"], "of the bundled model, since there is none of this one"


def test_a_models_own_recording_comes_before_the_bundled_ones(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.machine.recorded.FOLDER", tmp_path)
    assert client.get("/api/measures").json()["recorded"] is None
    waits = {f"wait/{n}": {"prompt": n, "ttft": n / 100, "contexts": [], "middle": None} for n in (1, 2, 3, 4)}
    report = {"machine": {}, "versions": {}, "taken": "then", "plan": list(waits), "disturbed": {}, "results": waits}
    for model in (DEFAULT, "small"):
        record({"model": model, **report})
    told = client.get("/api/measures").json()["recorded"]
    assert (told["model"], told["taken"], told["results"]) == ("small", "then", waits)
    assert told["fits"] == json.loads(json.dumps(fits_of(waits)))


def test_a_model_that_is_not_here_has_no_measures(client: TestClient) -> None:
    told = client.get("/api/measures?model=big").json()
    assert told["problem"]["code"] == "model_absent" and told["results"] == {} and told["recorded"]
    assert code(client.get("/api/measures?model=nobody")) == "unknown_model"
    assert code(client.get("/api/runs/neverwasinhere12/costs")) == "unknown_run"
