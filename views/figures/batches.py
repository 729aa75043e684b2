"""Decode in batches: words a second over all who share a step, against how many share it.

The frame: `batch`; `seconds` of a step, measured; `words`: a second in all, `batch / seconds`; `even`: words a second
if a step took no longer than that of the smallest batch; `busy`: cores that other programs kept meanwhile.
"""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from views.figures.chart import Chart, Given, Words, origin
from views.figures.stages import belonging
from views.figures.style import Theme, dressed, empty

COLUMNS = ("batch", "seconds", "words", "even", "busy")


def frame(given: Given) -> pd.DataFrame:
    prefix = f"batch/{given.costs['prompt']}/" if given.costs else "batch/"
    found = belonging(given, prefix)
    kept = sorted(
        (one["batch"], one["best"], one.get("busy")) for name, one in found.results.items() if name.startswith(prefix)
    )
    table = pd.DataFrame(kept, columns=["batch", "seconds", "busy"])
    table["words"] = table["batch"] / table["seconds"]
    if kept:
        table["even"] = table["batch"] * table["words"].iloc[0] / table["batch"].iloc[0]
    table = table.reindex(columns=COLUMNS)
    table.attrs = {"source": found.source, "machine": dict(found.machine), "taken": found.taken}
    return table


def figure(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    if table.empty:
        return empty(theme, words("batches.nothing"))
    made = go.Figure()
    made.add_scatter(
        x=table["batch"].tolist(), y=table["even"].tolist(), name=words("batches.even"), mode="lines", meta="even",
        line={"color": theme.pencil, "dash": "dash"}, hoverinfo="skip",
    )  # fmt: skip
    made.add_scatter(
        x=table["batch"].tolist(), y=table["words"].tolist(), name=words("batches.words"), mode="lines+markers",
        meta="words", line={"color": theme.decode, "width": 2}, cliponaxis=False,
        marker={"size": 9, "symbol": "square"},
        hovertext=[words("batches.at", n=row.batch, rate=f"{row.words:,.1f}", one=f"{1000 * row.seconds:,.0f}")
                   for row in table.itertuples()],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    made.update_xaxes(type="log", tickvals=table["batch"].tolist(), title=words("batches.across"))
    made.update_yaxes(type="log", dtick="D2", title=words("batches.axis"))
    first, last = table.iloc[0], table.iloc[-1]
    said = words("batches.summary", n=f"{last['batch']:.0f}", rate=f"{last['words']:,.0f}",
                 one=f"{first['words']:,.0f}", times=f"{last['words'] / first['words']:.1f}")  # fmt: skip
    return dressed(made, theme, said, table.attrs["source"], 320, origin(table, words))


CHARTS = (Chart("batches", frame, figure, frozenset({"run", "measures"})),)
