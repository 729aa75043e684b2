"""What every answer tells the browser: what a page may load and run, who may frame it, what is told to other hosts.

The page needs nothing from anywhere else, so everything is `'self'` but for what Streamlit 1.67 and the scene do:

- styles inline: Streamlit's (emotion) and the scene's, which set sizes and colours on elements;
- `blob:` scripts: a component's module is handed to the browser that way;
- WebAssembly, which protobuf counts long numbers with;
- the one script inside Streamlit's page, by its hash;
- `data:` and `blob:` pictures, fonts and workers: icons in Streamlit's styles, drawings that are saved as a picture.

No other script inline and none made from text (`eval`): plotly and Streamlit do without.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = {
    "default-src": "'self'",
    "script-src": "'self' blob: 'wasm-unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "media-src": "'self' data: blob:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}

_ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9.-]+(:\d{1,5})?")
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STARTS = ("http.response.start", "websocket.http.response.start")
"""Of answers with headers that a browser heeds; a WebSocket that is accepted has none of those."""


def origins(listed: str) -> tuple[str, ...]:
    """The origins in a list with spaces or commas between. Raises `ValueError` for what is none: it would be another
    directive of the policy."""
    found = tuple(filter(None, re.split(r"[\s,]+", listed)))
    for each in found:
        if not _ORIGIN.fullmatch(each):
            raise ValueError(f"OPEN_BOOK_EXAM_EMBED lists {each!r}, which is no origin such as https://lms.example.org")
    return found


def hashes(page: str) -> tuple[str, ...]:
    """The scripts inside a page, as a policy names them."""
    digests = (hashlib.sha256(script.encode()).digest() for script in _INLINE.findall(page))
    return tuple(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


class Headers:
    """Pure ASGI, around the whole app: pages, files, the API. `embed`: origins besides our own that may frame it;
    `page`: the HTML around all pages, whose scripts may run."""

    def __init__(self, app: ASGIApp, embed: Sequence[str] = (), page: str = "") -> None:
        self._app = app
        scripts = " ".join([POLICY["script-src"], *hashes(page)])
        policy = {**POLICY, "script-src": scripts, "frame-ancestors": " ".join(["'self'", *embed])}
        self._headers = {
            "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",  # whoever knows a run's id can watch it, and ids are in addresses
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] in _STARTS:
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, with_headers)
