"""Routes that tell of the remedies (`docs/api.md`): what there is to measure, what was, and the figures that follow.

A piece is measured by `POST /api/measures` (`service.measures`), one at a time over all people. What was kept and its
figures need no engine beyond the facts of a loaded model, so they are told while the engine measures.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Response

from engine.labs import LABS
from engine.labs.base import Lab
from engine.labs.jobs import known
from engine.labs.recorded import gained_elsewhere, recorded
from engine.settings import Refusal
from service.core import Service
from service.explore import Layer, held
from service.measures import Measures


def add_labs(app: FastAPI, service: Service, measures: Measures) -> None:
    plans: dict[tuple[str, str], list[dict[str, Any]]] = {}

    async def plan(lab: Lab, model: str) -> list[dict[str, Any]]:
        """What there is to measure: the engine says it once for a model."""
        key = (lab.name, measures.facts(model).weights_sha256 + model)
        if key not in plans:
            plans[key] = await service.jobs.ask("lab_plan", {"model": model, "lab": lab.name})
        return plans[key]

    @app.get(
        "/runs/{run_id}/qkv", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
    )
    async def head_qkv(run_id: str, layer: Layer, head: Layer) -> Response:
        """One head's Q, K and V of the prompt, and the attention's output by the formula."""
        if not await held(service, run_id):
            raise Refusal("not_kept")
        told = await service.jobs.ask("head_qkv", {"run": run_id, "layer": layer, "head": head})
        data = told.pop("data")
        headers = {f"X-{name.title()}": str(value) for name, value in told.items()}
        return Response(data, media_type="application/octet-stream", headers=headers)

    @app.get("/labs")
    async def list_labs(model: str = "") -> dict[str, Any]:
        """The remedies that can be measured, and what each gained on this machine."""
        model = model or service.models.default
        kept = {name: await measures.lab_results(lab, model) for name, lab in LABS.items()}
        labs = await asyncio.to_thread(lambda: [summary(lab, kept[name]) for name, lab in LABS.items()])
        return {"model": model, "labs": labs}

    @app.get("/labs/{name}/recorded")
    async def show_recorded(name: str) -> dict[str, Any]:
        """The same from a recorded result, without a model."""
        told = await asyncio.to_thread(recorded, known(name))
        if told is None:
            raise Refusal("no_lab_recorded", name=name[:40])
        return told

    @app.get("/labs/{name}")
    async def show_lab(name: str, model: str = "") -> dict[str, Any]:
        """What one remedy's page shows."""
        lab, model = known(name), model or service.models.default
        pieces, results = await plan(lab, model), await measures.lab_results(lab, model)
        figures = await asyncio.to_thread(lab.figures, results)
        runs = {key: asdict(settings) for key, settings in lab.runs().items()}
        return {
            "name": name, "stage": lab.stage, "model": model, "machine": measures.subject(model), "plan": pieces,
            "results": results, "figures": figures, "runs": runs,
        }  # fmt: skip


def summary(lab: Lab, results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One line of the entry page: `gained` is None while too little was measured to say, `recorded` where no result is
    shipped: `{"model", "machine", "taken", "gained"}`."""
    return {
        "name": lab.name, "stage": lab.stage, "measured": len(results),
        "taken": max((one["taken"] for one in results.values()), default=None),
        "gained": lab.figures(results).get("gained"), "recorded": gained_elsewhere(lab),
    }  # fmt: skip
