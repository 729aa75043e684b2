"""The routes as a browser and as `curl` see them."""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from engine.settings import MAX_PROMPT_CHARACTERS, Refusal
from engine.trace import Trace
from engine.trace import file as tracefile
from engine.trace.file import Header, Lens, TraceFile
from engine.trace.looks import Looks
from service.bounds import MAX_BODY
from tests.service.fakes import World, client_of, error, start, story

ROOT = Path(__file__).parents[2]


def watch(client: TestClient, run: str, query: str = "", **more: Any) -> Any:
    return client.websocket_connect(f"ws://localhost:8501/api/runs/{run}/events{query}", **more)


def lines(client: TestClient, run: str, start: int = 0) -> tuple[list[dict[str, Any]], int]:
    """All events from number `start` on, and the code the socket was closed with."""
    got = []
    with watch(client, run, f"?from={start}") as socket:
        try:
            while True:
                got += [json.loads(line) for line in socket.receive_text().split("\n")]
        except WebSocketDisconnect as closed:
            return got, closed.code


def test_a_run_from_start_to_trace(client: TestClient, world: World) -> None:
    run = start(client, owner="anna")
    assert client.get(f"/api/runs/{run}").json()["state"] == "running"
    world.play(run, story())
    events, code = lines(client, run)
    assert code == 1000
    assert [event["type"] for event in events] == ["queued", *(event.type for event in story())]
    summary = client.get(f"/api/runs/{run}").json()
    assert summary == {
        "id": run, "title": "Hi!", "prompt": "Hi!", "model": "tiny", "created": summary["created"], "state": "finished",
        "reason": "length", "recorded": False, "lens": None, "kept": True, "events": len(events),
        "ttft": 1.5, "tpot": 1.0, "output_text": "aaa", "code": "", "looks": "saving",
    }  # fmt: skip
    assert [one["id"] for one in client.get("/api/runs?owner=anna").json()["runs"]] == [run]
    assert client.get("/api/runs").json() == {"runs": []}
    world.service.call(world.service.jobs.fail_all, Refusal("job_failed"))
    file = tracefile.read(client.get(f"/api/runs/{run}/trace").content)
    assert file.trace.events[1:] == tuple(story())


def test_events_come_while_the_run_goes_on_and_from_any_number(client: TestClient, world: World) -> None:
    run = start(client)
    with watch(client, run) as one:
        assert json.loads(one.receive_text())["type"] == "queued"
        world.play(run, story()[:2])
        first = one.receive_text().split("\n")
        with watch(client, run, "?from=2") as two:
            assert two.receive_text() == first[1]
            world.play(run, story()[2:4])
            assert one.receive_text() == two.receive_text()


def test_a_finished_run_is_sent_from_any_number(client: TestClient, world: World) -> None:
    run = start(client)
    world.play(run, story())
    everything, _ = lines(client, run)
    assert lines(client, run, 5) == (everything[5:], 1000)
    assert lines(client, run, 10_000) == ([], 1000)


def test_sockets_say_why_they_close(client: TestClient, tmp_path: Path) -> None:
    assert lines(client, "x" * 16) == ([], 4404)
    assert lines(client, "open-book") == ([], 4404)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / f"{'y' * 16}.trace").write_bytes(b"PK\3\4 damaged")
    assert lines(client, "y" * 16) == ([], 4404)
    with pytest.raises(WebSocketDisconnect), watch(client, "x" * 16, "?from=-1"):
        pass


def test_a_damaged_file_is_a_refusal(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / f"{'y' * 16}.trace").write_bytes(b"PK\3\4 damaged")
    for path in ("", "/trace", "/attention?layer=0&row=0", "/map?layer=0"):
        status, code = error(client.get(f"/api/runs/{'y' * 16}{path}"))
        assert status == 422 and code.startswith("trace_")


def test_a_viewer_that_leaves_is_noticed(client: TestClient, world: World) -> None:
    run = start(client)
    live = world.service.runs.live[run]
    with watch(client, run) as socket:
        socket.receive_text()
        assert live.feed.watchers == 1
    deadline = time.monotonic() + 60
    while live.feed.watchers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert live.feed.watchers == 0


def test_stop_reaches_the_engine_and_a_finished_run_stays_as_it_is(client: TestClient, world: World) -> None:
    run = start(client)
    assert client.post(f"/api/runs/{run}/stop").status_code == 202
    assert world.engine.told("stop") == [("stop", run, "stopped")]
    world.play(run, story())
    assert client.post(f"/api/runs/{run}/stop").status_code == 202
    assert len(world.engine.told("stop")) == 1
    assert client.get(f"/api/runs/{run}").json()["reason"] == "length"


BAD_BODIES: list[tuple[Any, int, str]] = [
    (b"{", 422, "not_json"),
    (b"[" * 100_000, 422, "not_json"),
    (b"\xff\xfe", 422, "not_json"),
    ([], 422, "bad_field"),
    ({}, 422, "bad_field"),
    ({"prompt": 7}, 422, "bad_field"),
    ({"prompt": "Hi!", "max_new_tokens": "64"}, 422, "bad_field"),
    ({"prompt": "Hi!", "unknown": 1}, 422, "bad_field"),
    ({"prompt": "Hi!", "mode": "shell"}, 422, "bad_field"),
    ({"prompt": "Hi!", "max_new_tokens": 0}, 422, "out_of_range"),
    ({"prompt": " "}, 422, "empty_prompt"),
    ({"prompt": "Hi!", "owner": "a b"}, 422, "bad_owner"),
    ({"prompt": "Hi!", "model": "/etc"}, 422, "unknown_model"),
    ({"prompt": "Hi!", "model": "org/name"}, 422, "unknown_model"),
    ({"prompt": "Hi!", "model": "big"}, 503, "model_absent"),
    ({"prompt": "x" * (MAX_PROMPT_CHARACTERS + 1)}, 413, "prompt_too_long"),
    (b'{"prompt": "a\\ud800b"}', 422, "lone_surrogate"),
    (b'{"prompt": "Hi!", "temperature": NaN}', 422, "bad_field"),
    (b"x" * (MAX_BODY + 1), 413, "body_too_large"),
]


@pytest.mark.parametrize(("body", "status", "code"), BAD_BODIES)
def test_bad_requests_are_refused_in_words(client: TestClient, body: Any, status: int, code: str) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = client.post("/api/runs", content=content)
    assert error(reply) == (status, code)
    assert len(reply.json()["error"]["message"]) > 10 and "{" not in reply.json()["error"]["message"]


def test_a_large_body_is_refused_before_all_of_it_is_read(client: TestClient) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 1
            yield b"x" * 2**18

    assert error(client.post("/api/runs", content=pieces())) == (413, "body_too_large")


@pytest.mark.parametrize("path", ["/api/runs/..%2f..%2fetc", "/api/runs/%2e%2e", "/api/runs/nul", "/api/runs/a%00b"])
def test_ids_reach_no_file(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404
    assert client.get(f"{path}/trace").status_code == 404


def test_sentences_come_in_the_readers_language(client: TestClient) -> None:
    def message(**headers: str) -> str:
        return str(client.get("/api/runs/x", headers=headers).json()["error"]["message"])

    assert message().startswith("There is no run")
    assert message(**{"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}).startswith("没有")
    assert message(**{"Accept-Language": "fr,en;q=0.5"}).startswith("There")
    assert client.get("/api/runs/x?lang=zh").json()["error"]["message"].startswith("没有")


def test_no_traceback_and_no_bare_error(client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert error(client.get("/api/nothing")) == (404, "no_route")
    assert error(client.delete("/api/runs")) == (405, "wrong_method")
    assert error(client.get("/api/runs/x/attention?layer=a&row=0")) == (422, "bad_field")
    monkeypatch.setattr(world.service, "health", lambda: 1 / 0)
    reply = client.get("/api/health")
    assert error(reply) == (500, "unexpected")
    assert "ZeroDivision" not in reply.text


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Origin": "http://localhost:8501"}, None),
        ({"Origin": "http://evil.example"}, "origin_refused"),
        ({"Origin": "http://localhost:9999"}, "origin_refused"),
        ({"Origin": "null"}, "origin_refused"),
        ({"Host": "127.0.0.1:8501"}, None),
        ({"Host": "[::1]:8501"}, None),
        ({"Host": "192.168.1.5:8501"}, "host_refused"),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, "host_refused"),
        ({"Host": "[bad"}, "host_refused"),
    ],
)
def test_strangers_pages_and_names_are_refused(client: TestClient, headers: dict[str, str], code: str | None) -> None:
    reply = client.get("/api/health", headers=headers)
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert (reply.status_code == 200) if code is None else (error(reply) == (403, code))
    run = start(client)
    if code is None:
        with watch(client, run, headers=headers) as socket:
            assert socket.receive_text()
    else:
        with pytest.raises(WebSocketDisconnect), watch(client, run, headers=headers):
            pass


def test_the_class_may_ask_by_address_but_not_by_any_name(world: World) -> None:
    with client_of(world, lan=True) as client:
        assert client.get("/api/health", headers={"Host": "192.168.1.5:8501"}).status_code == 200
        assert error(client.get("/api/health", headers={"Host": "evil.example"})) == (403, "host_refused")
        headers = {"Host": "192.168.1.5:8501", "Origin": "http://192.168.1.6:8501"}
        assert error(client.get("/api/health", headers=headers)) == (403, "origin_refused")


def test_attention_of_a_run_in_the_engine_is_computed_once(client: TestClient, world: World) -> None:
    run = start(client)
    world.play(run, story())
    world.engine.answers = {"attention": (1, 4, b"\1\0" * 4), "map": (5, 5, bytes(25))}
    for _ in range(2):
        reply = client.get(f"/api/runs/{run}/attention?layer=1&head=2&row=3")
        assert reply.content == b"\1\0" * 4
        assert (reply.headers["X-Source"], reply.headers["X-First-Row"]) == ("computed", "3")
    reply = client.get(f"/api/runs/{run}/map?layer=1")
    assert (reply.headers["X-Rows"], reply.headers["X-Columns"], len(reply.content)) == ("5", "5", 25)
    questions = [message[2:] for message in world.engine.told("job") if message[2] != "looks"]
    assert questions == [
        ("attention", {"run": run, "layer": 1, "head": 2, "row": 3}),
        ("map", {"run": run, "layer": 1, "head": None}),
    ]


def test_a_run_is_saved_with_its_looks_and_its_lens(client: TestClient, world: World) -> None:
    looks = Looks(np.zeros((3, 2, 5, 8), np.uint16), np.zeros((3, 2, 5, 8), np.uint16))
    looks.weights[1, 1, 2, :2], looks.positions[1, 1, 2, :2] = (40_000, 20_000), (3, 0)
    world.engine.answers = {"looks": {"looks": looks.to_bytes(), "lens": (1, 2)}}
    run = start(client)
    world.play(run, story())
    file = tracefile.read(client.get(f"/api/runs/{run}/trace").content)
    assert file.header.lens == Lens(1, 2) and file.looks is not None
    assert client.get(f"/api/runs/{run}").json()["lens"] == {"layer": 1, "head": 2}

    world.service.call(world.service.deliver, ("down", False))  # and with it everything computed
    assert client.get(f"/api/runs/{run}").json()["kept"] is False
    reply = client.get(f"/api/runs/{run}/attention?layer=1&head=2&row=3")
    assert (reply.headers["X-Source"], reply.headers["X-Kept"]) == ("recorded", "8")
    assert struct.unpack("<4H", reply.content) == (20_000, 0, 0, 40_000)
    reply = client.get(f"/api/runs/{run}/map?layer=1&head=2")
    assert [reply.headers[f"X-{name}"] for name in ("First-Row", "Rows", "Columns")] == ["2", "3", "5"]
    assert list(reply.content[5:10]) == [78, 0, 0, 156, 0]
    for query, code in [
        ("layer=2&row=3", "no_layer"), ("layer=1&head=4&row=3", "no_head"), ("layer=1&row=1", "row_not_recorded"),
        ("layer=1&row=5", "row_not_recorded"),
    ]:  # fmt: skip
        assert error(client.get(f"/api/runs/{run}/attention?{query}"))[1] == code


def test_attention_that_nobody_kept(client: TestClient, world: World) -> None:
    run = start(client)
    assert error(client.get(f"/api/runs/{run}/map?layer=0")) == (409, "unfinished")
    world.play(run, story()[:-1])
    world.service.call(world.service.deliver, ("down", False))
    assert error(client.get(f"/api/runs/{run}/attention?layer=0&row=0")) == (404, "not_kept")


def test_links_survive_a_restart(tmp_path: Path, world: World) -> None:
    with client_of(world) as client:
        run = start(client, owner="anna")
        world.play(run, story())
    with client_of(World(tmp_path)) as client:
        assert lines(client, run)[1] == 1000
        assert client.get(f"/api/runs/{run}").json()["output_text"] == "aaa"
        assert [one["id"] for one in client.get("/api/runs?owner=anna").json()["runs"]] == [run]


def test_closing_the_program_ends_what_goes_on_with_a_sentence(tmp_path: Path, world: World) -> None:
    with client_of(world) as client:
        run = start(client)
        world.play(run, story()[:-1])
    with client_of(World(tmp_path)) as client:
        last = lines(client, run)[0][-1]
        assert (last["type"], last["reason"], last["code"]) == ("finished", "error", "program_closed")
        told = client.get(f"/api/runs/{run}").json()
        assert (told["reason"], told["code"]) == ("error", "program_closed")


def test_recordings_play_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    header = Header("x", "Open book", "2026-12-01T09:00:00+00:00")
    tracefile.write(tmp_path / "recordings" / "open-book.trace", TraceFile(header, Trace(tuple(story()))))
    with client_of(World(tmp_path, default="big")) as client:
        assert client.get("/api/health").json()["engine"] == "failed"
        (listed,) = client.get("/api/runs").json()["runs"]
        assert (listed["id"], listed["title"], listed["recorded"]) == ("open-book", "Open book", True)
        assert len(lines(client, "open-book")[0]) == len(story())


def test_models_and_health(client: TestClient, world: World) -> None:
    assert client.get("/api/health").json() == {
        "engine": "ready", "progress": None, "doing": "", "active": 0, "queued": 0, "model": "small", "error": None,
    }  # fmt: skip
    small, big = client.get("/api/models").json()["models"]
    assert (small["state"], small["default"], big["state"], big["default"]) == ("loaded", True, "absent", False)
    assert error(client.post("/api/models/big/fetch")) == (403, "terms_not_accepted")
    assert error(client.post("/api/models/none/fetch", json={"accept_terms": True})) == (422, "unknown_model")
    assert client.post("/api/models/big/fetch", json={"accept_terms": True}).status_code == 202


def documented() -> set[tuple[str, str]]:
    """Methods and paths in the table of docs/api.md; figures are the pages' own (tests/views)."""
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    found = re.findall(r"^\| `(GET|POST|WS) (/api/[^`?]*)", text, re.MULTILINE)
    return {(method, path) for method, path in found if not path.startswith("/api/figures")}


def test_what_is_documented_is_there_and_the_other_way_round(client: TestClient) -> None:
    schema = client.get("/api/openapi.json").json()
    routes = {
        (method.upper(), "/api" + path.replace("{run_id}", "{id}"))
        for path, methods in schema["paths"].items()
        for method in methods
    }
    assert routes | {("WS", "/api/runs/{id}/events")} == documented()
    assert schema["components"] and "prompt" in json.dumps(schema["paths"]["/runs"]["post"]["requestBody"])
    assert client.get("/api/docs").text.startswith("# The service")
