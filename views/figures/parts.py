"""Where a stage's work is and where its seconds go, by operation: the work computed, the seconds measured on a copy.

The frame: `stage` (prefill, decode), `kind` (`flops` computed, `seconds` measured), `part` (an operation, or `rest` for
the time between them), `value` in FLOP or seconds, `share` of all of its kind. `attrs`: of each stage that was timed
the operations handed to torch (`calls`) and its seconds without (`plain`) and with clocks (`timed`).
"""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from views.figures.chart import Chart, Given, Words, origin
from views.figures.stages import PARTS, belonging, joined, percent, si, stages
from views.figures.style import Theme, dressed, empty

COLUMNS = ("stage", "kind", "part", "value", "share")
ALL = (*PARTS, "rest")
PATTERNS = {"projections": "", "attention": "/", "mlp": "", "norms": "x", "logits": ".", "rest": "\\"}
"""So that parts are told apart without colours, too."""


def frame(given: Given) -> pd.DataFrame:
    found, rows, calls = belonging(given, "parts/"), [], {}
    own = stages(given.trace, given.costs) if given.trace and given.costs else {}
    for name, stage in own.items():
        rows += [(name, "flops", part, float(stage.parts[part])) for part in PARTS]
        if timed := found.results.get(f"parts/{given.costs['prompt']}/{name}" if given.costs else ""):
            rows += [(name, "seconds", part, timed["parts"][part]) for part in ALL]
            calls[name] = {"calls": timed["calls"], "plain": timed["seconds"], "timed": timed["timed"]}
    table = pd.DataFrame(rows, columns=["stage", "kind", "part", "value"])
    table["share"] = table["value"] / table.groupby(["stage", "kind"])["value"].transform("sum")
    table = table.reindex(columns=COLUMNS)
    source = found.source if calls else "computed" if rows else ""
    table.attrs = {"source": source, "machine": dict(found.machine), "taken": found.taken, "timed": calls}
    return table


def figure(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    """A bar for each stage and kind, all of one length, parted by operation."""
    if table.empty:
        return empty(theme, words("parts.nothing"))
    colours = {
        "projections": theme.prefill, "attention": theme.mark, "mlp": theme.decode, "norms": theme.special,
        "logits": theme.graphite, "rest": theme.ghost,
    }  # fmt: skip
    sums = table.groupby(["stage", "kind"], sort=False)["value"].sum()
    names = {(stage, kind): words(f"parts.{kind}_of", stage=words(f"parts.{stage}"), all=_told(total, kind))
             for (stage, kind), total in sums.items()}  # fmt: skip
    made = go.Figure()
    for part in ALL:
        own = table[table["part"] == part]
        if own.empty:
            continue
        made.add_bar(
            y=[names[row.stage, row.kind] for row in own.itertuples()], x=(100 * own["share"]).tolist(),
            orientation="h", name=words(f"parts.{part}"), meta=part,
            customdata=own[["stage", "kind", "value"]].to_numpy().tolist(),
            marker={"color": colours[part], "line": {"color": theme.paper, "width": 1},
                    "pattern": {"shape": PATTERNS[part], "fillmode": "overlay", "fgcolor": theme.paper,
                                "fgopacity": 0.35, "size": 6}},
            text=[percent(share) for share in own["share"]], textposition="inside", insidetextanchor="middle",
            textfont={"color": theme.ink if part in ("attention", "rest") and theme.name == "light" else theme.paper},
            hovertext=[words("parts.at", stage=words(f"parts.{row.stage}"), part=words(f"parts.{part}"),
                             value=_told(row.value, row.kind), share=percent(row.share)) for row in own.itertuples()],
            hovertemplate="%{hovertext}<extra></extra>",
        )  # fmt: skip
    made.update_layout(barmode="stack", bargap=0.35, legend={"traceorder": "normal"})
    made.update_xaxes(range=[0, 100], ticksuffix=" %", showgrid=False)
    made.update_yaxes(autorange="reversed", ticks="", title=None)
    return dressed(
        made, theme, _summary(table, words), table.attrs["source"], 130 + 46 * len(names), origin(table, words)
    )


def _told(value: float, kind: str) -> str:
    return si(value, "FLOP") if kind == "flops" else f"{1000 * value:,.1f} ms"


def _summary(table: pd.DataFrame, words: Words) -> str:
    """The largest part of each bar."""
    largest = table.loc[table.groupby(["stage", "kind"], sort=False)["share"].idxmax()]
    return joined([
        words("parts.largest", what=words(f"parts.{row.kind}_all", stage=words(f"parts.{row.stage}")),
              part=words(f"parts.{row.part}"), share=percent(row.share))
        for row in largest.itertuples()
    ])  # fmt: skip


CHARTS = (Chart("parts", frame, figure, frozenset({"run"}), frozenset({"measures"})),)
