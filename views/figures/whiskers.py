"""Bars beside each other, with the range of repeats as a whisker: before and after, or several ways.

The frame has a row for each bar: `group`, what is compared (a paper, a size); `side`, the way; `value`: a median;
`low`, `high`: its range, both `value` where it was measured once; `label`: what else is to be said of it, or empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from views.figures.chart import Words
from views.figures.style import Theme

COLUMNS = ["group", "side", "value", "low", "high", "label"]
NUMBERS = ["value", "low", "high"]
SHAPES = {"prefill": "", "decode": "", "special": "/", "graphite": "."}
"""Sides are told apart without colours, too."""

Say = Callable[[float], str]


def bar(group: str, side: str, told: Mapping[str, Any] | float | None, label: str = "") -> tuple[Any, ...]:
    """A row: `told` is `{"middle", "low", "high"}`, a number, or None for what was not measured."""
    if told is None:
        return (group, side, None, None, None, label)
    if isinstance(told, float | int):
        return (group, side, told, told, told, label)
    return (group, side, told["middle"], told["low"], told["high"], label)


def frame(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.astype({**dict.fromkeys(NUMBERS, float), "group": str, "side": str, "label": str})


def draw(
    made: go.Figure,
    table: pd.DataFrame,
    words: Words,
    theme: Theme,
    *,
    sides: Mapping[str, str],
    colours: Mapping[str, str],
    say: Say,
    unit: float = 1.0,
    groups: Mapping[str, str] | None = None,
    place: dict[str, int] | None = None,
    legend: bool = True,
    mark: str = "",
) -> None:
    """Upright bars into `made`, a trace for each side. `sides`, `groups`: what they are called; `colours`: by side, of
    the theme; `unit`: by how much values are multiplied; `place`: the row and column of a subplot, `mark` what sets its
    traces apart."""
    for side, name in sides.items():
        some = table[(table["side"] == side) & table["value"].notna()]
        if some.empty:
            continue
        values, colour = unit * some["value"], getattr(theme, colours[side])
        spread = some["high"] > some["low"]
        made.add_bar(
            x=[(groups or {}).get(group, group) for group in some["group"]],
            y=values.tolist(),
            name=name,
            meta=f"{mark}-{side}" if mark else side,
            showlegend=legend and len(sides) > 1,
            marker=_look(colour, SHAPES[colours[side]], theme),
            text=[
                f"{say(value)}{f'<br>{label}' if label else ''}"
                for value, label in zip(some["value"], some["label"], strict=True)
            ],
            textposition=["inside" if wide else "outside" for wide in spread],
            insidetextanchor="start",
            cliponaxis=False,
            outsidetextfont={"color": theme.ink, "size": 12},
            insidetextfont={"color": theme.paper, "size": 12},
            textangle=0,
            customdata=some["group"].tolist(),
            error_y={
                "type": "data",
                "symmetric": False,
                "array": (unit * (some["high"] - some["value"])).tolist(),
                "arrayminus": (unit * (some["value"] - some["low"])).tolist(),
                "color": theme.ink,
                "width": 4,
                "visible": bool(spread.any()),
            },
            hovertext=[
                words(
                    "bars.range" if row.high > row.low else "bars.at",
                    group=(groups or {}).get(row.group, row.group),
                    side=name,
                    value=say(row.value),
                    low=say(row.low),
                    high=say(row.high),
                )
                for row in some.itertuples()
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            **(place or {}),
        )


def _look(colour: str, shape: str, theme: Theme) -> dict[str, Any]:
    pattern = {"shape": shape, "fgcolor": theme.paper, "bgcolor": colour, "size": 8, "solidity": 0.2}
    return {"color": colour, "pattern": pattern}


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.0f} ms"
