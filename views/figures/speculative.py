"""Speculative decoding: what a word takes with guesses and without, what a checking pass costs, and when guessing pays.

`speculative-words` (`whiskers`): `group` is “PAPER/GUESSES”, with a model's name behind it where one made them;
`side` is `plain` or `drafted`, `value` seconds a word, `label` how many times as long as without.
`speculative-passes` (`whiskers`): `group` is the query length, `value` seconds, `label` times one token's pass.
`speculative-pays`: a row for each `kind`: `answer`, measured; `curve`, what a pass of `1 + draft` tokens costs,
shared by the words it then gives; `needed`, where that is as long as without guesses. `paper`, `by`: of an answer;
`draft`: guesses a pass at most; `right`: of them, right per pass that guessed; `times`: how many times as long a word
takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from views.figures import whiskers
from views.figures.chart import Chart, Given, Words, from_lab, origin
from views.figures.style import Theme, dressed, empty

SIDES = {"plain": "prefill", "drafted": "decode"}
COLUMNS = ["kind", "paper", "by", "draft", "right", "times"]
STEPS = 33
DASHES = ("solid", "dash", "dot")


def _figures(given: Given) -> Mapping[str, Any]:
    return (given.lab or {}).get("figures") or {}


def words_frame(given: Given) -> pd.DataFrame:
    rows = []
    for one in _figures(given).get("answers") or ():
        name = "/".join(filter(None, (one["paper"], str(one["draft"]), one["by"])))
        rows.append(whiskers.bar(name, "plain", one["plain"]))
        ratio = f"× {one['ratio']:.2f}" if one["ratio"] else ""
        rows.append(whiskers.bar(name, "drafted", one["drafted"], ratio))
    return from_lab(whiskers.frame(rows), given)


def a_word(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    known = table[table["value"].notna()]
    if known.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    groups = {group: _answer(group, words) for group in known["group"]}
    sides = {side: words(f"speculative.{side}") for side in SIDES}
    whiskers.draw(
        made, known, words, theme, sides=sides, colours=SIDES, say=whiskers.seconds, unit=1000.0, groups=groups
    )
    made.update_layout(barmode="group", bargap=0.22)
    made.update_yaxes(title=words("speculative.word_axis"), rangemode="tozero")
    times = known[known["label"] != ""]["label"]
    said = words("speculative.words_summary", answers=len(groups), told=", ".join(times))
    return dressed(made, theme, said, table.attrs["source"], 280, origin(table, words))


def _answer(group: str, words: Words) -> str:
    paper, draft, *by = group.split("/")
    return f"{words(f'speculative.{paper}')}<br>{words('speculative.most', k=draft)}{f'<br>{by[0]}' if by else ''}"


def passes_frame(given: Given) -> pd.DataFrame:
    rows = [
        whiskers.bar(str(one["rows"]), "pass", one, f"× {one['times']:.2f}")
        for one in (_figures(given).get("passes") or {}).get("rows", ())
    ]
    return from_lab(whiskers.frame(rows), given)


def passes(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    whiskers.draw(
        made, table, words, theme, sides={"pass": words("speculative.pass")}, colours={"pass": "decode"},
        say=whiskers.seconds, unit=1000.0,
    )  # fmt: skip
    made.update_xaxes(title=words("speculative.rows"), type="category")
    made.update_yaxes(title=words("speculative.pass_axis"), rangemode="tozero")
    first, last = table.iloc[0], table.iloc[-1]
    said = words(
        "speculative.passes_summary", one=whiskers.seconds(first["value"]), rows=last["group"],
        all=whiskers.seconds(last["value"]), times=last["label"],
    )  # fmt: skip
    return dressed(made, theme, said, table.attrs["source"], 280, origin(table, words))


def pays_frame(given: Given) -> pd.DataFrame:
    told, rows = _figures(given), []
    for draft, needed in ((told.get("passes") or {}).get("needed") or {}).items():
        most = int(draft)
        for right in np.linspace(0, most, STEPS):
            rows.append(("curve", "", "", most, right, (1 + needed) / (1 + right)))
        rows.append(("needed", "", "", most, max(0.0, needed), 1.0))
    for one in told.get("answers") or ():
        if one["each"] is not None and one["ratio"] is not None:
            rows.append(("answer", one["paper"], one["by"], one["draft"], one["each"], one["ratio"]))
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"draft": float, "right": float, "times": float})
    return from_lab(table, given)


def pays(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    """Below one it pays."""
    if table.empty:
        return empty(theme, words("gantt.nothing"))
    made = go.Figure()
    curves = table[table["kind"] == "curve"]
    for dash, (draft, curve) in zip(DASHES, curves.groupby("draft"), strict=False):
        made.add_scatter(
            x=curve["right"].tolist(), y=curve["times"].tolist(), mode="lines", meta=f"curve-{int(draft)}",
            name=words("speculative.curve", k=int(draft)), hoverinfo="skip", line={"color": theme.pencil, "dash": dash},
        )  # fmt: skip
    needed = table[table["kind"] == "needed"]
    made.add_scatter(
        x=needed["right"].tolist(), y=needed["times"].tolist(), mode="markers", meta="needed",
        name=words("speculative.needed"), marker={"symbol": "x", "size": 10, "color": theme.stop},
        hovertext=[
            words("speculative.needed_at", k=int(row.draft), right=f"{row.right:.2f}") for row in needed.itertuples()
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    answers = table[table["kind"] == "answer"]
    made.add_scatter(
        x=answers["right"].tolist(), y=answers["times"].tolist(), mode="markers+text", meta="answer",
        name=words("speculative.answers"), cliponaxis=False,
        marker={"size": 12, "color": theme.decode, "line": {"width": 2, "color": theme.paper},
                "symbol": ["circle" if draft <= 4 else "diamond" for draft in answers["draft"]]},
        text=[words(f"speculative.{paper}") for paper in answers["paper"]], textposition="top center",
        customdata=answers[["paper", "draft", "by"]].to_numpy().tolist(),
        hovertext=[
            words("speculative.answer_at", paper=words(f"speculative.{row.paper}"), k=int(row.draft),
                  right=f"{row.right:.2f}", times=f"{row.times:.2f}")
            for row in answers.itertuples()
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    most = 1.15 * max(1.1, float(answers["times"].max()) if len(answers) else 1.1)
    made.add_hrect(0, 1, fillcolor=theme.special, opacity=0.1, line_width=0, layer="below",
                   annotation_text=words("speculative.pays"), annotation_position="bottom left")  # fmt: skip
    made.add_hline(1, line={"color": theme.ink, "width": 1.5})
    made.update_xaxes(title=words("speculative.right_axis"), rangemode="tozero")
    made.update_yaxes(title=words("speculative.times_axis"), range=[0, most])
    wins = answers[answers["times"] < 0.95]
    said = words("speculative.pays_summary", wins=len(wins), answers=len(answers))
    return dressed(made, theme, said, table.attrs["source"], 300, origin(table, words))


CHARTS = (
    Chart("speculative-words", words_frame, a_word, frozenset({"lab"})),
    Chart("speculative-passes", passes_frame, passes, frozenset({"lab"})),
    Chart("speculative-pays", pays_frame, pays, frozenset({"lab"})),
)
