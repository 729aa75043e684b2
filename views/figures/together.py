"""Real runs that sat at the same time, on one clock: what a page followed itself and nobody keeps as one thing.

The frame is that of `gantt`; its lanes are called as the page calls them.
"""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from views.figures import gantt
from views.figures.chart import Chart, Given, Words
from views.figures.style import Theme


def frame(given: Given) -> pd.DataFrame:
    """Rows that a page sends: what is no span of a lane is left out."""
    rows = [
        (str(row["lane"]), row["kind"], row["start"], row["stop"], str(row.get("label") or ""))
        for row in given.rows
        if row.get("kind") in (*gantt.ORDER, "word")
        and all(isinstance(row.get(name), float) for name in ("start", "stop"))
        and row.get("lane") is not None
    ]
    table = gantt.spans(rows)
    table.attrs |= {
        "source": "measured" if rows else "",
        "end": max((float(row.get("end") or 0) for row in given.rows), default=0.0),
    }
    return table


def figure(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    waits = table[table["kind"] == "wait"]
    longest = float((waits["stop"] - waits["start"]).max()) if len(waits) else 0.0
    said = words(
        "gantt.together",
        lanes=table["lane"].nunique(),
        words=int((table["kind"] == "word").sum()),
        wait=f"{longest:.2f}",
    )
    return gantt.figure(table, words, theme, said, end=table.attrs["end"], high=44)


CHARTS = (Chart("together", frame, figure),)
