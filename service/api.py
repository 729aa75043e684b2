"""The HTTP and WebSocket routes of `docs/api.md`, mounted at `/api`. Thin: what they do is in `service.core`."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import anyio
from fastapi import FastAPI, Query, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, StrictBool, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from engine.settings import Refusal, Settings
from service.beginnings import add_beginnings
from service.body import bad_field, parse
from service.choices import add_choices
from service.core import Service
from service.errors import as_json, language, response
from service.explore import Layer, Row, add_explore
from service.guard import Guard
from service.labs import add_labs
from service.measures import add_measures
from service.notes import add_notes
from service.pieces import add_pieces
from service.simulation import add_simulation

_DOCUMENT = Path(__file__).parents[1] / "docs" / "api.md"
_BINARY: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest(Settings):
    """`Settings`, and who asks. `keep`: the run goes on although nobody watches it."""

    owner: str = ""
    keep: bool = False


class FetchRequest(BaseModel):
    """Where a model has terms, they must be accepted."""

    accept_terms: StrictBool = False


_RUN_REQUEST = TypeAdapter(RunRequest)
_RUN_SCHEMA = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": _RUN_REQUEST.json_schema()}}}
}

Head = Annotated[int | None, Query(ge=0, le=10**6, description="from 0; without it the mean over the layer's heads")]


def create(service: Service, lan: bool = False) -> Guard:
    """The application to mount. `lan`: requests may come from other machines."""
    app = FastAPI(
        title="Open-Book Exam",
        description="Refusals are `{error: {code, values, message}}`. In words: `/api/docs`.",
        openapi_url="/openapi.json",
        docs_url=None,  # the library's page loads its script from another host
        redoc_url=None,
    )
    _add_runs(app, service)
    _add_weights(app, service)
    add_choices(app, service)
    add_explore(app, service)
    add_beginnings(app, service)
    add_notes(app, service)
    measures = add_measures(app, service)
    add_labs(app, service, measures)
    add_simulation(app, service, measures)
    add_pieces(app, service)
    _add_rest(app, service)
    add_errors(app)
    return Guard(app, lan)


def _add_runs(app: FastAPI, service: Service) -> None:
    @app.post("/runs", status_code=201, openapi_extra=_RUN_SCHEMA)
    async def create_run(request: Request) -> dict[str, str]:
        """Start a run. Its id is a capability: whoever knows it can watch and stop it."""
        values = parse(await request.body(), _RUN_REQUEST)
        settings = Settings(**{name: getattr(values, name) for name in Settings.__dataclass_fields__})
        return {"id": service.submit(settings, values.owner, values.keep)}

    @app.get("/runs")
    async def list_runs(request: Request, owner: Annotated[str, Query(max_length=64)] = "") -> dict[str, Any]:
        """That owner's runs, newest first, then the recordings; prompts and answers are cut."""
        return {"runs": [summary.as_json() for summary in service.listed(owner)]}

    @app.get("/runs/{run_id}")
    async def show_run(run_id: str) -> dict[str, Any]:
        """One run's summary. Asking counts as watching."""
        return (await service.summary(run_id)).as_json()

    @app.post("/runs/{run_id}/stop", status_code=202)
    async def stop_run(run_id: str) -> dict[str, str]:
        """Stop a run. Stopping one that is over changes nothing."""
        await service.summary(run_id)
        service.runs.stop(run_id)
        return {"id": run_id}

    @app.get("/runs/{run_id}/trace", response_class=Response, responses=_BINARY)
    async def download_trace(run_id: str) -> Response:
        """The trace file of a run that is over."""
        disposition = {"Content-Disposition": f'attachment; filename="{run_id}.trace"'}
        return Response(await service.trace(run_id), media_type="application/zip", headers=disposition)

    @app.websocket("/runs/{run_id}/events")
    async def follow_run(
        websocket: WebSocket, run_id: str, start: Annotated[int, Query(alias="from", ge=0)] = 0
    ) -> None:
        await _stream(service, websocket, run_id, start)


def _add_weights(app: FastAPI, service: Service) -> None:
    @app.get("/runs/{run_id}/attention", response_class=Response, responses=_BINARY)
    async def attention_row(run_id: str, layer: Layer, row: Row, head: Head = None) -> Response:
        """One attention row: `row + 1` little-endian `uint16`, weight = value / 65535."""
        weights = await service.attention(run_id, layer, head, row)
        return Response(weights.data, media_type="application/octet-stream", headers=weights.headers)

    @app.get("/runs/{run_id}/map", response_class=Response, responses=_BINARY)
    async def attention_map(run_id: str, layer: Layer, head: Head = None) -> Response:
        """Rows `X-First-Row` and on, `X-Rows` x `X-Columns` `uint8`, weight = value / 255."""
        weights = await service.attention(run_id, layer, head, None)
        return Response(weights.data, media_type="application/octet-stream", headers=weights.headers)


def _add_rest(app: FastAPI, service: Service) -> None:
    @app.get("/models")
    async def list_models(request: Request) -> dict[str, Any]:
        """The models that are known, and how far each one is."""
        return {"models": [_told(row, request) for row in service.models.listed()]}

    @app.post("/models/{name}/fetch", status_code=202)
    async def fetch_model(name: str, body: FetchRequest | None = None) -> dict[str, str]:
        """Begin to fetch a model; `GET /api/models` tells how far it is."""
        service.models.fetch(name, body is not None and body.accept_terms)
        return {"name": name}

    @app.get("/health")
    async def health(request: Request) -> dict[str, Any]:
        """How the engine is. Answers while the engine computes."""
        return _told(service.health(), request)

    @app.get("/docs", response_class=PlainTextResponse, include_in_schema=False)
    async def docs() -> PlainTextResponse:
        return PlainTextResponse(_DOCUMENT.read_text("utf-8"))


def _told(row: dict[str, Any], request: Request) -> dict[str, Any]:
    """With the error, if there is one, in the reader's language."""
    error = row["error"]
    return {**row, "error": as_json(error, language(request.scope)) if error else None}


async def _stream(service: Service, websocket: WebSocket, run_id: str, start: int) -> None:
    """Send a run's lines until it is over or the watcher is gone, whichever comes first."""
    await websocket.accept()
    async with anyio.create_task_group() as both:

        async def either(work: Coroutine[Any, Any, None]) -> None:
            await work
            both.cancel_scope.cancel()

        both.start_soon(either, _until_gone(websocket))
        await either(_send(service, websocket, run_id, start))


async def _send(service: Service, websocket: WebSocket, run_id: str, start: int) -> None:
    try:
        async with aclosing(service.follow(run_id, start)) as frames:
            async for frame in frames:
                await websocket.send_text(frame.decode())
        await websocket.close(1000)
    except Refusal as refusal:
        await websocket.close(4404, refusal.code)
    except (WebSocketDisconnect, RuntimeError):
        pass  # gone in the middle of a frame


async def _until_gone(websocket: WebSocket) -> None:
    """What a watcher says is not listened to; that it leaves is."""
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


def add_errors(app: FastAPI) -> None:
    """What every route says when it says no: a code and a sentence."""

    @app.exception_handler(Refusal)
    async def refused(request: Request, refusal: Refusal) -> Response:
        return response(refusal, request.scope)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return response(bad_field(tuple(error.errors()[0]["loc"])[1:]), request.scope)

    @app.exception_handler(HTTPException)
    async def unrouted(request: Request, error: HTTPException) -> Response:
        refusal = Refusal({404: "no_route", 405: "wrong_method"}.get(error.status_code, "not_json"))
        return response(refusal, request.scope)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        _log.exception("unexpected", exc_info=error)
        return response(Refusal("unexpected"), request.scope)
