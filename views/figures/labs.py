"""What a remedy's lab measured, before and after: bars or lines by case, each with its spread; one frame for all labs.

The frame has a row for each bar or point. `case`: what was measured, by name, or `n`: a number of tokens, rows, layers;
`side`: which way (`exact`, `blocks/16`: a name, and a size where it has one); `middle`, `low`, `high`: median and range
of `repeats`, in seconds, bytes, tokens or as a share; `ratio`: `middle` against the first side's of the same case;
`of`: what was set aside, where `middle` is the part of it in use; `calls`: to torch, where they were counted; `source`:
`computed` where one number among measured ones is. `attrs` tells where all come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go

from views.figures.chart import Chart, Given, Need, Words, origin
from views.figures.style import CLEAR, Theme, dressed, empty, rgba

Unit = Literal["seconds", "bytes", "tokens", "share"]
COLUMNS = ("case", "n", "side", "middle", "low", "high", "repeats", "ratio", "of", "calls", "source")
TEXTS = ("case", "side", "source")
PATTERNS = ("", "/", ".", "x")
SYMBOLS = ("circle", "diamond", "square", "triangle-up")
DASHES = ("solid", "dash")
TICKS = {
    "seconds": {"tickformat": "~s", "ticksuffix": "s"},
    "bytes": {"tickformat": "~s", "ticksuffix": "B"},
    "tokens": {"tickformat": ",d"},
    "share": {"tickformat": ",.0%"},
}
BEHIND = "\u00a0%{text}"
LETTERS = 22
"""That a narrow chart is wide."""
BAR, CASE, ROOM = 25, 14, 92
"""Heights in pixels: a bar, the gap after a case, and what is above and below them all."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One chart of a lab. `rows`: its bars or points from what is given; `across`: a line over `n` instead of bars;
    `named`: its cases have names in the words; `told`: its numbers are those the run on show told itself; `needs`: the
    lab's results, or a run."""

    name: str
    rows: Callable[[Given], Iterable[Row]]
    unit: Unit = "seconds"
    across: bool = False
    named: bool = False
    told: bool = False
    needs: frozenset[Need] = field(default_factory=lambda: frozenset({"lab"}))

    @property
    def lab(self) -> str:
        return self.name.rpartition("-")[0].replace("-", "_") if "lab" in self.needs else ""

    def chart(self) -> Chart:
        return Chart(self.name, partial(frame, kind=self), partial(figure, kind=self), self.needs)


def row(side: str, told: Mapping[str, Any] | float | None, case: str = "", n: float | None = None, **more: Any) -> Row:
    """A row of the frame from a spread as labs give it (`engine.labs.base.spread`), or from one number."""
    spread = dict(told) if isinstance(told, Mapping) else {"middle": told}
    known = {name: spread.get(name) for name in ("middle", "low", "high", "repeats")}
    return {"case": case, "n": n, "side": side, **known, "source": "", **more}


def frame(given: Given, kind: Kind) -> pd.DataFrame:
    table = pd.DataFrame(list(kind.rows(given)), columns=list(COLUMNS))
    for name in COLUMNS:
        table[name] = table[name].fillna("").astype(str) if name in TEXTS else table[name].astype(float)
    table = table[table["middle"].notna()].reset_index(drop=True)
    firsts = table.groupby(["case", "n"], dropna=False, sort=False)["middle"].transform("first")
    firsts = firsts.mask(table["side"] == (table["side"].iloc[0] if len(table) else "")).replace(0, float("nan"))
    table["ratio"] = table["middle"] / firsts if kind.unit != "share" else float("nan")
    if "lab" in kind.needs:
        lab = given.lab or {}
        table.attrs = {name: lab.get(name) or "" for name in ("source", "machine", "taken")}
    else:
        table.attrs = {"source": ("recorded" if given.recorded else "measured") if kind.told else "computed"}
    return table


def figure(table: pd.DataFrame, words: Words, theme: Theme, kind: Kind) -> go.Figure:
    if table.empty:
        return empty(theme, words("labs.nothing"))
    made = go.Figure()
    sides = list(dict.fromkeys(table["side"]))
    draw = _line if kind.across else _room if table["of"].notna().any() else _bar
    for place, side in enumerate(sides):
        draw(made, table[table["side"] == side], words, theme, kind, place, sides)
    key = _key(kind)
    if kind.across:
        made.update_xaxes(title=words(f"{key}.across"), rangemode="tozero")
        made.update_yaxes(title=words(f"{key}.axis"), rangemode="tozero", **TICKS[kind.unit])
        height = 340
    else:
        cases = table.groupby(["case", "n"], dropna=False).ngroups
        made.update_xaxes(title=words(f"{key}.axis"), range=[0, _reach(table, words, kind)], **TICKS[kind.unit])
        made.update_yaxes(autorange="reversed", type="category", showgrid=False)
        made.update_layout(barmode="overlay" if draw is _room and len(sides) == 1 else "group", bargap=0.22)
        height = ROOM + cases * (BAR * len(sides) + CASE)
    made.update_layout(showlegend=len(sides) > 1, legend_traceorder="normal")
    return dressed(made, theme, _summary(table, words, kind), table.attrs["source"], height, origin(table, words))


def _bar(
    made: go.Figure, part: pd.DataFrame, words: Words, theme: Theme, kind: Kind, place: int, sides: list[str]
) -> None:
    colour = _colours(theme)[place % 4]
    rows = part.to_dict("records")
    group = {"y": [_case(one, words, kind) for one in rows], "orientation": "h", "offsetgroup": str(place)}
    made.add_bar(  # not seen: as long as bar and whisker, so that the value stands behind both
        x=part[["middle", "high"]].max(axis=1).tolist(), meta=f"value/{sides[place]}", hoverinfo="skip",
        text=[_value(one, words, kind) for one in rows], texttemplate=BEHIND, textposition="outside",
        cliponaxis=False, showlegend=False, marker_color=CLEAR, **group,
    )  # fmt: skip
    made.add_bar(
        x=part["middle"].tolist(), name=_legend(sides[place], part, words), meta=sides[place], **group,
        **_told(part, words, kind),
        marker={"color": colour, "pattern": {"shape": PATTERNS[place % 4], "fillmode": "overlay", "size": 7,
                                             "fgcolor": rgba(theme.paper, 0.5), "solidity": 0.2}},
        error_x=_spread(part, theme.ink),
    )  # fmt: skip


def _room(
    made: go.Figure, part: pd.DataFrame, words: Words, theme: Theme, kind: Kind, place: int, sides: list[str]
) -> None:
    """What is set aside as a hatched frame, what is in use of it full, in the frame."""
    colour, cases = _colours(theme)[place % 4], [_case(one, words, kind) for one in part.to_dict("records")]
    group = {"y": cases, "orientation": "h", "offsetgroup": str(place), "legendgroup": str(place)}
    made.add_bar(
        x=part["of"].tolist(), meta=f"of/{sides[place]}", showlegend=False, hoverinfo="skip", **group,
        text=[_value(one, words, kind) for one in part.to_dict("records")], texttemplate=BEHIND, textposition="outside",
        cliponaxis=False,
        marker={"color": CLEAR, "line": {"color": colour, "width": 1},
                "pattern": {"shape": "/", "fgcolor": colour, "size": 6, "solidity": 0.15}},
    )  # fmt: skip
    made.add_bar(
        x=part["middle"].tolist(), name=_side(sides[place], words), meta=sides[place], marker_color=colour,
        **group, **_told(part, words, kind),
    )  # fmt: skip


def _line(
    made: go.Figure, part: pd.DataFrame, words: Words, theme: Theme, kind: Kind, place: int, sides: list[str]
) -> None:
    """Sides with a size in their name share its colour, and are told apart by their dashes."""
    name, _, size = sides[place].partition("/")
    sizes = list(dict.fromkeys(side.partition("/")[2] for side in sides))
    names = list(dict.fromkeys(side.partition("/")[0] for side in sides))
    hue, dash = (sizes.index(size), names.index(name)) if size else (place, 0)
    open_ = ["-open" if source == "computed" else "" for source in part["source"]]
    made.add_scatter(
        x=part["n"].tolist(), y=part["middle"].tolist(), mode="lines+markers", cliponaxis=False,
        name=_side(sides[place], words), meta=sides[place], **_told(part, words, kind),
        line={"color": _colours(theme)[hue % 4], "dash": DASHES[dash % 2], "width": 2},
        marker={"size": 6 if len(part) > 12 else 9, "symbol": [SYMBOLS[hue % 4] + mark for mark in open_]},
        error_y=_spread(part, _colours(theme)[hue % 4]),
    )  # fmt: skip


def _reach(table: pd.DataFrame, words: Words, kind: Kind) -> float:
    """How far the axis goes so that the values behind the bars have room, on a phone too."""
    ends = table[["middle", "high", "of"]].max(axis=1)
    letters = [len(_value(one, words, kind)) for one in table.to_dict("records")]
    return max(end + ends.max() * n / LETTERS for end, n in zip(ends, letters, strict=True)) or 1.0


def _legend(side: str, part: pd.DataFrame, words: Words) -> str:
    """A side's name; where all its cases make the same calls, with their number."""
    calls = part["calls"].dropna().unique()
    return _side(side, words) + (words("labs.calls", n=f"{calls[0]:,.0f}") if len(calls) == 1 else "")


def _spread(part: pd.DataFrame, colour: str) -> dict[str, Any] | None:
    if part["high"].isna().all():
        return None
    over, under = part["high"] - part["middle"], part["middle"] - part["low"]
    return {"type": "data", "symmetric": False, "array": over.fillna(0).tolist(), "color": colour, "thickness": 1.5,
            "arrayminus": under.fillna(0).tolist(), "width": 4}  # fmt: skip


def _told(part: pd.DataFrame, words: Words, kind: Kind) -> dict[str, Any]:
    """What a bar or a point says when it is looked at, and its case and spread for whoever reads the data."""
    rows = part.to_dict("records")
    return {
        "hovertext": [_sentence(one, words, kind) for one in rows], "hovertemplate": "%{hovertext}<extra></extra>",
        "customdata": [[one["case"] or one["n"], *(None if pd.isna(one[at]) else one[at] for at in ("low", "high"))]
                       for one in rows],
    }  # fmt: skip


def _sentence(one: Mapping[Any, Any], words: Words, kind: Kind) -> str:
    case = _case(one, words, kind).replace("<br>", " ")
    said = words("labs.at", case=case, side=_side(one["side"], words), value=_value(one, words, kind))
    if one["of"] > 0:
        said += words("labs.used", value=quantity(one["middle"], kind.unit))
    if one["calls"] > 0:
        said += words("labs.calls", n=f"{one['calls']:,.0f}")
    if one["repeats"] > 1:
        low, high = (quantity(one[name], kind.unit) for name in ("low", "high"))
        said += words("labs.range", low=low, high=high, n=f"{one['repeats']:.0f}")
    return said + (words("labs.computed") if one["source"] == "computed" else "")


def _value(one: Mapping[Any, Any], words: Words, kind: Kind) -> str:
    said = quantity(one["middle"], kind.unit)
    if one["of"] > 0:
        return words("labs.of", all=quantity(one["of"], kind.unit), share=f"{one['middle'] / one['of']:.0%}")
    if one["ratio"] > 0:
        said += f" · × {one['ratio']:.{2 if one['ratio'] >= 0.095 else 3 if one['ratio'] >= 0.0095 else 5}f}"
    return said


def _case(one: Mapping[Any, Any], words: Words, kind: Kind) -> str:
    n = "" if pd.isna(one["n"]) else f"{one['n']:,.0f}"
    return words(f"{_key(kind)}.cases.{one['case']}", n=n) if kind.named else words(f"{_key(kind)}.case", n=n)


def _side(side: str, words: Words) -> str:
    name, _, size = side.partition("/")
    return words(f"labs.sides.{name}", n=size)


def _summary(table: pd.DataFrame, words: Words, kind: Kind) -> str:
    """The first and the last case in every way."""
    cases = table[["case", "n"]].drop_duplicates()
    ends = table.merge(cases.iloc[[0, -1]].drop_duplicates(), on=["case", "n"])
    told = words("labs.and").join(_sentence(one, words, kind) for one in ends.to_dict("records"))
    return words("labs.summary", title=words(f"{_key(kind)}.title"), told=told)


def _key(kind: Kind) -> str:
    return kind.name.replace("-", "_")


def _colours(theme: Theme) -> tuple[str, ...]:
    return theme.prefill, theme.decode, theme.special, theme.stop


def quantity(value: float, unit: Unit) -> str:
    """As the pages say it (`assets/scene/text.js`): decimal units, milliseconds under a second."""
    if unit == "seconds":
        return f"{1000 * value:,.1f} ms" if value < 1 else f"{value:,.{2 if value < 100 else 1}f} s"
    if unit == "share":
        return f"{value:.{0 if value >= 0.095 else 1 if value >= 0.0095 else 2}%}"
    if unit == "tokens" or value < 100:
        return f"{value:,.0f}" + (" B" if unit == "bytes" else "")
    name, size = ("GB", 1e9) if value >= 1e9 else ("MB", 1e6) if value >= 1e6 else ("KB", 1e3)
    return f"{value / size:,.{2 if value / size < 10 else 1}f} {name}"
