"""Chunked prefill: a long paper is read while somebody is answered, for each chunk size that was really run.

`chunked-desk`: both on one clock (`gantt`), lanes A and B; `pick` is “N/CHUNK”, tokens of B's paper and of a chunk, 0
for read at once. `chunked-trade`: a row for each size of the paper picked: `tokens`, `chunk`, `passes`, `ttft` of B
and `stall`, A's longest wait for a word, medians in seconds; `now`: the size picked. `chunked-stall`, `chunked-ttft`:
both as bars by chunk size (`whiskers`), `side` the paper's tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go

from views.figures import gantt, whiskers
from views.figures.chart import Chart, Given, Words, from_lab, origin
from views.figures.style import Theme, dressed, empty

Quantity = Literal["stall", "ttft"]
COLUMNS = ["tokens", "chunk", "passes", "ttft", "stall", "now"]


def _picked(given: Given) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The paper and the chunk size asked for; the first of each where there are no such."""
    lengths = _lengths(given)
    if not lengths:
        return None
    tokens, _, chunk = given.pick.partition("/")
    length = next((one for one in lengths if str(one["n"]) == tokens), lengths[0])
    points = length["points"]
    return length, next((one for one in points if str(one["chunk"]) == chunk), points[0])


def _lengths(given: Given) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = ((given.lab or {}).get("figures") or {}).get("lengths") or ()
    return found


def desk_frame(given: Given) -> pd.DataFrame:
    found = _picked(given)
    if found is None:
        return from_lab(gantt.spans([]), given)
    length, point = found
    told = point["sitting"]
    written, late, arrived = told["words"], told["late"], told["arrived"]
    rows = gantt.person("A", 0.0, (), written) + gantt.person("B", arrived, told["chunks"], late)
    if pause := gantt.longest_pause(written, arrived, late[0]):
        rows.append(("A", "rest", *pause, "", 1.0))
    table = from_lab(gantt.spans(rows), given)
    table.attrs |= {"tokens": length["n"], "chunk": point["chunk"], "end": _end(length)}
    return table


def _end(length: Mapping[str, Any]) -> float:
    """One scale for all chunk sizes of a paper."""
    return float(max(max(one["sitting"]["words"][-1], one["sitting"]["late"][-1]) for one in length["points"]))


def desk(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    pause = table[table["kind"] == "rest"]
    said = words(
        "chunked.desk_summary",
        tokens=f"{table.attrs.get('tokens', 0):,}",
        chunk=_size(table.attrs.get("chunk", 0), words),
        pause=whiskers.seconds(float((pause["stop"] - pause["start"]).max())) if len(pause) else "–",
    )
    names = {lane: words(f"chunked.lane_{lane.lower()}") for lane in ("A", "B")}
    made = gantt.figure(table, words, theme, said, end=table.attrs.get("end", 0.0), high=52, names=names)
    for row in pause.itertuples():
        made.add_annotation(
            x=(row.start + row.stop) / 2,
            y=0,
            text=f"<b>{whiskers.seconds(row.stop - row.start)}</b>",
            showarrow=False,
            font_color=theme.stop,
            bgcolor=theme.paper,
            borderpad=2,
        )
    return made


def trade_frame(given: Given) -> pd.DataFrame:
    found = _picked(given)
    length, now = found or ({"n": 0, "points": ()}, {"chunk": -1})
    rows = [
        (
            length["n"],
            one["chunk"],
            one["passes"],
            one["ttft"]["middle"],
            one["stall"]["middle"],
            one["chunk"] == now["chunk"],
        )
        for one in length["points"]
    ]
    return from_lab(pd.DataFrame(rows, columns=COLUMNS), given)


def trade(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    hovers = [
        words(
            "chunked.point",
            chunk=_size(row.chunk, words),
            ttft=whiskers.seconds(row.ttft),
            stall=whiskers.seconds(row.stall),
        )
        for row in table.itertuples()
    ]
    made.add_scatter(
        x=table["ttft"].tolist(),
        y=table["stall"].tolist(),
        mode="lines+markers+text",
        meta="sizes",
        showlegend=False,
        text=[_size(chunk, words) for chunk in table["chunk"]],
        textposition="top right",
        cliponaxis=False,
        marker={"size": 9, "color": theme.decode},
        line={"color": theme.decode, "width": 2},
        textfont_color=theme.pencil,
        customdata=table["chunk"].tolist(),
        hovertext=hovers,
        hovertemplate="%{hovertext}<extra></extra>",
    )
    now = table[table["now"]]
    made.add_scatter(
        x=now["ttft"].tolist(),
        y=now["stall"].tolist(),
        mode="markers",
        meta="now",
        showlegend=False,
        hoverinfo="skip",
        marker={"size": 17, "color": theme.stop, "symbol": "circle-open", "line": {"width": 3}},
    )
    made.update_xaxes(
        title=words("chunked.trade_across"), rangemode="tozero", range=[0, 1.18 * float(table["ttft"].max())]
    )
    made.update_yaxes(
        title=words("chunked.trade_up"), rangemode="tozero", range=[0, 1.14 * float(table["stall"].max())]
    )
    whole, last = table.iloc[0], table.iloc[-1]
    said = words(
        "chunked.trade_summary",
        tokens=f"{int(whole['tokens']):,}",
        first=whiskers.seconds(whole["stall"]),
        last=whiskers.seconds(last["stall"]),
        soon=whiskers.seconds(whole["ttft"]),
        late=whiskers.seconds(last["ttft"]),
    )
    return dressed(made, theme, said, table.attrs["source"], 280, origin(table, words))


def sweep_frame(given: Given, quantity: Quantity) -> pd.DataFrame:
    return from_lab(
        whiskers.frame(
            [
                whiskers.bar(str(point["chunk"]), str(length["n"]), point[quantity])
                for length in _lengths(given)
                for point in length["points"]
            ]
        ),
        given,
    )


def sweep(table: pd.DataFrame, words: Words, theme: Theme, quantity: Quantity) -> go.Figure:
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    lengths = sorted(set(table["side"]), key=int)
    sides = {length: words("chunked.paper", tokens=f"{int(length):,}") for length in lengths}
    sizes = sorted(set(table["group"]), key=lambda size: (size != "0", -int(size)))
    whiskers.draw(
        made,
        table,
        words,
        theme,
        sides=sides,
        colours=dict(zip(lengths, ("decode", "special", "graphite", "prefill"), strict=False)),
        say=whiskers.seconds,
        groups={size: _size(int(size), words) for size in sizes},
    )
    made.update_layout(barmode="group", bargap=0.25)
    made.update_xaxes(
        title=words("chunked.size"),
        type="category",
        categoryorder="array",
        categoryarray=[_size(int(size), words) for size in sizes],
    )
    made.update_yaxes(title=words(f"chunked.{quantity}_axis"), rangemode="tozero")
    ordered = table.sort_values("value")
    said = words(
        f"chunked.{quantity}_summary",
        least=whiskers.seconds(ordered.iloc[0]["value"]),
        most=whiskers.seconds(ordered.iloc[-1]["value"]),
    )
    return dressed(made, theme, said, table.attrs["source"], 280, origin(table, words))


def _size(chunk: float, words: Words) -> str:
    return f"{int(chunk):,}" if chunk else words("chunked.whole")


CHARTS = (
    Chart("chunked-desk", desk_frame, desk, frozenset({"lab"})),
    Chart("chunked-trade", trade_frame, trade, frozenset({"lab"})),
    *(
        Chart(
            f"chunked-{quantity}",
            partial(sweep_frame, quantity=quantity),
            partial(sweep, quantity=quantity),
            frozenset({"lab"}),
        )
        for quantity in ("stall", "ttft")
    ),
)
