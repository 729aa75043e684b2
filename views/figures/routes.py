"""`/api/figures/NAME`: a chart as Plotly's JSON, or its frame as CSV or Parquet (`docs/api.md`); and Plotly's script.

Mounted by `app.py` beside the service, which may not know of pages. Frames and figures are made in threads, a few at a
time, so that the loop goes on handing out events.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import plotly
from fastapi import FastAPI, Query, Request, Response
from pydantic import TypeAdapter

from engine.disaggregation.load import Mix
from engine.disaggregation.told import Asked, Split
from engine.labs.base import Lab
from engine.labs.jobs import known
from engine.labs.recorded import recorded
from engine.settings import Refusal
from engine.trace import Trace
from engine.words import say
from service.api import add_errors
from service.body import bad_field, parse
from service.core import Service
from service.costs import config_of, costs_of
from service.errors import language
from service.guard import Guard
from service.measures import Measures
from service.simulation import Bandwidth, Load, Seed
from views.figures import CHARTS
from views.figures.chart import USUAL, Chart, Given
from views.figures.style import THEMES

AT_ONCE = 2
"""Figures made side by side."""
MOST_ROWS = 256
"""Rows a page may send: what it has measured itself is a handful."""
_ROWS = TypeAdapter(list[dict[str, float | str | None]])
_SCRIPT = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
_MEDIA = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}

Text = Annotated[str, Query(max_length=200)]
Form = Literal["json", "rows", "csv", "parquet"]
Light = Literal["light", "dark"]
Length = Annotated[int, Query(ge=0, le=10**7)]


def create(service: Service, lan: bool = False) -> Guard:
    """The application to mount at `/api/figures`. `lan`: requests may come from other machines."""
    app = FastAPI(title="Open-Book Exam: figures", openapi_url="/openapi.json", docs_url=None, redoc_url=None)
    measures, gate = Measures(service), asyncio.Semaphore(AT_ONCE)

    async def told(request: Request, chart: Chart, given: Given, theme: Light, form: Form) -> Response:
        async with gate:
            work = partial(_told, chart, given, language(request.scope), theme, form)
            return Response(*(await asyncio.to_thread(work)))

    @app.get("/", include_in_schema=False)
    async def names() -> dict[str, Any]:
        """All charts."""
        return {"figures": sorted(CHARTS)}

    @app.get("/{name}")
    async def figure(
        request: Request, name: str, run: Text = "", beside: Text = "", model: Text = "", tokens: Length = 0,
        theme: Light = "light", lab: Text = "", shipped: Annotated[bool, Query(alias="recorded")] = False,
        pick: Text = "", load: Load = USUAL.load, bandwidth: Bandwidth = USUAL.bandwidth, seed: Seed = USUAL.seed,
        split: Split = USUAL.split, mix: Mix = USUAL.mix, form: Annotated[Form, Query(alias="format")] = "json",
    ) -> Response:  # fmt: skip
        """A chart of what is kept: of this machine, of a run where one is named, of a lab's results or what follows
        from them in a simulation."""
        chart = _known(name)
        given = replace(await _given(service, measures, chart, run, beside, model), tokens=tokens)
        if "lab" in chart.needs:
            found = await _lab(measures, known(lab), model or service.models.default, shipped)
            given = replace(given, lab=found, pick=pick, asked=Asked(load, bandwidth, seed, split, mix))
        return await told(request, chart, given, theme, form)

    @app.post("/{name}")
    async def of_rows(
        request: Request, name: str, theme: Light = "light", form: Annotated[Form, Query(alias="format")] = "json"
    ) -> Response:
        """A chart of what a page has measured itself: the body is a list of rows."""
        rows = parse(await request.body(), _ROWS)
        if len(rows) > MOST_ROWS:
            raise bad_field(("rows",))
        return await told(request, _known(name), Given(rows=tuple(rows)), theme, form)

    add_errors(app)
    return Guard(app, lan)


async def script(request: Request) -> Response:
    """Plotly's own script, as the installed package has it: no other host is asked. A browser keeps it."""
    headers = {"ETag": f'"{plotly.__version__}"', "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(await asyncio.to_thread(_SCRIPT.read_bytes), media_type="text/javascript", headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(await asyncio.to_thread(_packed), media_type="text/javascript", headers=headers)


@cache
def _packed() -> bytes:
    return gzip.compress(_SCRIPT.read_bytes(), 6)


def _known(name: str) -> Chart:
    """Raises `Refusal("no_figure")`."""
    if name not in CHARTS:
        raise Refusal("no_figure", name=name[:40])
    return CHARTS[name]


async def _given(service: Service, measures: Measures, chart: Chart, run: str, beside: str, model: str) -> Given:
    """What the chart needs or likes. Raises `Refusal` for what it needs and cannot have."""
    trace = costs = other = other_costs = kept = None
    recorded = False
    if "run" in chart.needs or ("run" in chart.likes and run):
        trace, costs = await _run(service, run)
        recorded = (await service.summary(run)).recorded
    if "beside" in chart.likes and beside:
        other, other_costs = await _run(service, beside)
    if "measures" in chart.needs | chart.likes:
        own = trace.started.facts.model if trace and trace.started else ""
        try:
            kept = await measures.told(model or own or service.models.default, "en")
        except Refusal:
            if "measures" in chart.needs:
                raise
    return Given(kept, trace, costs, recorded, other, other_costs)


async def _lab(measures: Measures, lab: Lab, model: str, shipped: bool) -> Mapping[str, Any]:
    """What was measured here, as `GET /api/labs/NAME`; what is recorded where it is asked for, or nothing was measured.
    Raises `Refusal("no_lab_recorded")`."""
    results: dict[str, dict[str, Any]] = {}
    if not shipped:
        with suppress(Refusal):  # no model is loaded, so nothing of it can have been measured
            results = await measures.lab_results(lab, model)
    if results:
        subject = measures.subject(model)
        taken = max(one["taken"] for one in results.values())
        made = await asyncio.to_thread(_figures, lab.name, json.dumps(results))
        return {"name": lab.name, "model": model, "machine": subject, "results": results, "figures": made,
                "taken": taken, "source": "measured"}  # fmt: skip
    told = await asyncio.to_thread(_recorded, lab.name)
    if told is None:
        raise Refusal("no_lab_recorded", name=lab.name)
    return told


@lru_cache(8)
def _figures(name: str, results: str) -> Mapping[str, Any]:
    """A page asks for several charts of the same results, and a lab may simulate for its figures."""
    return known(name).figures(json.loads(results))


@cache
def _recorded(name: str) -> Mapping[str, Any] | None:
    told = recorded(known(name))
    return told and {**told, "source": "recorded"}


async def _run(service: Service, run: str) -> tuple[Trace, Mapping[str, Any] | None]:
    """A run's events so far, and its costs. Raises `Refusal("unknown_run")`."""
    live = service.runs.live.get(run)
    trace = Trace(tuple(live.events)) if live else (await service.archive.get(run)).file.trace
    return trace, await asyncio.to_thread(_costs, service, trace)


def _costs(service: Service, trace: Trace) -> Mapping[str, Any] | None:
    """As `GET /api/runs/{id}/costs`; None for a run that has not begun, or whose model's sizes are not known."""
    try:
        model = trace.started.facts.model if trace.started else ""
        return costs_of(trace, config_of(model) if model in service.runs.facts else None)
    except Refusal:
        return None


def _told(chart: Chart, given: Given, lang: str, theme: str, form: str) -> tuple[bytes, int, dict[str, str]]:
    """Content, status and headers."""
    frame = chart.frame(given)
    if form == "json":
        made = chart.figure(frame, lambda key, **values: say(f"figures.{key}", lang, **values), THEMES[theme])
        return str(made.to_json()).encode(), 200, {"Content-Type": "application/json"}
    if form == "rows":
        rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        told = {"columns": list(frame.columns), "rows": rows, "about": frame.attrs}
        return json.dumps(told).encode(), 200, {"Content-Type": "application/json"}
    headers = {"Content-Type": _MEDIA[form], "Content-Disposition": f'attachment; filename="{chart.name}.{form}"'}
    return (frame.to_csv(index=False).encode() if form == "csv" else _parquet(frame)), 200, headers


def _parquet(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.to_parquet(file, index=False)
    return file.getvalue()
