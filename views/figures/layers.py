"""How long each layer of a run's prefill took: one pass over all tokens, or its chunks added up.

The frame: `layer` (from 1), `seconds` from one layer's mark to the next (the rest of the layer before it included),
`passes` that went through it so far. It follows a run while its paper is read.
"""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from engine.trace import Layer
from views.figures.chart import Chart, Given, Words
from views.figures.style import Theme, dressed, empty


def frame(given: Given) -> pd.DataFrame:
    events = [event for event in given.trace.events if isinstance(event, Layer)] if given.trace else []
    told = pd.DataFrame(
        {"layer": [event.index + 1 for event in events], "seconds": [event.seconds for event in events]}
    )
    table = told.groupby("layer", as_index=False).agg(seconds=("seconds", "sum"), passes=("seconds", "size"))
    table.attrs = {"source": ("recorded" if given.recorded else "measured") if events else ""}
    return table


def figure(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    if table.empty:
        return empty(theme, words("layers.nothing"))
    times = (1000 * table["seconds"]).tolist()
    made = go.Figure()
    made.add_bar(
        x=table["layer"].tolist(), y=times, meta="layers", marker_color=theme.prefill,
        hovertext=[words("layers.at", layer=layer, time=f"{time:.1f}")
                   for layer, time in zip(table["layer"], times, strict=True)],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    made.update_xaxes(title=words("layers.across"), dtick=5, tick0=0, range=[0.4, table["layer"].max() + 0.6])
    made.update_yaxes(title=words("layers.axis"), rangemode="tozero")
    summary = words("layers.summary", n=len(times), least=f"{min(times):.1f}", most=f"{max(times):.1f}")
    return dressed(made, theme, summary, table.attrs["source"], 190)


CHARTS = (Chart("layers", frame, figure, needs=frozenset({"run"})),)
