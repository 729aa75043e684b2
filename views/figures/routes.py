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
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import plotly
from fastapi import FastAPI, Query, Request, Response
from pydantic import TypeAdapter

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
from views.figures import CHARTS
from views.figures.chart import Chart, Given, Lab
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
        request: Request, name: str, run: Text = "", model: Text = "", tokens: Length = 0, part: Text = "",
        source: Literal["", "recorded"] = "", theme: Light = "light",
        form: Annotated[Form, Query(alias="format")] = "json",
    ) -> Response:  # fmt: skip
        """A chart of what is kept: of this machine, and of a run where one is named; `source=recorded`: a lab's results
        as they are shipped, even where there are some of this machine's."""
        chart = _known(name)
        given = await _given(service, measures, chart, run, model)
        if chart.lab:
            given = replace(given, lab=await _lab(measures, chart.lab, model or service.models.default, source))
        return await told(request, chart, replace(given, tokens=tokens, part=part), theme, form)

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


async def _lab(measures: Measures, name: str, model: str, source: str) -> Lab:
    """A remedy's results of this machine; else, or where they are asked for, those that are shipped; else none."""
    lab = known(name)
    try:
        results = {} if source else await measures.lab_results(lab, model)
    except Refusal:  # no model is loaded: nothing can be of this machine
        results = {}
    if results:
        taken = max(one.get("taken", "") for one in results.values())
        return Lab("measured", measures.subject(model), taken, await asyncio.to_thread(lab.figures, results))
    shipped = await asyncio.to_thread(recorded, lab)
    return Lab("recorded", shipped["machine"], shipped["taken"], shipped["figures"]) if shipped else Lab()


async def _given(service: Service, measures: Measures, chart: Chart, run: str, model: str) -> Given:
    """What the chart needs or likes. Raises `Refusal` for what it needs and cannot have."""
    trace = costs = kept = None
    shipped = False
    if "run" in chart.needs or ("run" in chart.likes and run):
        trace, shipped = await _trace(service, run)
        costs = await asyncio.to_thread(_costs, service, trace)
    if "measures" in chart.needs | chart.likes:
        own = trace.started.facts.model if trace and trace.started else ""
        try:
            kept = await measures.told(model or own or service.models.default)
        except Refusal:
            if "measures" in chart.needs:
                raise
    return Given(kept, trace, costs, shipped)


async def _trace(service: Service, run: str) -> tuple[Trace, bool]:
    """A run's events so far, and whether it is a recording. Raises `Refusal("unknown_run")`."""
    if live := service.runs.live.get(run):
        return Trace(tuple(live.events)), False
    file = (await service.archive.get(run)).file
    return file.trace, file.header.recorded


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
