"""The routes that cut texts and search vocabularies, in front of an engine that is asked and one that is not there."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine.trace import Token
from tests.service.fakes import FakeStore, World, client_of, error

TOKENS = (Token(5, "⟨E4⟩", b"\xe4", 0, 1), Token(2, "<end>", b"<end>", 1, 6, True))


def test_the_engine_cuts_and_the_tokens_are_told_as_in_a_trace(client: TestClient, world: World) -> None:
    done = {"text": "x<end>", "tokens": TOKENS, "own_start": 0, "own_stop": 2, "flagged": (1,), "seconds": 0.25}
    world.engine.answers = {"tokenise": done}
    told = client.post("/api/tokenise", json={"text": "x<end>", "control": "control", "mode": "chat"}).json()
    assert (told["model"], told["seconds"], told["flagged"]) == ("small", 0.25, [1])
    assert told["tokens"] == [
        {"id": 5, "text": "⟨E4⟩", "bytes": base64.b64encode(b"\xe4").decode(), "start": 0, "stop": 1, "special": False},
        {"id": 2, "text": "<end>", "bytes": "PGVuZD4=", "start": 1, "stop": 6, "special": True},
    ]
    assert world.engine.told("job")[0][2:] == (
        "tokenise", {"model": "small", "text": "x<end>", "control": "control", "mode": "chat"},
    )  # fmt: skip


def test_a_papers_tokens_are_counted(client: TestClient, world: World) -> None:
    world.engine.answers = {"count": {"tokens": 9000, "bound": 8191}}
    told = client.post("/api/tokenise/count", json={"text": "x" * 30_000, "mode": "chat"}).json()
    assert told == {"tokens": 9000, "bound": 8191, "model": "small"}


def test_the_engine_searches(client: TestClient, world: World) -> None:
    world.engine.answers = {"vocabulary": {"hits": TOKENS[1:], "found": 1, "size": 9}}
    told = client.get("/api/vocabulary", params={"query": "<e", "model": "small"}).json()
    assert (told["found"], told["size"], [hit["id"] for hit in told["hits"]]) == (1, 9, [2])
    assert world.engine.told("job")[0][2:] == ("vocabulary", {"model": "small", "query": "<e"})


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "not_json"),
        (b"{}", "bad_field"),
        (b'{"text": 7}', "bad_field"),
        (b'{"text": "x", "mode": "verse"}', "bad_field"),
        (b'{"text": "x", "more": 1}', "bad_field"),
        (b'{"text": "\\ud800"}', "lone_surrogate"),
        (b'{"text": "x", "model": "../../etc"}', "unknown_model"),
    ],
)
def test_bad_bodies_are_refused_in_words(client: TestClient, world: World, body: bytes, code: str) -> None:
    reply = client.post("/api/tokenise", content=body)
    assert error(reply) == (422, code) and reply.json()["error"]["message"]
    assert world.engine.told("job") == []


def test_a_model_that_is_not_there_is_told_by_its_name(client: TestClient, world: World) -> None:
    for reply in (client.post("/api/tokenise", json={"text": "x", "model": "big"}),
                  client.get("/api/vocabulary", params={"query": "x", "model": "big"})):  # fmt: skip
        assert error(reply) == (503, "model_absent")
        assert "The big one" in reply.json()["error"]["message"]


def test_a_model_that_is_fetched_only_is_made_ready_for_the_next_time(tmp_path: Path) -> None:
    world = World(tmp_path, FakeStore("small", "big"))
    send = world.engine.send

    def refuse(message: tuple[Any, ...]) -> None:
        send(message)
        if message[0] == "job":
            world.service.loop.call_soon(
                world.service.deliver, ("failed", message[1], "model_not_ready", {"model": "big"})
            )

    world.engine.send = refuse  # type: ignore[method-assign]
    world.service.jobs._send = refuse
    with client_of(world) as client:
        assert ("load", "big") not in world.engine.sent
        assert error(client.post("/api/tokenise", json={"text": "x", "model": "big"})) == (422, "model_not_ready")
        assert ("load", "big") in world.engine.sent


def test_nobody_waits_for_an_engine_that_failed(client: TestClient, world: World) -> None:
    world.service.call(world.service.deliver, ("down", True))
    assert error(client.post("/api/tokenise", json={"text": "x"})) == (503, "engine_failed")
    assert world.engine.told("job") == []
