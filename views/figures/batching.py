"""Continuous batching: the same eight people served one by one, in batches and continuously, all really run.

`batching-desk`: a lane for each of them (`gantt`), served the way picked. `batching-ways`: tokens per second and the
longest wait for a first word, by way (`whiskers`; `group` is `rate` or `ttft`). `batching-rate`, `batching-tpot`: a
row for each number of people in a step: `people`, `value` (tokens per second; seconds), `low`, `high`.
`batching-reference`: this engine and transformers' own beside each other (`whiskers`; `group` is `rate`, `ttft` or
`tpot`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from views.figures import gantt, whiskers
from views.figures.chart import Chart, Given, Words, from_lab, origin
from views.figures.style import Theme, dressed, empty, rgba

Quantity = Literal["rate", "tpot"]
WAYS = {"alone": "prefill", "static": "special", "continuous": "decode"}
REFERENCE = {"ours": "decode", "library": "graphite"}
COLUMNS = ["people", "value", "low", "high"]


def _figures(given: Given) -> Mapping[str, Any]:
    return (given.lab or {}).get("figures") or {}


def _ways(given: Given) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = _figures(given).get("ways") or ()
    return found


def desk_frame(given: Given) -> pd.DataFrame:
    ways = _ways(given)
    way = next((one for one in ways if one["way"] == given.pick), ways[0] if ways else None)
    members = way["members"] if way else ()
    rows = [span for one in members for span in gantt.person(one["name"], one["arrived"], one["chunks"], one["words"])]
    table = from_lab(gantt.spans(rows), given)
    table.attrs |= {"way": way["way"] if way else "", "end": max((float(one["seconds"]) for one in ways), default=0.0)}
    return table


def desk(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    waits = table[table["kind"] == "wait"]
    longest = float((waits["stop"] - waits["start"]).max()) if len(waits) else 0.0
    way = words(f"batching.{table.attrs['way']}") if table.attrs["way"] else ""
    said = words(
        "batching.desk_summary",
        way=way,
        people=table["lane"].nunique(),
        wait=whiskers.seconds(longest),
        seconds=f"{float(table['stop'].max() or 0):.1f}",
    )
    return gantt.figure(table, words, theme, said, end=table.attrs["end"], high=30)


def ways_frame(given: Given) -> pd.DataFrame:
    rows = [whiskers.bar("rate", one["way"], float(one["rate"])) for one in _ways(given)]
    rows += [whiskers.bar("ttft", one["way"], float(one["ttft"]["high"])) for one in _ways(given)]
    return from_lab(whiskers.frame(rows), given)


def ways(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    panels = ("rate", "ttft")
    made = make_subplots(1, 2, subplot_titles=[words(f"batching.{name}") for name in panels], horizontal_spacing=0.12)
    sides = {way: words(f"batching.{way}") for way in WAYS}
    for column, name in enumerate(panels, 1):
        whiskers.draw(
            made,
            table[table["group"] == name],
            words,
            theme,
            sides=sides,
            colours=WAYS,
            groups={name: ""},
            say=_per_second if name == "rate" else whiskers.seconds,
            place={"row": 1, "col": column},
            legend=column == 1,
            mark=name,
        )
    made.update_layout(barmode="group", bargap=0.2)
    made.update_yaxes(rangemode="tozero", showticklabels=False)
    made.update_xaxes(showticklabels=False)
    told = {(row.side, row.group): row.value for row in table.itertuples()}
    first, last = (next(way for way in order if (way, "rate") in told) for order in (list(WAYS), list(WAYS)[::-1]))
    said = words(
        "batching.ways_summary",
        one=sides[first],
        other=sides[last],
        before=_per_second(told[first, "rate"]),
        after=_per_second(told[last, "rate"]),
        wait=whiskers.seconds(told[first, "ttft"]),
        less=whiskers.seconds(told[last, "ttft"]),
    )
    made.update_annotations(font_size=13)
    return _under(dressed(made, theme, said, table.attrs["source"], 270, origin(table, words)))


def _under(made: go.Figure) -> go.Figure:
    """The legend below: titles of panels stand where it is elsewhere."""
    return made.update_layout(legend={"y": -0.04, "yanchor": "top"})


def steps_frame(given: Given, quantity: Quantity) -> pd.DataFrame:
    rows = []
    for one in _figures(given).get("batches") or ():
        pace = one["tpot"]
        told = (pace["middle"], pace["low"], pace["high"])
        if quantity == "rate":
            told = (one["rate"], one["batch"] / pace["high"], one["batch"] / pace["low"])
        rows.append((one["batch"], *told))
    return from_lab(pd.DataFrame(rows, columns=COLUMNS).astype(float), given)


def steps(table: pd.DataFrame, words: Words, theme: Theme, quantity: Quantity) -> go.Figure:
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    unit, say = (1.0, _per_second) if quantity == "rate" else (1000.0, whiskers.seconds)
    across, made = table["people"].tolist(), go.Figure()
    made.add_scatter(
        x=across + across[::-1],
        y=(unit * pd.concat([table["high"], table["low"][::-1]])).tolist(),
        fill="toself",
        mode="lines",
        meta="range",
        showlegend=False,
        hoverinfo="skip",
        line_width=0,
        fillcolor=rgba(theme.decode, 0.16),
    )
    made.add_scatter(
        x=across,
        y=(unit * table["value"]).tolist(),
        mode="lines+markers",
        meta="steps",
        showlegend=False,
        line={"color": theme.decode, "width": 2},
        marker={"size": 8, "color": theme.decode},
        hovertext=[
            words("batching.step", people=int(row.people), value=say(row.value), low=say(row.low), high=say(row.high))
            for row in table.itertuples()
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    made.update_xaxes(title=words("batching.people"), rangemode="tozero")
    made.update_yaxes(title=words(f"batching.{quantity}_axis"), rangemode="tozero")
    first, last = table.iloc[0], table.iloc[-1]
    said = words(
        f"batching.{quantity}_summary",
        few=int(first["people"]),
        many=int(last["people"]),
        one=say(first["value"]),
        all=say(last["value"]),
    )
    return dressed(made, theme, said, table.attrs["source"], 260, origin(table, words))


def reference_frame(given: Given) -> pd.DataFrame:
    told = _figures(given).get("reference") or {}
    sides = [(side, told[side]) for side in REFERENCE if told.get(side)]
    rows = [whiskers.bar(group, side, one.get(group)) for group in ("rate", "ttft", "tpot") for side, one in sides]
    return from_lab(whiskers.frame(rows), given)


def reference(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    known = table[table["value"].notna()]
    if known.empty:
        return empty(theme, words("gantt.nothing"))
    panels = ("rate", "ttft", "tpot")
    made = make_subplots(
        1, 3, subplot_titles=[words(f"batching.reference_{name}") for name in panels], horizontal_spacing=0.08
    )
    sides = {side: words(f"batching.{side}") for side in REFERENCE}
    for column, name in enumerate(panels, 1):
        whiskers.draw(
            made,
            known[known["group"] == name],
            words,
            theme,
            sides=sides,
            colours=REFERENCE,
            groups={name: ""},
            say=_per_second if name == "rate" else whiskers.seconds,
            place={"row": 1, "col": column},
            legend=column == 1,
            mark=name,
        )
    made.update_layout(barmode="group", bargap=0.3)
    made.update_yaxes(rangemode="tozero", showticklabels=False)
    made.update_xaxes(showticklabels=False)
    made.update_annotations(font_size=13)
    rates = known[known["group"] == "rate"]
    said = words(
        "batching.reference_summary",
        told=", ".join(f"{sides[row.side]}: {_per_second(row.value)}" for row in rates.itertuples()),
    )
    return _under(dressed(made, theme, said, table.attrs["source"], 270, origin(table, words)))


def _per_second(value: float) -> str:
    return f"{value:.1f}/s"


CHARTS = (
    Chart("batching-desk", desk_frame, desk, frozenset({"lab"})),
    Chart("batching-ways", ways_frame, ways, frozenset({"lab"})),
    *(
        Chart(
            f"batching-{quantity}",
            partial(steps_frame, quantity=quantity),
            partial(steps, quantity=quantity),
            frozenset({"lab"}),
        )
        for quantity in ("rate", "tpot")
    ),
    Chart("batching-reference", reference_frame, reference, frozenset({"lab"})),
)
