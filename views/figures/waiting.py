"""How long one waits: TTFT against the paper's length, TPOT against the notes' length, a curve through each, and how
far each point lies off its curve.

The frame has a row for each `kind`: `point`, a paper that was really sat; `own`, the run on show; `curve`, the fit
between the points. `tokens`: in the paper, or in the notes; `seconds`: measured, empty for `curve`; `fitted`: the curve
there; `residual`: `seconds - fitted`; `run`, `taken`: of a point. `attrs` has the fit a + b n + c n², its root mean
square `spread`, and where the points come from.
"""

from __future__ import annotations

from functools import partial
from statistics import mean
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.measure.fit import fit
from views.figures.chart import Chart, Given, Words, origin, shown
from views.figures.style import Theme, dressed, empty, rgba

Quantity = Literal["ttft", "tpot"]
COLUMNS = ("kind", "tokens", "seconds", "fitted", "residual", "run", "taken")
NUMBERS = ["tokens", "seconds", "fitted", "residual"]
LEAST = 4
"""Different lengths from which on a curve is fitted, as in `service.measures`."""
STEPS = 61
GOOD = {"ttft": (1.0, 3.0), "tpot": (0.05, 0.1)}
"""Seconds to the first word for a question about a long document; seconds a word in a chat."""
WORDS = 0.75
"""Of an English text per token, a rule of thumb."""
READING = tuple(sorted(60 / (pace / WORDS) for pace in (175, 300)))
"""Seconds a token at which most adults read silently: 175 to 300 words a minute (Brysbaert 2019)."""
FAR = 2.5
"""A band that lies above this many times the slowest point is left out: it would flatten the curve."""


def frame(given: Given, quantity: Quantity) -> pd.DataFrame:
    found = shown(given.measures, "wait/")
    waits = [one for name, one in found.results.items() if name.startswith("wait/")]
    if quantity == "ttft":
        rows = [(one["prompt"], one["ttft"], one["run"], one.get("taken", "")) for one in waits]
    else:
        rows = [
            (mean(one["contexts"]), one["middle"], one["run"], one.get("taken", ""))
            for one in waits
            if one["middle"] is not None
        ]
    points = pd.DataFrame(sorted(rows), columns=["tokens", "seconds", "run", "taken"]).assign(kind="point")
    table = _fitted(points)
    found_fit = table.attrs
    if own := _own(given, quantity):
        table = pd.concat([table, pd.DataFrame([own])], ignore_index=True)
    table = table.reindex(columns=COLUMNS)
    table[NUMBERS] = table[NUMBERS].astype(float)
    table.attrs = {**found_fit, "source": found.source, "taken": found.taken, "machine": dict(found.machine)}
    return table


def _fitted(points: pd.DataFrame) -> pd.DataFrame:
    """The points with their curve, once there are enough of them."""
    if points["tokens"].nunique() < LEAST:
        return points.assign(fitted=np.nan, residual=np.nan)
    found = fit(list(zip(points["tokens"], points["seconds"], strict=True)))
    places = np.linspace(points["tokens"].min(), points["tokens"].max(), STEPS)
    line = pd.DataFrame({"kind": "curve", "tokens": places, "fitted": [max(0.0, found.at(n)) for n in places]})
    points = points.assign(fitted=[found.at(n) for n in points["tokens"]], residual=list(found.residuals))
    table = pd.concat([points, line], ignore_index=True)
    table.attrs["fit"] = {"a": found.a, "b": found.b, "c": found.c, "spread": found.spread}
    return table


def _own(given: Given, quantity: Quantity) -> dict[str, Any] | None:
    """The run on show, where it was sat on the machine that the points are of."""
    trace = given.trace
    if trace is None or trace.started is None or not given.here:
        return None
    seconds = trace.ttft if quantity == "ttft" else trace.tpot
    return None if seconds is None else {"kind": "own", "tokens": len(trace.started.prompt), "seconds": seconds}


def figure(table: pd.DataFrame, words: Words, theme: Theme, quantity: Quantity) -> go.Figure:
    points, curve, own = (table[table["kind"] == kind] for kind in ("point", "curve", "own"))
    if points.empty and own.empty:
        return empty(theme, words("waiting.nothing"))
    unit = 1.0 if quantity == "ttft" else 1000.0
    colour = theme.prefill if quantity == "ttft" else theme.decode
    rows = 1 if curve.empty else 2
    made = make_subplots(rows, 1, shared_xaxes=True, vertical_spacing=0.05, row_heights=[0.74, 0.26][:rows])
    tallest = unit * float(pd.concat([points, own])["seconds"].max())
    if rows == 2:
        made.add_scatter(
            x=curve["tokens"].tolist(), y=(unit * curve["fitted"]).tolist(), name=words("waiting.curve"), mode="lines",
            line={"color": theme.pencil, "dash": "dash", "width": 2}, hoverinfo="skip", meta="curve", row=1, col=1,
        )  # fmt: skip
        _residuals(made, points, words, theme, colour)
    for kind, part, symbol, shade in (("point", points, "circle", colour), ("own", own, "diamond-open", theme.stop)):
        if not part.empty:
            made.add_scatter(
                x=part["tokens"].tolist(), y=(unit * part["seconds"]).tolist(), name=words(f"waiting.{kind}"),
                mode="markers", cliponaxis=False,
                marker={"color": shade, "symbol": symbol, "size": 10, "line": {"width": 2}}, meta=kind,
                hovertext=[words(f"waiting.{quantity}_at", tokens=f"{n:,.0f}", time=_time(s, quantity))
                           for n, s in zip(part["tokens"], part["seconds"], strict=True)],
                hovertemplate="%{hovertext}<extra></extra>", row=1, col=1,
            )  # fmt: skip
    _bands(made, words, theme, quantity, FAR * tallest)
    made.update_yaxes(title=words(f"waiting.{quantity}_axis"), rangemode="tozero", row=1)
    made.update_xaxes(title=words(f"waiting.{quantity}_across"), rangemode="tozero", row=rows)
    return dressed(made, theme, _summary(table, words, quantity), table.attrs["source"], 360, origin(table, words))


def _bands(made: go.Figure, words: Words, theme: Theme, quantity: Quantity, most: float) -> None:
    """What is held to be good, and reading's pace: shaded, with their names, over what is drawn already."""
    unit = 1.0 if quantity == "ttft" else 1000.0
    bands = [(f"good_{quantity}", GOOD[quantity], theme.special)]
    if quantity == "tpot":
        bands.append(("reading", READING, theme.mark))
    for name, (low, high), shade in bands:
        if unit * high <= most:
            made.add_hrect(
                unit * low, unit * high, fillcolor=rgba(shade, 0.18), line_width=0, layer="below", name=name,
                annotation_text=words(f"waiting.{name}"), annotation_position="inside top right",
                annotation_font_size=12, row=1, col=1,
            )  # fmt: skip


def _residuals(made: go.Figure, points: pd.DataFrame, words: Words, theme: Theme, colour: str) -> None:
    """How far each point lies off the curve, in milliseconds, on an axis of their own."""
    off = (1000 * points["residual"]).tolist()
    made.add_bar(
        x=points["tokens"].tolist(), y=off, width=0.012 * float(points["tokens"].max()), marker_color=colour,
        name=words("waiting.residual"), meta="residual", showlegend=False,
        hovertext=[words("waiting.off", ms=f"{value:+.1f}") for value in off],
        hovertemplate="%{hovertext}<extra></extra>", row=2, col=1,
    )  # fmt: skip
    made.update_yaxes(title=words("waiting.residual_axis"), nticks=4, row=2)


def _summary(table: pd.DataFrame, words: Words, quantity: Quantity) -> str:
    points = table[table["kind"] == "point"]
    if points.empty:
        return words("waiting.only_own")
    first, last = points.iloc[0], points.iloc[-1]
    said = words(
        f"waiting.{quantity}_summary", n=len(points), least=f"{first['tokens']:,.0f}", most=f"{last['tokens']:,.0f}",
        short=_time(first["seconds"], quantity), long=_time(last["seconds"], quantity),
    )  # fmt: skip
    fitted = table.attrs.get("fit")
    if not fitted:
        return said
    return said + words(
        "waiting.fit_summary", a=f"{1000 * fitted['a']:.1f}", b=f"{1e6 * fitted['b']:+.1f}",
        c=f"{1e9 * fitted['c']:+.1f}", spread=f"{1000 * fitted['spread']:.1f}",
    )  # fmt: skip


def _time(seconds: float, quantity: Quantity) -> str:
    if quantity == "ttft" and seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.{0 if quantity == 'ttft' else 1}f} ms"


CHARTS = tuple(
    Chart(
        f"waiting-{quantity}", partial(frame, quantity=quantity), partial(figure, quantity=quantity),
        frozenset({"measures"}), frozenset({"run"}),
    )
    for quantity in ("ttft", "tpot")
)  # fmt: skip
