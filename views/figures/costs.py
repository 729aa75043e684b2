"""What the simulation of disaggregation is fed with, as measured; `views.figures.disaggregation` tells the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from views.figures import whiskers
from views.figures.chart import Chart, Given, Words, from_lab, origin
from views.figures.style import Theme, dressed, empty

STEPS = 25
LOOKS = (("decode", "solid", "circle"), ("special", "dash", "square"))


def reads_frame(given: Given) -> pd.DataFrame:
    figures = (given.lab or {}).get("figures") or {}
    rows: list[tuple[Any, ...]] = []
    for one in figures.get("reads") or ():
        spent = one["seconds"]
        rows.append(("point", one["n"], spent["middle"], spent["low"], spent["high"]))
    if costs := figures.get("costs"):
        for n in np.linspace(*costs["lengths"], STEPS):
            fitted = costs["fixed"] + costs["linear"] * n + costs["square"] * n * n
            rows.append(("curve", n, fitted, np.nan, np.nan))
    table = pd.DataFrame(rows, columns=["kind", "tokens", "seconds", "low", "high"])
    return from_lab(table.astype(dict.fromkeys(table.columns[1:], float)), given)


def reads(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    points, curve = (table[table["kind"] == kind] for kind in ("point", "curve"))
    if points.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    if not curve.empty:
        made.add_scatter(x=curve["tokens"].tolist(), y=curve["seconds"].tolist(), mode="lines", meta="curve",
                         name=words("disaggregation.fit"), hoverinfo="skip",
                         line={"color": theme.pencil, "dash": "dash"})  # fmt: skip
    made.add_scatter(
        x=points["tokens"].tolist(), y=points["seconds"].tolist(), mode="markers", meta="point",
        name=words("disaggregation.read"), marker={"color": theme.prefill, "size": 9}, error_y=_error(points, theme),
        hovertext=[
            words("disaggregation.read_at", tokens=f"{row.tokens:,.0f}", seconds=whiskers.seconds(row.seconds))
            for row in points.itertuples()
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    made.update_xaxes(title=words("disaggregation.tokens"), rangemode="tozero")
    made.update_yaxes(title=words("disaggregation.read_axis"), rangemode="tozero")
    first, last = points.iloc[0], points.iloc[-1]
    said = words("disaggregation.reads_summary", few=f"{first['tokens']:.0f}", many=f"{last['tokens']:.0f}",
                 short=whiskers.seconds(first["seconds"]), long=whiskers.seconds(last["seconds"]))  # fmt: skip
    return dressed(made, theme, said, table.attrs["source"], 280, origin(table, words))


def steps_frame(given: Given) -> pd.DataFrame:
    rows = [
        (one["batch"], one["context"], one["seconds"]["middle"], one["seconds"]["low"], one["seconds"]["high"])
        for one in ((given.lab or {}).get("figures") or {}).get("steps") or ()
    ]
    return from_lab(pd.DataFrame(rows, columns=["people", "context", "seconds", "low", "high"]).astype(float), given)


NEAR = 200
"""Notes up to which a context counts as that of a short paper; measured are two, far apart."""


def steps(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    for far, (colour, dash, symbol) in zip((False, True), LOOKS, strict=True):
        some = table[(table["context"] >= NEAR) == far]
        if some.empty:
            continue
        name = words(f"disaggregation.{'far' if far else 'near'}", tokens=f"{some['context'].median():.0f}")
        made.add_scatter(
            x=some["people"].tolist(), y=(1000 * some["seconds"]).tolist(), mode="lines+markers",
            meta="far" if far else "near", name=name, error_y=_error(1000 * some, theme),
            line={"color": getattr(theme, colour), "dash": dash, "width": 2}, marker={"symbol": symbol, "size": 8},
            hovertext=[
                words("disaggregation.step_at", people=int(row.people), name=name,
                      seconds=whiskers.seconds(row.seconds))
                for row in some.itertuples()
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )  # fmt: skip
    made.update_xaxes(title=words("disaggregation.together"), rangemode="tozero")
    made.update_yaxes(title=words("disaggregation.step_axis"), rangemode="tozero")
    most = table.loc[table["seconds"].idxmax()]
    said = words("disaggregation.steps_summary", least=whiskers.seconds(float(table["seconds"].min())),
                 most=whiskers.seconds(float(most["seconds"])), people=int(most["people"]))  # fmt: skip
    return dressed(made, theme, said, table.attrs["source"], 280, origin(table, words))


def _error(points: pd.DataFrame, theme: Theme) -> dict[str, Any]:
    return {
        "type": "data", "symmetric": False, "array": (points["high"] - points["seconds"]).tolist(),
        "arrayminus": (points["seconds"] - points["low"]).tolist(), "color": theme.pencil, "width": 3, "thickness": 1,
    }  # fmt: skip


CHARTS = (
    Chart("disaggregation-reads", reads_frame, reads, frozenset({"lab"})),
    Chart("disaggregation-steps", steps_frame, steps, frozenset({"lab"})),
)
