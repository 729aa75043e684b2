"""Files of the page that are served as they are: modules, styles, fonts."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

# Some systems' own tables are wrong about these (Windows: `.js` as text/plain), and browsers insist on them.
for _suffix, _type in {".js": "text/javascript", ".mjs": "text/javascript", ".woff2": "font/woff2"}.items():
    mimetypes.add_type(_type, _suffix)


class Static(StaticFiles):
    """One folder. A browser asks each time whether its copy is still good (ETag): a new version shows at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response
