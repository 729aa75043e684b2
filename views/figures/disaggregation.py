"""Prefill/decode disaggregation: two arrangements of machines, simulated with costs that were measured.

Simulated are: `disaggregation-lanes` (`gantt`): what each machine of an arrangement did, and what one person saw;
`pick` is “ARRANGEMENT/PERSON”, from 1; a lane is a machine's name, `link` or `person`; `level` is the share of the
most who can write at once. `disaggregation-ttft`, `-tpot`, `-pause`: a row for each person: `way`, `person`,
`seconds`, `share` of all who had at most so much. `disaggregation-load-ttft` and so on: a row for each load and seed:
`way`, `load`, `seed`, `seconds`, a percentile over people; `pick` is p50, p90 or p99. `disaggregation-ratios`
(`whiskers`): `group` is the kind of people, `side` the machines, `value` the most they can serve as a share of as
many that do both; and `ttft`, `pause`: p90 at `load`.

Measured are what it is fed with: `disaggregation-reads`: `kind` is `point` or `curve` (the fit that is used),
`tokens`, `seconds`, `low`, `high`; `disaggregation-steps`: `people`, `context` (notes before them), `seconds`, `low`,
`high`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go

from engine.disaggregation.costs import Costs
from engine.disaggregation.told import SEEDS, crowd, over_loads
from engine.labs.disaggregation import costs_from
from service.simulation import cached
from views.figures import gantt, whiskers
from views.figures.chart import Chart, Given, Words, from_lab, origin
from views.figures.style import Theme, dressed, empty

Quantity = Literal["ttft", "tpot", "pause"]
QUANTITIES: tuple[Quantity, ...] = ("ttft", "tpot", "pause")
WAYS = {"colocated": ("prefill", "solid", "circle"), "chunked": ("special", "dash", "square"),
        "split": ("decode", "dot", "diamond")}  # fmt: skip
RATIOS = {"colocated": "prefill", "3+1": "decode", "2+2": "special", "1+3": "graphite"}
PERCENTILES = ("p50", "p90", "p99")


def _costs(given: Given) -> Costs | None:
    return costs_from((given.lab or {}).get("results") or {})


def _figures(given: Given) -> dict[str, Any]:
    return dict((given.lab or {}).get("figures") or {})


def lanes_frame(given: Given) -> pd.DataFrame:
    costs = _costs(given)
    if costs is None:
        return from_lab(gantt.spans([]), given, "simulated")
    told = cached(costs, given.asked)
    way, _, number = given.pick.partition("/")
    way = way if way in WAYS else "split"
    picture = told["arrangements"][way]["picture"]
    people = picture["people"]
    person = int(number) - 1 if number.isdecimal() and 0 < int(number) <= len(people) else 0
    rows: list[tuple[Any, ...]] = []
    for place, machine in enumerate(picture["machines"]):
        if way == "split" and place == told["readers"]:
            rows += [("link", "travel", start, stop, str(who + 1)) for start, stop, who in picture["travels"]]
        rows += [
            (machine["name"], "write", start, stop, str(len(who)), max(0.12, len(who) / told["most"]))
            for start, stop, who, _ in machine["writes"]
        ]
        rows += [(machine["name"], "read", start, stop, str(who + 1)) for start, stop, who, _ in machine["reads"]]
    rows += _seen(people[person])
    table = from_lab(gantt.spans(rows), given, "simulated")
    table.attrs |= {"way": way, "person": person + 1, "end": picture["until"], "people": len(people)}
    return table


def _seen(one: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What a person saw: the wait, their paper read, every word, and the longest pause."""
    rows = gantt.person("person", one["at"], [(one["began"], one["first"], 0, one["prompt"])], one["words"])
    if pause := gantt.longest_pause(one["words"], one["at"], float("inf")):
        rows.append(("person", "rest", *pause, "", 1.0))
    return list(rows)


def lanes(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    known = list(dict.fromkeys(table["lane"]))
    machines = [lane for lane in known if lane not in ("link", "person")]
    names = {lane: words("disaggregation.machine", n=n) for n, lane in enumerate(machines, 1)}
    names |= {"link": words("disaggregation.link"), "person": words("disaggregation.person", n=table.attrs["person"])}
    rest = table[table["kind"] == "rest"]
    said = words(
        "disaggregation.lanes_summary", way=words(f"disaggregation.{table.attrs['way']}"), machines=len(machines),
        people=table.attrs["people"], person=table.attrs["person"],
        pause=whiskers.seconds(float((rest["stop"] - rest["start"]).max())) if len(rest) else "–",
    )  # fmt: skip
    return gantt.figure(table, words, theme, said, end=table.attrs["end"], high=32, names=names, inside=True)


def spread_frame(given: Given, quantity: Quantity) -> pd.DataFrame:
    costs, rows = _costs(given), []
    if costs is not None:
        for way, people in crowd(costs, given.asked).items():
            known = [(one[QUANTITIES.index(quantity)], number) for number, one in enumerate(people, 1)]
            ordered = sorted((seconds, number) for seconds, number in known if seconds is not None)
            rows += [(way, n, seconds, place / len(ordered)) for place, (seconds, n) in enumerate(ordered, 1)]
    table = pd.DataFrame(rows, columns=["way", "person", "seconds", "share"]).astype({"seconds": float, "share": float})
    return from_lab(table, given, "simulated")


def spread(table: pd.DataFrame, words: Words, theme: Theme, quantity: Quantity) -> go.Figure:
    """How many had at most so much: steeper and further left is better."""
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    made, tails = go.Figure(), []
    for way, (colour, dash, _) in WAYS.items():
        some = table[table["way"] == way]
        name = words(f"disaggregation.{way}")
        made.add_scatter(
            x=some["seconds"].tolist(), y=some["share"].tolist(), mode="lines", meta=way, name=name,
            line={"color": getattr(theme, colour), "dash": dash, "width": 2.5, "shape": "hv"},
            hovertext=[
                words("disaggregation.spread_at", way=name, share=f"{row.share:.0%}",
                      seconds=whiskers.seconds(row.seconds))
                for row in some.itertuples()
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )  # fmt: skip
        tails.append(f"{name} {whiskers.seconds(float(some['seconds'].quantile(0.9)))}")
    made.add_hline(0.9, line={"color": theme.ghost, "dash": "dot"}, annotation_text="p90",
                   annotation_position="bottom right")  # fmt: skip
    made.update_xaxes(title=words(f"disaggregation.{quantity}_axis"), rangemode="tozero")
    made.update_yaxes(title=words("disaggregation.share_axis"), range=[0, 1.02], tickformat=".0%")
    said = words(f"disaggregation.{quantity}_summary", told=", ".join(tails))
    return dressed(made, theme, said, "simulated", 300, origin(table, words))


def load_frame(given: Given, quantity: Quantity) -> pd.DataFrame:
    costs, rows = _costs(given), []
    percentile = given.pick if given.pick in PERCENTILES else "p90"
    for told in over_loads(costs, given.asked) if costs is not None else ():
        for way in WAYS:
            seconds = (told[way][quantity] or {}).get(percentile, ())
            rows += [(way, told["load"], seed, one) for seed, one in zip(SEEDS, seconds, strict=False)]
    table = pd.DataFrame(rows, columns=["way", "load", "seed", "seconds"]).astype({"load": float, "seconds": float})
    table = from_lab(table, given, "simulated")
    table.attrs["percentile"] = percentile
    return table


def load(table: pd.DataFrame, words: Words, theme: Theme, quantity: Quantity) -> go.Figure:
    """A dot for each seed, a line through the medians."""
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    for way, (colour, dash, symbol) in WAYS.items():
        some, name = table[table["way"] == way], words(f"disaggregation.{way}")
        middle = some.groupby("load")["seconds"].median()
        line = {"color": getattr(theme, colour), "dash": dash, "width": 2}
        made.add_scatter(x=middle.index.tolist(), y=middle.tolist(), mode="lines", meta=way, name=name,
                         hoverinfo="skip", line=line)  # fmt: skip
        made.add_scatter(
            x=some["load"].tolist(), y=some["seconds"].tolist(), mode="markers", meta=f"{way}-seeds", showlegend=False,
            marker={"color": getattr(theme, colour), "symbol": symbol, "size": 6}, customdata=some["seed"].tolist(),
            hovertext=[
                words("disaggregation.load_at", way=name, load=f"{row.load:.0%}", seed=row.seed,
                      seconds=whiskers.seconds(row.seconds))
                for row in some.itertuples()
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )  # fmt: skip
    made.update_xaxes(title=words("disaggregation.load"), tickformat=".0%")
    made.update_yaxes(title=words(f"disaggregation.{quantity}_axis"), rangemode="tozero")
    most = table[table["load"] == table["load"].max()].groupby("way")["seconds"].median()
    told = ", ".join(f"{words(f'disaggregation.{way}')} {whiskers.seconds(float(most[way]))}" for way in most.index)
    said = words("disaggregation.load_summary", percentile=table.attrs["percentile"], load=f"{table['load'].max():.0%}",
                 quantity=words(f"disaggregation.{quantity}_axis"), told=told)  # fmt: skip
    return dressed(made, theme, said, "simulated", 300, origin(table, words))


def ratios_frame(given: Given) -> pd.DataFrame:
    rows, more = [], []
    for mix in _figures(given).get("ratios") or ():
        for way, found in mix["ways"].items():
            rows.append(whiskers.bar(mix["mix"], way, float(found["capacity"])))
            more.append((found["ttft"], found["pause"], mix["load"]))
    table = whiskers.frame(rows)
    table[["ttft", "pause", "load"]] = pd.DataFrame(more, columns=["ttft", "pause", "load"]).astype(float)
    return from_lab(table, given, "simulated")


def ratios(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    sides = {way: words(f"disaggregation.ratio_{way.replace('+', '_')}") for way in RATIOS}
    groups = {mix: words(f"disaggregation.{mix}") for mix in dict.fromkeys(table["group"])}
    whiskers.draw(made, table, words, theme, sides=sides, colours=RATIOS, say="{:.0%}".format, groups=groups)
    asked = float(table["load"].max())
    made.add_hline(asked, line={"color": theme.stop, "dash": "dash", "width": 2},
                   annotation_text=words("disaggregation.asked", load=f"{asked:.0%}"), annotation_position="top right",
                   annotation_font_color=theme.stop)  # fmt: skip
    made.update_layout(barmode="group", bargap=0.25)
    made.update_yaxes(title=words("disaggregation.capacity"), rangemode="tozero", tickformat=".0%")
    best = table[table["side"] != "colocated"].sort_values("value").groupby("group", sort=False).tail(1)
    told = "; ".join(f"{groups[row.group]}: {sides[row.side]}, {row.value:.0%}" for row in best.itertuples())
    said = words("disaggregation.ratios_summary", told=told.replace("<br>", " "))
    return dressed(made, theme, said, "simulated", 320, origin(table, words))


def _each(part: str, table: Any, draw: Any) -> tuple[Chart, ...]:
    return tuple(
        Chart(
            f"disaggregation-{part}{quantity}", partial(table, quantity=quantity), partial(draw, quantity=quantity),
            frozenset({"lab"}),
        )
        for quantity in QUANTITIES
    )  # fmt: skip


CHARTS = (
    Chart("disaggregation-lanes", lanes_frame, lanes, frozenset({"lab"})),
    *_each("", spread_frame, spread),
    *_each("load-", load_frame, load),
    Chart("disaggregation-ratios", ratios_frame, ratios, frozenset({"lab"})),
)
