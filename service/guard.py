"""What stands before every route: whose page asks (`Origin`), by which name (`Host`), and how much (the body).

Streamlit checks none of this for routes that are not its own. Without the check of `Host`, a page anywhere could
give its own name this machine's address (DNS rebinding) and would then pass as our own page.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.settings import Refusal
from service.bounds import MAX_BODY
from service.errors import response

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """Pure ASGI, so that WebSockets are guarded too. `lan`: other machines may ask, by address or this one's name."""

    def __init__(self, app: ASGIApp, lan: bool = False) -> None:
        self._app = app
        self._lan = lan
        own = socket.gethostname().lower()
        self._names = _LOCAL | ({own, f"{own}.local", socket.getfqdn().lower()} if lan else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        if refusal is None and scope["type"] == "http":
            await self._app(scope, _bounded(receive), _hardened(send))
        elif refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await response(refusal, scope)(scope, receive, _hardened(send))
        else:  # before it is accepted: the handshake is answered with 403
            await send({"type": "websocket.close", "code": 4403, "reason": refusal.code})

    def _refusal(self, headers: Headers) -> Refusal | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._known(_name(host)):
            return Refusal("host_refused", host=host[:100])
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return Refusal("origin_refused", origin=origin[:100])
        if headers.get("content-length", "0").isdecimal() and int(headers.get("content-length", "0")) > MAX_BODY:
            return Refusal("body_too_large", bound=MAX_BODY)
        return None

    def _known(self, name: str) -> bool:
        return name in self._names or (self._lan and _is_address(name))


def _name(host: str) -> str:
    """The host of a `Host` header, without port and brackets; empty when it is no host."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _bounded(receive: Receive) -> Receive:
    """For bodies sent in pieces, without saying how long they are. Raises `Refusal("body_too_large")`."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            raise Refusal("body_too_large", bound=MAX_BODY)
        return message

    return bounded


def _hardened(send: Send) -> Send:
    """No guessing of types; no copies of runs in caches, which are shared."""

    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return hardened
