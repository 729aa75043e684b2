"""Routes that measure this machine and keep what they find (`docs/api.md`): its peaks, decode in batches, the parts of
a pass, how long people wait, and the pieces of the remedies' labs.

One piece at a time, over all people: two measurements side by side would measure each other. Each piece is short, and
whoever asked can go away: a piece that has not begun is then not begun.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from pydantic import ConfigDict, TypeAdapter

from engine.jobs import machine
from engine.labs.base import Lab
from engine.labs.jobs import known
from engine.machine.recorded import recorded
from engine.machine.results import fits_of, name_of, subject, wait_of
from engine.settings import Refusal
from engine.trace import Facts, Trace
from engine.weights.catalogue import DEFAULT
from service.body import parse
from service.core import Service
from service.costs import BATCHES, config_of, costs_of
from service.errors import as_json, language
from service.kept import Kept, Results

SECONDS = 120.0
"""Patience for one piece. A batch of 32 on a busy machine takes a while, and a long paper's pass."""
GONE = 499
"""Nobody reads this answer: whoever asked has closed the connection."""
LOOK = 0.25
"""Seconds between two looks at whether whoever asked is still there."""


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """`peak`: `name`, a shape of the plan, and `model`. `batch`: `run` and `batch`. `parts`: `run` and `stage`. `wait`:
    `run`, a finished one whose own times are kept. `lab`: `lab` and `piece`, of the lab's plan, and `model`."""

    kind: Literal["peak", "batch", "parts", "wait", "lab"]
    model: str = ""
    run: str = ""
    name: str = ""
    batch: int = 0
    stage: Literal["", "prefill", "decode"] = ""
    lab: str = ""
    piece: str = ""


MeasureRequest.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
_REQUEST = TypeAdapter(MeasureRequest)
_SCHEMA = {"requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST.json_schema()}}}}


def add_measures(app: FastAPI, service: Service) -> Measures:
    measures = Measures(service)

    @app.get("/runs/{run_id}/costs")
    async def costs(run_id: str) -> dict[str, Any]:
        """FLOPs and bytes of a run's passes, computed."""
        trace = await _trace(service, run_id)
        model = trace.started.facts.model if trace.started else ""
        here = model in service.runs.facts
        return await asyncio.to_thread(lambda: costs_of(trace, config_of(model) if here else None))

    @app.get("/measures")
    async def kept(request: Request, model: str = "") -> dict[str, Any]:
        """What there is to measure on this machine, what was, and what was recorded on another."""
        return await measures.told(model or service.models.default, language(request.scope))

    @app.post("/measures", openapi_extra=_SCHEMA)
    async def measure(request: Request) -> Any:
        """Measure one piece now, and keep it."""
        asked = parse(await request.body(), _REQUEST)
        work = asyncio.ensure_future(measures.measure(asked))
        while not (await asyncio.wait({work}, timeout=LOOK))[0]:
            if await request.is_disconnected():
                work.cancel()
        return Response(status_code=GONE) if work.cancelled() else work.result()

    return measures


class Measures:
    """Belongs to the event loop; files are read and written in threads."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._kept = Kept(service.archive.beside("measures"))
        self._busy = False

    async def told(self, model: str, lang: str) -> dict[str, Any]:
        """Plan and results of a loaded model's machine, dtype and weights; of one that is not loaded, why it is not.
        Either way what was recorded with it, else with the bundled model. Raises `Refusal`: `unknown_model`."""
        told: dict[str, Any] = {"model": model, "batches": list(BATCHES), "problem": None}
        try:
            facts = self.facts(model)
        except Refusal as refusal:
            if refusal.code == "unknown_model":
                raise
            nothing: dict[str, Any] = {"machine": None, "context": None, "plan": [], "results": {}, "fits": fits_of({})}
            return {**told, **nothing, "problem": as_json(refusal, lang), "recorded": await _shipped(model)}
        peaks, model_results = await asyncio.gather(
            asyncio.to_thread(self._kept.read, machine.identity(facts)),
            asyncio.to_thread(self._kept.read, subject(facts)),
        )
        plan = [{"name": shape.name, "kind": shape.kind, "flops": shape.flops} for shape in machine.plan(facts.device)]
        return {
            **told, "machine": subject(facts), "context": facts.context, "plan": plan,
            "results": {**peaks, **model_results}, "fits": fits_of(model_results),
            "recorded": await _shipped(model),
        }  # fmt: skip

    def subject(self, model: str) -> dict[str, Any]:
        """What the results of a loaded model depend on. Raises as `facts`."""
        return subject(self.facts(model))

    async def lab_results(self, lab: Lab, model: str) -> Results:
        """What was measured of a lab with a loaded model. Raises as `facts`."""
        return await asyncio.to_thread(self._kept.read, self._lab(lab, model))

    def _lab(self, lab: Lab, model: str) -> dict[str, Any]:
        return {**self.subject(model), "lab": lab.name, "version": lab.version}

    def facts(self, model: str) -> Facts:
        """Of a model that is loaded. One that only has to be loaded is, for the next time.

        Raises `Refusal`: `model_not_ready`, and those of `Models.want`.
        """
        facts = self._service.runs.facts.get(model)
        if facts is None:
            self._service.models.want(model)
            raise Refusal("model_not_ready", model=model)
        return facts

    async def measure(self, asked: MeasureRequest) -> dict[str, Any]:
        """One result, kept, and its name. Raises `Refusal`: `measuring` while another piece is measured, and what
        the engine refuses."""
        if self._busy:
            raise Refusal("measuring")
        self._busy = True
        try:
            subject, name, result = await self._piece(asked)
        finally:
            self._busy = False
        return {"name": name, "result": await asyncio.to_thread(self._kept.put, subject, name, result)}

    async def _piece(self, asked: MeasureRequest) -> tuple[dict[str, Any], str, dict[str, Any]]:
        """What the result depends on, its name, and the result."""
        ask = self._service.jobs.ask
        if asked.kind == "peak":
            model = asked.model or self._service.models.default
            facts = self.facts(model)
            result = await ask("peak", {"model": model, "name": asked.name}, SECONDS)
            return machine.identity(facts), name_of("peak", result), result
        if asked.kind == "lab":
            lab, model = known(asked.lab), asked.model or self._service.models.default
            lab_subject = self._lab(lab, model)
            result = await ask("lab_piece", {"model": model, "lab": lab.name, "piece": asked.piece}, SECONDS)
            return lab_subject, asked.piece, result
        trace = await _trace(self._service, asked.run)
        facts = self._here(trace)
        if asked.kind == "wait":
            result = {"run": asked.run, **wait_of(trace)}
        elif asked.kind == "batch":
            result = await ask("decode_batch", {"run": asked.run, "batch": asked.batch}, SECONDS)
        else:
            result = await ask("parts", {"run": asked.run, "stage": asked.stage}, SECONDS)
        return subject(facts), name_of(asked.kind, result), result

    def _here(self, trace: Trace) -> Facts:
        """The facts of a run sat on this very machine. Raises `Refusal`: `unfinished`, `measured_elsewhere`."""
        if trace.started is None:
            raise Refusal("unfinished")
        told = trace.started.facts
        facts = self.facts(told.model)
        if subject(told) != subject(facts):
            raise Refusal("measured_elsewhere")
        return facts


async def _shipped(model: str) -> dict[str, Any] | None:
    """What was recorded with a model, else with the bundled one: a machine's peaks are of interest with any."""
    return await asyncio.to_thread(lambda: recorded(model) or recorded(DEFAULT))


async def _trace(service: Service, run_id: str) -> Trace:
    """A run's events so far. Raises `Refusal("unknown_run")`."""
    if run := service.runs.live.get(run_id):
        return Trace(tuple(run.events))
    return (await service.archive.get(run_id)).file.trace
