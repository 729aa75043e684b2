"""The race: the same question with the notes and without. When each word came, and the arithmetic until then.

The frame: `side` (`notes`, `none`), `word` from 1, `seconds` since the start (measured), `flops` so far (computed).
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Literal

import pandas as pd
import plotly.graph_objects as go

from views.figures.chart import Chart, Given, Words
from views.figures.stages import si
from views.figures.style import Theme, dressed, empty

Quantity = Literal["seconds", "flops"]
COLUMNS = ("side", "word", "seconds", "flops")


def frame(given: Given) -> pd.DataFrame:
    rows = []
    for trace, costs in ((given.trace, given.costs), (given.beside, given.beside_costs)):
        if trace is None or trace.started is None or costs is None:
            continue
        side = "notes" if trace.started.settings.notes else "none"
        spent = accumulate(costs["race"][side])
        rows += [
            (side, at + 1, event.at, flops) for at, (event, flops) in enumerate(zip(trace.chosen, spent, strict=False))
        ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table.attrs = {"source": "measured" if rows else ""}
    return table


def figure(table: pd.DataFrame, words: Words, theme: Theme, quantity: Quantity) -> go.Figure:
    if table.empty:
        return empty(theme, words("race.nothing"))
    made, said = go.Figure(), []
    looks = {"notes": (theme.decode, "square", "solid"), "none": (theme.prefill, "circle", "dash")}
    for side, (colour, symbol, dash) in looks.items():
        own = table[table["side"] == side]
        if own.empty:
            continue
        told = [_told(value, quantity) for value in own[quantity]]
        made.add_scatter(
            x=own["word"].tolist(), y=(own[quantity] / (1 if quantity == "seconds" else 1e9)).tolist(), meta=side,
            name=words(f"race.{side}"), mode="lines+markers", line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 6}, cliponaxis=False,
            hovertext=[words("race.at", side=words(f"race.{side}"), n=word, value=value)
                       for word, value in zip(own["word"], told, strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
        )  # fmt: skip
        said.append(words("race.at", side=words(f"race.{side}"), n=len(own), value=told[-1]))
    made.update_xaxes(title=words("race.across"), rangemode="tozero")
    made.update_yaxes(title=words(f"race.{quantity}_axis"), rangemode="tozero")
    source = "measured" if quantity == "seconds" else "computed"
    return dressed(made, theme, " ".join(said), source, 280)


def _told(value: float, quantity: Quantity) -> str:
    return f"{value:.2f} s" if quantity == "seconds" else si(value, "FLOP")


CHARTS = tuple(
    Chart(f"race-{quantity}", frame, partial(figure, quantity=quantity), frozenset({"run"}), frozenset({"beside"}))
    for quantity in ("seconds", "flops")
)
