"""Routes about one word (`docs/api.md`): its distribution stage by stage, and where its layers looked."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query, Response

from engine.settings import RANGES, Refusal
from engine.trace.file import TraceFile
from engine.trace.looks import FULL
from service.core import Service
from service.explore import Row, held

Step = Annotated[int, Query(ge=0, le=10**6, description="which word of the answer, from 0")]


def _within(name: str) -> Any:
    least, most = RANGES[name]
    return Query(ge=least, le=most, description="the run's own where it is left out")


def add_choices(app: FastAPI, service: Service) -> None:
    @app.get("/runs/{run_id}/choice")
    async def choice(
        run_id: str,
        step: Step,
        temperature: Annotated[float | None, _within("temperature")] = None,
        top_k: Annotated[int | None, _within("top_k")] = None,
        top_p: Annotated[float | None, _within("top_p")] = None,
        min_p: Annotated[float | None, _within("min_p")] = None,
        repetition_penalty: Annotated[float | None, _within("repetition_penalty")] = None,
        seed: Annotated[int | None, _within("seed")] = None,
    ) -> dict[str, Any]:
        """One word's distribution after each of the library's processors, and the token these settings draw."""
        if not await held(service, run_id):
            raise Refusal("choices_not_kept")
        given = {
            "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
            "repetition_penalty": repetition_penalty, "seed": seed,
        }  # fmt: skip
        settings = {name: value for name, value in given.items() if value is not None}
        told = await service.jobs.ask("choice", {"run": run_id, "step": step, "settings": settings})
        names = ("id", "text", "repeated")
        candidates = [dict(zip(names, one, strict=True)) for one in told["candidates"]]
        return {"source": "computed", **told, "candidates": candidates}

    @app.get(
        "/runs/{run_id}/reads", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
    )
    async def reads(run_id: str, row: Row) -> Response:
        """Every layer's strongest looks from `row`: `X-Layers` x (`row` + 1) `uint8`, weight = value / 255."""
        if await held(service, run_id):
            layers, _, data = await service.jobs.ask("reads", {"run": run_id, "row": row})
            source = "computed"
        else:
            layers, data = recorded_reads((await service.archive.get(run_id)).file, row)
            source = "recorded"
        headers = {"X-Source": source, "X-Layers": str(layers)}
        return Response(data, media_type="application/octet-stream", headers=headers)


def recorded_reads(file: TraceFile, row: int) -> tuple[int, bytes]:
    """How many layers, and `(layers, row + 1)` `uint8`: of each layer the strongest look of any head that was recorded.

    Raises `Refusal`: `not_kept`, `row_not_recorded`.
    """
    looks, started = file.looks, file.trace.started
    if looks is None or started is None:
        raise Refusal("not_kept")
    first = len(started.prompt) - 1
    if not first <= row < first + looks.rows:
        raise Refusal("row_not_recorded", row=row + 1, least=first + 1, most=first + looks.rows)
    import numpy as np

    values = np.zeros((looks.layers, row + 1), np.uint8)
    positions, weights = looks.positions[row - first, :, :-1], looks.weights[row - first, :, :-1]
    layers = np.broadcast_to(np.arange(looks.layers)[:, None, None], positions.shape)
    np.maximum.at(values, (layers, positions), np.rint(weights / (FULL / 255)).astype(np.uint8))
    return looks.layers, values.tobytes()
