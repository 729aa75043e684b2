"""The app: `streamlit run app.py`. Starts the engine process, mounts the service and the scene, hosts the pages.

Options come from the environment, where `start.py` puts them: `OPEN_BOOK_EXAM_MODEL`, `OPEN_BOOK_EXAM_DEVICE`,
`OPEN_BOOK_EXAM_DTYPE`, `OPEN_BOOK_EXAM_LAN`; and `OPEN_BOOK_EXAM_EMBED`: origins whose pages may show this one in a
frame, with spaces between (none but our own otherwise).
"""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from streamlit import App

import service
from service.api import create
from service.core import from_environment
from service.headers import Headers, origins
from service.static import Static
from views.figures import routes as figures

_ROOT = Path(__file__).parent

_lan = bool(os.environ.get("OPEN_BOOK_EXAM_LAN"))
_PAGE = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")

_service = from_environment()
service.use(_service)


@asynccontextmanager
async def _lifespan(_: App) -> AsyncIterator[dict[str, Any] | None]:
    async with _service.running():
        gc.collect()
        gc.freeze()  # what is here stays: the collections to come need not look at it
        yield None


app = App(
    _ROOT / "views" / "frame.py",
    lifespan=_lifespan,
    middleware=[Middleware(Headers, embed=origins(os.environ.get("OPEN_BOOK_EXAM_EMBED", "")), page=_PAGE)],
    routes=[
        Mount("/api/figures", figures.create(_service, _lan)),
        Mount("/api", create(_service, _lan)),
        Route("/plotly/plotly.min.js", figures.script),
        Mount("/scene", Static(_ROOT / "assets" / "scene")),
        Mount("/stations", Static(_ROOT / "assets" / "stations")),
    ],
)
