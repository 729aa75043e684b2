"""The page's still figures, in the scene's colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from engine.plan import Plan
from engine.plan.formats import readable
from views.words import say

PARTS = ("weights", "kv", "activation", "overhead")
_COLOURS = {"weights": "green", "kv": "blue", "activation": "orange", "overhead": "gray", "over": "red"}


def colour(name: str) -> str:
    """Of the theme in `.streamlit/config.toml`: blue is what decode reads, orange is prefill's, as everywhere."""
    theme = "dark" if st.context.theme.type == "dark" else "light"
    option = f"{_COLOURS[name]}Color" if name in _COLOURS else name
    return cast("str", st.get_option(f"theme.{theme}.{option}"))


def _dressed(figure: go.Figure, height: int, **layout: Any) -> go.Figure:
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        dragmode=False,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        **layout,
    )
    return figure


def bar(made: Plan, device: int) -> go.Figure:
    """The parts end to end, and where the device's memory ends."""
    gib = 1024**3
    figure = go.Figure()
    for part in PARTS:
        count = cast("int", getattr(made, f"{part}_bytes"))
        figure.add_bar(
            y=[""], x=[count / gib], orientation="h", name=say(f"memory.{part}"), marker_color=colour(part),
            hovertemplate=f"%{{fullData.name}}: {readable(count)}<extra></extra>",
        )  # fmt: skip
    figure.add_vline(device / gib, line_width=3, line_color=colour("textColor"))
    most = max(device, made.total_bytes) / gib
    figure.add_annotation(
        x=device / gib, y=1, yref="paper", yanchor="bottom", showarrow=False, text=say("memory.device_ends"),
        xanchor="left" if device / gib < 0.2 * most else "right" if device / gib > 0.8 * most else "center",
    )  # fmt: skip
    _dressed(figure, 150, barmode="stack", yaxis_visible=False)
    figure.update_xaxes(range=[0, 1.03 * most], ticksuffix=" GiB", showgrid=False, nticks=6)
    figure.update_layout(legend={"y": -0.55, "yanchor": "top", "traceorder": "normal"})
    return figure


def heat(table: pd.DataFrame, device: int) -> go.Figure:
    """What fits: rows are contexts, columns batches, a cell the total. `table` holds bytes."""
    totals = table.to_numpy()
    shares = [[min(total / device, 2.0) for total in row] for row in totals.tolist()]
    labels = [
        [readable(total) if total <= device else f"✕ {readable(total)}" for total in row] for row in totals.tolist()
    ]
    fits, over = colour("kv"), colour("over")
    paper = colour("secondaryBackgroundColor")
    figure = go.Figure(
        go.Heatmap(
            z=shares, x=[str(batch) for batch in table.columns], y=[f"{length:,}" for length in table.index],
            text=labels, texttemplate="%{text}", zmin=0, zmax=2, showscale=False, xgap=2, ygap=2,
            colorscale=[[0, paper], [0.5, _mixed(fits, paper, 0.6)], [0.5, _mixed(over, paper, 0.2)],
                        [1, _mixed(over, paper, 0.45)]], textfont={"color": colour("textColor")},
            hovertemplate=say("memory.heat_hover"),
        )
    )  # fmt: skip
    _dressed(figure, 70 + 34 * len(totals))
    figure.update_xaxes(title=say("memory.batch"), type="category", side="top")
    figure.update_yaxes(title=say("memory.context"), type="category", autorange="reversed")
    return figure


def _mixed(colour: str, paper: str, share: float) -> str:
    """`share` of one colour in another, both `#rrggbb`."""
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(paper[1:]), strict=True)
    return "#" + "".join(f"{round(share * ink + (1 - share) * ground):02x}" for ink, ground in pairs)


def time(rows: Iterable[tuple[str, int, int, int]], prefill_steps: int) -> go.Figure:
    """Activations and cache over a run: reading on the left, writing on the right. Not to scale in time."""
    rows, mib = list(rows), 1024**2
    places = list(range(len(rows)))
    figure = go.Figure()
    for index, part in ((2, "kv"), (3, "activation")):
        figure.add_scatter(
            x=places, y=[cast("int", row[index]) / mib for row in rows], name=say(f"memory.{part}"), mode="lines",
            line={"color": colour(part), "width": 3}, fill="tozeroy",
            customdata=[row[1] for row in rows], hovertemplate=say("memory.time_hover"),
        )  # fmt: skip
    figure.add_vline(prefill_steps, line_dash="dot", line_color=colour("grayColor"))
    middle = [prefill_steps / 2, (prefill_steps + len(rows)) / 2]
    _dressed(figure, 300, hovermode="x")
    figure.update_xaxes(tickvals=middle, ticktext=[say("memory.reading"), say("memory.writing")], showgrid=False)
    figure.update_yaxes(title="MiB", rangemode="tozero")
    return figure


def dots(table: pd.DataFrame, chosen: str, low: float, high: float) -> go.Figure:
    """Each model's saving as a dot, those of a value above each other; the quoted range is shaded."""
    table = pd.concat([table[table["name"] != chosen], table[table["name"] == chosen]], ignore_index=True)
    height: dict[int, int] = {}
    places = []
    for value in table["saving"]:
        height[round(value)] = height.get(round(value), 0) + 1
        places.append(height[round(value)])
    mine = [name == chosen for name in table["name"]]
    figure = go.Figure(
        go.Scatter(
            x=table["saving"], y=places, mode="markers", hovertext=table["name"], hoverinfo="text+x",
            marker={
                "size": [18 if one else 12 for one in mine],
                "color": [colour("activation") if one else colour("kv") for one in mine],
            },
        )
    )  # fmt: skip
    for index in [index for index, one in enumerate(mine) if one]:
        figure.add_annotation(
            x=table["saving"][index], y=places[index], text=chosen, showarrow=True, arrowhead=0, ax=0, ay=-26
        )
    figure.add_vrect(low, high, fillcolor=colour("yellowColor"), opacity=0.28, line_width=0, layer="below")
    figure.add_annotation(
        x=(low + high) / 2, y=1, yref="paper", yanchor="bottom", showarrow=False, text=say("memory.quoted")
    )
    _dressed(figure, 120 + 13 * max(places, default=0), showlegend=False)
    figure.update_xaxes(title=say("memory.saved_axis"), ticksuffix=" %", range=[-4, 104], zeroline=False)
    figure.update_yaxes(visible=False, range=[0, max(places, default=0) + 1])
    return figure
