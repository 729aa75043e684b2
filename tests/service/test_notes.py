"""The routes that look at the KV cache: what is asked of the engine, and what is said when it cannot answer."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.service.fakes import World, error, nothing_yet, start, story

PATHS = ("notes?layer=0&head=0", "notes/bytes", "columns")


def asked(world: World) -> list[tuple[str, dict[str, Any]]]:
    return [(message[2], message[3]) for message in world.engine.told("job") if message[2] != "looks"]


@pytest.mark.parametrize("going", [True, False])
def test_the_engine_is_asked_while_it_holds_the_run(client: TestClient, world: World, going: bool) -> None:
    scales, values = struct.pack("<2f", 0.5, 2.0), bytes([127, 0, 129, 64])
    told = {"length": 2, "capacity": 9, "allocated": 900, "layers": [40, 30], "held": 80, "queries": 10}
    world.engine.answers = {
        "note_values": {"positions": 2, "size": 2, "first": 1, "scales": scales, "values": values},
        "note_bytes": told,
        "watch_columns": 1,
        "columns": [(2, "00" * 16, True, 0.002), (3, "00" * 24, False, 0.003)],
    }
    run = start(client)
    world.play(run, story()[:6] if going else story())
    reply = client.get(f"/api/runs/{run}/notes?layer=1&kind=value&head=2")
    assert reply.content == scales + values
    assert [reply.headers[f"X-{name}"] for name in ("Source", "Positions", "Size", "First")] == [
        "measured", "2", "2", "1",
    ]  # fmt: skip
    assert client.get(f"/api/runs/{run}/notes/bytes").json() == {"source": "measured", **told}
    begun = client.post(f"/api/runs/{run}/columns")
    assert (begun.status_code, begun.json()) == (202, {"checks": 1})
    checks = client.get(f"/api/runs/{run}/columns?from=4").json()
    assert checks["source"] == "computed" and checks["checks"][1] == {
        "length": 3, "sums": "00" * 24, "asked": False, "seconds": 0.003,
    }  # fmt: skip
    assert asked(world) == [
        ("note_values", {"run": run, "layer": 1, "kind": "value", "head": 2}),
        ("note_bytes", {"run": run}),
        ("watch_columns", {"run": run}),
        ("columns", {"run": run, "start": 4}),
    ]


@pytest.mark.parametrize("path", PATHS)
def test_a_saved_run_has_no_notes_left(client: TestClient, world: World, path: str) -> None:
    run = start(client)
    world.play(run, story())
    world.service.call(world.service.deliver, ("down", False))
    assert error(client.get(f"/api/runs/{run}/{path}")) == (404, "notes_not_kept")
    assert error(client.post(f"/api/runs/{run}/columns")) == (404, "notes_not_kept")
    assert asked(world) == []


@pytest.mark.parametrize("path", PATHS)
def test_nothing_can_be_seen_of_a_run_that_waits_or_is_not_there(tmp_path: Path, path: str) -> None:
    nothing_yet(tmp_path, path)


BAD = ["notes?layer=-1&head=0", "notes?layer=0", "notes?head=0", "notes?layer=0&head=0&kind=query", "columns?from=-1"]


@pytest.mark.parametrize("query", BAD)
def test_bad_questions_are_refused_in_words(client: TestClient, query: str) -> None:
    assert error(client.get(f"/api/runs/x/{query}")) == (422, "bad_field")


@pytest.mark.parametrize(("code", "status"), [("no_kv_head", 422), ("no_notes", 409), ("too_long_to_watch", 413)])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_the_engine_refuses_is_a_sentence(
    client: TestClient, world: World, code: str, status: int, lang: str
) -> None:
    run = start(client)
    world.play(run, story())
    values = {"head": 9, "heads": 3, "size": "70 MB", "bound": "34 MB"}
    send = world.engine.send

    def refuse(message: tuple[Any, ...]) -> None:
        send(message)
        if message[0] == "job" and message[2] == "note_bytes":
            world.engine.deliver(("failed", message[1], code, values))

    world.engine.send = refuse  # type: ignore[method-assign]
    world.service.jobs._send = refuse
    reply = client.get(f"/api/runs/{run}/notes/bytes?lang={lang}")
    assert error(reply) == (status, code)
    assert "{" not in reply.json()["error"]["message"]
