"""What every answer tells the browser, whoever gives it, and who may frame the page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from service.headers import Headers, hashes, origins
from tests.service.fakes import World, client_of

PAGE = "<html><script>\n go = 1\n</script><script src='./a.js'></script></html>"
DIGEST = base64.b64encode(hashlib.sha256(b"\n go = 1\n").digest()).decode()
HASH = f"'sha256-{DIGEST}'"


def app(**options: object) -> Starlette:
    async def page(request: object) -> PlainTextResponse:
        return PlainTextResponse(PAGE, headers={"X-Content-Type-Options": "sniff"})

    async def broken(request: object) -> PlainTextResponse:
        raise RuntimeError

    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("here")
        await websocket.close()

    async def no(websocket: WebSocket) -> None:
        await websocket.send_denial_response(PlainTextResponse("no", 403))

    routes = [Route("/", page), Route("/broken", broken), WebSocketRoute("/ws", socket), WebSocketRoute("/no", no)]
    return Starlette(routes=routes, middleware=[Middleware(Headers, **options)])


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(app(page=PAGE), raise_server_exceptions=False) as client:
        yield client


def policy(headers: object) -> dict[str, str]:
    listed = headers["Content-Security-Policy"].split("; ")  # type: ignore[index]
    return dict(each.split(" ", 1) for each in listed)


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/nowhere", 404)])
def test_every_answer_has_them(client: TestClient, path: str, status: int) -> None:
    reply = client.get(path)
    assert reply.status_code == status
    assert reply.headers.get_list("X-Content-Type-Options") == ["nosniff"]
    assert reply.headers["Referrer-Policy"] == "same-origin"
    told = policy(reply.headers)
    assert told["default-src"] == "'self'" and told["object-src"] == "'none'"
    assert told["frame-ancestors"] == "'self'"
    assert "unsafe-eval" not in told["script-src"].replace("wasm-unsafe-eval", "")
    assert "unsafe-inline" not in told["script-src"] and told["script-src"].endswith(HASH)


def test_the_api_has_them_too(tmp_path: Path) -> None:
    world = World(tmp_path)
    with client_of(world) as inner:
        whole = Starlette(routes=[Mount("/", inner.app)], middleware=[Middleware(Headers)])
        reply = TestClient(whole, base_url="http://localhost:8501").get("/api/health")
    assert reply.json()["queued"] == 0
    assert "frame-ancestors" in policy(reply.headers) and reply.headers["Cache-Control"] == "no-store"


def test_websockets_go_through_and_one_that_is_refused_has_them(client: TestClient) -> None:
    with client.websocket_connect("/ws") as socket:
        assert socket.receive_text() == "here"
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect("/no"):
        pass
    assert refused.value.headers["X-Content-Type-Options"] == "nosniff"


def test_those_who_embed_say_who_they_are() -> None:
    listed = origins(" https://lms.example.org, http://192.168.1.5:8080\nhttps://*.school.example ")
    assert listed == ("https://lms.example.org", "http://192.168.1.5:8080", "https://*.school.example")
    with TestClient(app(embed=listed)) as client:
        assert policy(client.get("/").headers)["frame-ancestors"] == " ".join(["'self'", *listed])
    assert origins("") == ()


@pytest.mark.parametrize("wrong", ["*", "lms.example.org", "https://a.b;script-src *", "https://a.b/x", "'none'"])
def test_what_is_no_origin_is_not_taken(wrong: str) -> None:
    with pytest.raises(ValueError, match="OPEN_BOOK_EXAM_EMBED"):
        origins(f"https://lms.example.org {wrong}")


def test_scripts_inside_the_page_are_named_by_their_hash() -> None:
    assert hashes(PAGE) == (HASH,)
    assert hashes("<script type='module' src='a.js'></script>") == ()
