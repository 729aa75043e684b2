"""What went on over time, a lane for each person or machine: one figure for everything that is scheduled.

The frame has a row for each span: `lane`, who or what; `kind`: `wait`, `read` (prefill), `between` (two parts of a
reading), `write` (decode), `travel`, `rest` (a pause that is pointed at), or `word`, a moment; `start`, `stop`:
seconds on one clock; `label`: what the span is of (a word's number, a range of tokens, a person), or empty; `level`:
how high it is drawn, 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from views.figures.chart import Words, origin
from views.figures.style import CLEAR, Theme, dressed, empty, rgba

COLUMNS = ["lane", "kind", "start", "stop", "label", "level"]
ORDER = ("wait", "between", "write", "read", "travel", "rest")
"""What lies over what."""
THICK = {"wait": 0.3, "between": 0.78, "write": 0.78, "read": 0.78, "travel": 0.5, "rest": 0.9}
"""Of a lane's height."""

Span = tuple[str, str, float, float, str, float]


def spans(rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """The frame of rows `(lane, kind, start, stop[, label[, level]])`."""
    full = [(*row, *("", 1.0)[len(row) - 4 :]) for row in rows]
    table = pd.DataFrame(full, columns=COLUMNS)
    return table.astype({"start": float, "stop": float, "level": float, "label": str})


def person(lane: str, arrived: float, chunks: Sequence[Sequence[float]], written: Sequence[float]) -> list[Span]:
    """Somebody who came at `arrived`, was read in `chunks` (start, stop, from, to), and when their words were there."""
    told: list[Span] = []
    first = chunks[0][0] if chunks else written[0] if written else arrived
    if first > arrived:
        told.append((lane, "wait", arrived, first, "", 1.0))
    if len(chunks) > 1:
        told.append((lane, "between", first, chunks[-1][1], "", 1.0))
    told += [(lane, "read", start, stop, f"{int(a) + 1}–{int(b)}", 1.0) for start, stop, a, b in chunks]
    if len(written) > 1:
        told.append((lane, "write", written[0], written[-1], str(len(written)), 1.0))
    return [*told, *((lane, "word", at, at, str(n), 1.0) for n, at in enumerate(written, 1))]


def longest_pause(written: Sequence[float], arrived: float, late: float) -> tuple[float, float] | None:
    """The longest wait for a word while somebody else, who came at `arrived`, waited for a first one at `late`."""
    pairs = [(a, b) for a, b in pairwise(written) if b > arrived and a < late]
    return max(pairs, key=lambda pair: pair[1] - pair[0]) if pairs else None


def figure(
    table: pd.DataFrame,
    words: Words,
    theme: Theme,
    summary: str,
    *,
    end: float = 0.0,
    high: int = 34,
    names: Mapping[str, str] | None = None,
    across: str = "gantt.across",
    inside: bool = False,
) -> go.Figure:
    """`names`: what a lane is called, itself without; `end`: seconds the clock shows, so that several have one scale;
    `high`: pixels of a lane; `inside`: labels stand in the blocks that read, where there is room."""
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    lanes = list(dict.fromkeys(table["lane"]))
    places = {lane: place for place, lane in enumerate(lanes)}
    made = go.Figure()
    for kind in ORDER:
        some = table[table["kind"] == kind]
        if not some.empty:
            made.add_bar(**_bars(kind, some, places, words, theme))
    if inside:
        made.update_traces(
            selector={"meta": "read"},
            text=table[table["kind"] == "read"]["label"].tolist(),
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont_color=theme.paper,
        )
    ticks = table[table["kind"] == "word"]
    if not ticks.empty:
        made.add_scatter(
            x=ticks["start"].tolist(),
            y=ticks["lane"].map(places).tolist(),
            mode="markers",
            meta="word",
            name=words("gantt.word"),
            customdata=ticks[["lane", "label"]].to_numpy().tolist(),
            marker={
                "symbol": "line-ns-open",
                "size": 0.58 * high,
                "color": theme.decode,
                "line": {"width": 2, "color": theme.decode},
            },
            hovertext=_hovers(ticks, words),
            hovertemplate="%{hovertext}<extra></extra>",
        )
    until = end or float(table["stop"].max())
    made.update_layout(barmode="overlay", bargap=0)
    made.update_xaxes(title=words(across), range=[0, until], zeroline=False)
    made.update_yaxes(
        tickvals=list(places.values()),
        ticktext=[(names or {}).get(lane, lane) for lane in lanes],
        range=[len(lanes) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        tickfont_color=theme.ink,
    )
    made = dressed(made, theme, summary, table.attrs.get("source", ""), high * len(lanes) + 82, origin(table, words))
    made.update_layout(meta={**dict(made.layout.meta), "end": until})
    return made


def _bars(kind: str, some: pd.DataFrame, places: Mapping[str, int], words: Words, theme: Theme) -> dict[str, Any]:
    thick = (THICK[kind] * some["level"]).tolist()
    low = [places[lane] + THICK[kind] / 2 for lane in some["lane"]]
    return {
        "base": some["start"].tolist(),
        "x": (some["stop"] - some["start"]).tolist(),
        "orientation": "h",
        "y": [bottom - part / 2 for bottom, part in zip(low, thick, strict=True)],
        "width": thick,
        "meta": kind,
        "name": words(f"gantt.{kind}"),
        "marker": _look(kind, theme),
        "hovertext": _hovers(some, words),
        "customdata": some[["lane", "label"]].to_numpy().tolist(),
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _look(kind: str, theme: Theme) -> dict[str, Any]:
    """No two kinds differ by colour alone: waits are thin and hatched, writing is pale, a pause is an outline."""
    looks: dict[str, dict[str, Any]] = {
        "wait": {
            "color": CLEAR,
            "line": {"width": 0},
            "pattern": {"shape": "/", "size": 6, "fgcolor": theme.pencil, "bgcolor": CLEAR},
        },
        "between": {"color": rgba(theme.prefill, 0.22), "line": {"width": 0}},
        "write": {"color": rgba(theme.decode, 0.24), "line": {"width": 0}},
        "read": {"color": theme.prefill, "line": {"width": 1, "color": theme.paper}},
        "travel": {"color": theme.special, "line": {"width": 1, "color": theme.special}},
        "rest": {"color": rgba(theme.stop, 0.14), "line": {"width": 2, "color": theme.stop}},
    }
    return looks[kind]


def _hovers(some: pd.DataFrame, words: Words) -> list[str]:
    return [
        words(
            f"gantt.{row.kind}_at",
            lane=row.lane,
            label=row.label,
            start=f"{row.start:.2f}",
            stop=f"{row.stop:.2f}",
            seconds=f"{row.stop - row.start:.2f}",
        )
        for row in some.itertuples()
    ]
