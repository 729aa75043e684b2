"""Routes that look into a run (`docs/api.md`): the heads that join two words, heads in small, the logit lens.

The engine answers while it holds the run's tensors; a saved run answers from what was recorded, or says that it cannot.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query, Response

from engine.settings import Refusal
from engine.trace.file import TraceFile
from engine.trace.looks import FULL
from service.core import Service

MAX_CELLS = 128
"""Most cells along one side of a head in small."""

Layer = Annotated[int, Query(ge=0, le=10**6, description="from 0")]
Row = Annotated[int, Query(ge=0, le=10**8, description="the query's position, from 0")]
Column = Annotated[int, Query(ge=0, le=10**8, description="the position looked at, from 0")]
Size = Annotated[int, Query(ge=1, le=MAX_CELLS, description="most cells along a side")]


def add_explore(app: FastAPI, service: Service) -> None:
    @app.get("/runs/{run_id}/heads")
    async def rank_heads(run_id: str, row: Row, column: Column) -> dict[str, Any]:
        """All heads by how much they look from `row` to `column`."""
        if await held(service, run_id):
            heads = await service.jobs.ask("heads_for_pair", {"run": run_id, "row": row, "column": column})
            source = "computed"
        else:
            heads = recorded_heads((await service.archive.get(run_id)).file, row, column)
            source = "recorded"
        told = [{"layer": layer, "head": head, "weight": weight} for layer, head, weight in heads]
        return {"source": source, "row": row, "column": column, "heads": told}

    @app.get(
        "/runs/{run_id}/small", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
    )
    async def heads_in_small(run_id: str, layer: Layer, size: Size = 32) -> Response:
        """Every head of a layer: `X-Heads` pictures of `X-Cells` x `X-Cells` `uint8`."""
        if not await held(service, run_id):
            raise Refusal("not_kept")
        rows, cells, data = await service.jobs.ask("sampled_rows", {"run": run_id, "layer": layer, "size": size})
        headers = {"X-Source": "computed", "X-Heads": str(rows // cells), "X-Cells": str(cells)}
        return Response(data, media_type="application/octet-stream", headers=headers)

    @app.get("/runs/{run_id}/logit-lens")
    async def logit_lens(run_id: str) -> dict[str, Any]:
        """What each layer would have said at the prompt's last position."""
        if not await held(service, run_id):
            raise Refusal("layers_not_kept")
        said = await service.jobs.ask("logit_lens", {"run": run_id})
        names = ("id", "text", "probability")
        layers = [
            {**layer, "top": [dict(zip(names, one, strict=True)) for one in layer["top"]]} for layer in said["layers"]
        ]
        return {"source": "computed", **said, "layers": layers}


async def held(service: Service, run_id: str) -> bool:
    """Whether the engine holds the run's tensors. Raises `Refusal`: `unknown_run`, `unfinished` while it waits."""
    if run := service.runs.live.get(run_id):
        if run.state == "queued":
            raise Refusal("unfinished")
        return True
    if run_id in service.runs.kept:
        return True
    await service.archive.get(run_id)
    return False


def recorded_heads(file: TraceFile, row: int, column: int) -> list[tuple[int, int, float]]:
    """The heads of a saved run that have `column` among the row's strongest, `(layer, head, weight)`, strongest first.

    Raises `Refusal`: `looks_ahead`, `not_kept`, `row_not_recorded`.
    """
    looks, started = file.looks, file.trace.started
    if column > row:
        raise Refusal("looks_ahead", row=row + 1, column=column + 1)
    if looks is None or started is None:
        raise Refusal("not_kept")
    first = len(started.prompt) - 1
    if not first <= row < first + looks.rows:
        raise Refusal("row_not_recorded", row=row + 1, least=first + 1, most=first + looks.rows)
    import numpy as np

    positions, weights = looks.positions[row - first, :, :-1], looks.weights[row - first, :, :-1]
    found = [
        (int(layer), int(head), int(weights[layer, head, slot]) / FULL)
        for layer, head, slot in zip(*np.nonzero((positions == column) & (weights > 0)), strict=True)
    ]
    return sorted(found, key=lambda one: -one[2])
