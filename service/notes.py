"""Routes that look at a run's KV cache (`docs/api.md`): its numbers, its bytes, and the columns' checksums.

Only the engine can tell, and only while it holds the run's tensors; a saved run keeps norms and bytes in its trace.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Response

from engine.settings import Refusal
from service.core import Service
from service.explore import Layer, held

Head = Annotated[int, Query(ge=0, le=10**6, description="KV head, from 0")]
Kind = Annotated[Literal["key", "value"], Query(description="K or V")]
Start = Annotated[int, Query(alias="from", ge=0, le=10**6, description="number of the first check")]


def add_notes(app: FastAPI, service: Service) -> None:
    @app.get(
        "/runs/{run_id}/notes", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
    )
    async def notes(run_id: str, layer: Layer, head: Head, kind: Kind = "key") -> Response:
        """One KV head: `X-Size` scales (`float32`), then `X-Positions` x `X-Size` `int8`."""
        told = await _ask(service, "note_values", run_id, layer=layer, kind=kind, head=head)
        headers = {f"X-{name.capitalize()}": str(told[name]) for name in ("positions", "size", "first")}
        content = told["scales"] + told["values"]
        return Response(content, media_type="application/octet-stream", headers={"X-Source": "measured", **headers})

    @app.get("/runs/{run_id}/notes/bytes")
    async def note_bytes(run_id: str) -> dict[str, Any]:
        """What the tensors of a run's notes take."""
        return {"source": "measured", **await _ask(service, "note_bytes", run_id)}

    @app.post("/runs/{run_id}/columns", status_code=202)
    async def watch_columns(run_id: str) -> dict[str, int]:
        """Take every column's checksum now, and after every decode step from now on."""
        return {"checks": await _ask(service, "watch_columns", run_id)}

    @app.get("/runs/{run_id}/columns")
    async def columns(run_id: str, start: Start = 0) -> dict[str, Any]:
        """The checks taken so far."""
        names = ("length", "sums", "asked", "seconds")
        checks = await _ask(service, "columns", run_id, start=start)
        return {"source": "computed", "checks": [dict(zip(names, check, strict=True)) for check in checks]}


async def _ask(service: Service, job: str, run_id: str, **arguments: Any) -> Any:
    """The engine's answer. Raises `Refusal`: `unknown_run`, `unfinished` while the run waits, `notes_not_kept`."""
    if not await held(service, run_id):
        raise Refusal("notes_not_kept")
    return await service.jobs.ask(job, {"run": run_id, **arguments})
