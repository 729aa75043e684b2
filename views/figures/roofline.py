"""The roofline (Williams, Waterman, Patterson 2009): arithmetic per byte to the right, arithmetic per second upwards,
both logarithmic. Below the roof is what this machine can do; a point is a pass that was really timed.

The frame has a row for each point. `kind`: `prefill` and `decode` of the run on show, `batch` for decode of `batch`
copies together, `guess` for prefill of another length at best (computed), `ridge` where the two roofs meet.
`intensity`: FLOP per byte; `rate`: FLOP/s; `speed`: bytes/s; `seconds`: measured; `tokens`: read in the pass; `passes`:
so many, or steps of which this is the middle one; `calls`: operations handed to torch for the pass, where they were
counted; `busy`: cores that other programs kept meanwhile. `attrs` has the peaks.
"""

from __future__ import annotations

from math import log10
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from views.figures.chart import Chart, Given, Words, origin
from views.figures.stages import Peaks, belonging, joined, peaks, percent, si, stages
from views.figures.style import Theme, dressed, empty, rgba

COLUMNS = ("kind", "batch", "tokens", "passes", "intensity", "rate", "speed", "seconds", "calls", "busy")
BUSY = 0.1
"""Cores kept by other programs from which on it is said."""
BOUND = 0.5
"""Share of a roof from which on it is what a pass waits for."""


def frame(given: Given) -> pd.DataFrame:
    found, rows = belonging(given, "peak/"), []
    top = peaks(found.results)
    if given.trace and given.costs:
        for kind, stage in stages(given.trace, given.costs).items():
            timed = found.results.get(f"parts/{given.costs['prompt']}/{kind}")
            row = _row(kind, 1, stage.tokens, stage.passes, stage.flops, stage.moved, stage.seconds)
            rows.append({**row, "calls": timed["calls"] if timed else None})
        rows += _batches(given)
        if top and given.tokens:
            one = min(given.costs["curve"], key=lambda one: abs(one["tokens"] - given.tokens))
            best = one["total"] / top.roof(one["intensity"])
            rows.append(_row("guess", 1, one["tokens"], 1, one["total"], one["moved"], best))
    if top:
        rows.append(
            {"kind": "ridge", "intensity": top.compute / top.bandwidth, "rate": top.compute, "speed": top.bandwidth}
        )
    table = pd.DataFrame(rows, columns=COLUMNS)
    source = ("recorded" if given.recorded else found.source or "measured") if rows else ""
    table.attrs = {
        "source": source, "machine": dict(found.machine), "taken": found.taken,
        "peaks": {"compute": top.compute, "bandwidth": top.bandwidth} if top else None,
    }  # fmt: skip
    return table


def _batches(given: Given) -> list[dict[str, Any]]:
    """Decode in batches, as far as it was measured for a prompt of this length."""
    assert given.costs is not None
    kept = belonging(given, f"batch/{given.costs['prompt']}/").results
    rows = []
    for batch, cost in given.costs["batches"].items():
        if one := kept.get(f"batch/{given.costs['prompt']}/{batch}"):
            row = _row("batch", int(batch), 1, 1, cost["total"], cost["moved"], one["best"])
            rows.append({**row, "busy": one.get("busy")})
    return rows


def _row(kind: str, batch: int, tokens: int, passes: int, flops: float, moved: float, seconds: float) -> dict[str, Any]:
    return {
        "kind": kind, "batch": batch, "tokens": tokens, "passes": passes, "intensity": flops / moved,
        "rate": flops / seconds, "speed": moved / seconds, "seconds": seconds,
    }  # fmt: skip


def figure(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    points = table[table["kind"] != "ridge"]
    if points.empty:
        return empty(theme, words("roofline.nothing"))
    made = go.Figure()
    top = Peaks(**table.attrs["peaks"]) if table.attrs["peaks"] else None
    if top:
        _roofs(made, table, top, words, theme)
    looks = {
        "batch": ("circle-open", 9, theme.decode, "bottom right"),
        "decode": ("square", 13, theme.decode, "middle left"),
        "prefill": ("circle", 14, theme.prefill, "top left"),
        "guess": ("diamond-open", 12, theme.prefill, "bottom center"),
    }  # fmt: skip
    for kind, (symbol, size, colour, place) in looks.items():
        part = table[table["kind"] == kind]
        if not part.empty:
            made.add_scatter(
                x=part["intensity"].tolist(), y=part["rate"].tolist(), name=words(f"roofline.{kind}_name"), meta=kind,
                mode="lines+markers+text" if kind == "batch" else "markers+text", line={"dash": "dot", "width": 1},
                marker={"symbol": symbol, "size": size, "color": colour, "line": {"width": 2}}, textposition=place,
                text=[_label(row, words) for row in part.itertuples()], textfont={"color": colour}, cliponaxis=False,
                customdata=part["batch"].tolist(),
                hovertext=[_wrapped(sentence(row, top, words)) for row in part.itertuples()],
                hovertemplate="%{hovertext}<extra></extra>",
            )  # fmt: skip
    reach = _reach(table)
    made.update_xaxes(type="log", dtick=1, title=words("roofline.axis_x"), range=[log10(end) for end in reach])
    made.update_yaxes(type="log", dtick=1, title=words("roofline.axis_y"), exponentformat="SI")
    said = [sentence(row, top, words) for row in points[points["kind"].isin(["prefill", "decode"])].itertuples()]
    made.update_layout(showlegend=False)
    return dressed(made, theme, joined(said), table.attrs["source"], 400, origin(table, words))


def _roofs(made: go.Figure, table: pd.DataFrame, top: Peaks, words: Words, theme: Theme) -> None:
    """The two roofs, their names, and a faint line down from where they meet."""
    ridge = top.compute / top.bandwidth
    low, high = _reach(table)
    x = [low, ridge, high]
    made.add_scatter(
        x=x, y=[top.roof(one) for one in x], mode="lines", line={"color": theme.ink, "width": 3}, hoverinfo="skip",
        meta="roof", name=words("roofline.roof_name"), fill="tozeroy", fillcolor=rgba(theme.mark, 0.08),
    )  # fmt: skip
    lowest = float(table["rate"].min()) / 2
    made.add_scatter(
        x=[ridge, ridge], y=[lowest, top.compute], mode="lines", hoverinfo="skip", meta="ridge", name="",
        line={"color": theme.pencil, "dash": "dot", "width": 1},
    )  # fmt: skip
    names = {
        "bandwidth": ((low * ridge) ** 0.5, top.roof((low * ridge) ** 0.5), top.bandwidth, "B/s", "bottom right"),
        "compute": (high, top.compute, top.compute, "FLOP/s", "top left"),
    }
    made.add_scatter(
        x=[one[0] for one in names.values()], y=[one[1] for one in names.values()], mode="text", hoverinfo="skip",
        text=[words(f"roofline.{name}", rate=si(rate, unit)) for name, (_, _, rate, unit, _) in names.items()],
        textposition=[one[4] for one in names.values()], textfont={"color": theme.ink}, meta="roofs", name="",
    )  # fmt: skip


def _reach(table: pd.DataFrame) -> tuple[float, float]:
    """From left to right, with room for what is written beside the points."""
    return float(table["intensity"].min() / 3), float(table["intensity"].max() * 3)


def _label(row: Any, words: Words) -> str:
    if row.kind == "batch":
        return f"× {row.batch:.0f}"
    return words(f"roofline.{row.kind}_label", n=f"{row.tokens:,.0f}")


def sentence(row: Any, top: Peaks | None, words: Words) -> str:
    """What a point says: its place, which roof holds it, and what else it waits for."""
    if row.kind == "guess":
        return words("roofline.guess", n=f"{row.tokens:,.0f}", intensity=f"{row.intensity:.3g}",
                     rate=si(row.rate, "FLOP/s"), seconds=f"{1000 * row.seconds:,.1f}")  # fmt: skip
    n = {"prefill": row.tokens, "decode": row.passes, "batch": row.batch}[row.kind]
    name = words(f"roofline.{row.kind}", n=f"{n:,.0f}")
    said = [words("roofline.point", name=name, intensity=f"{row.intensity:.3g}", rate=si(row.rate, "FLOP/s"),
                  speed=si(row.speed, "B/s"))]  # fmt: skip
    if top:
        under = "bandwidth" if top.bandwidth * row.intensity < top.compute else "compute"
        share = row.rate / top.roof(row.intensity)
        kind = "over" if share > 1.03 else f"{'held' if share >= BOUND else 'below'}_{under}"
        compute, bandwidth = percent(row.rate / top.compute), percent(row.speed / top.bandwidth)
        said.append(words(f"roofline.{kind}", share=percent(share), compute=compute, bandwidth=bandwidth))
        if share < BOUND:
            said.append(_evidence(row, top, words))
    if row.kind == "batch":
        said.append(
            words("roofline.together", rate=f"{row.batch / row.seconds:,.0f}", one=f"{1000 * row.seconds:,.0f}")
        )
    return joined(said)


def _evidence(row: Any, top: Peaks, words: Words) -> str:
    """What is known of the time that no roof explains: how many operations it is spread over."""
    if row.kind == "batch":
        return words("roofline.busy", cores=f"{row.busy:.1f}") if pd.notna(row.busy) and row.busy > BUSY else ""
    if pd.isna(row.calls):
        return words("roofline.ask")
    explained = row.seconds * row.rate / top.roof(row.intensity)
    rest = row.seconds - explained
    return words(
        "roofline.launches", explained=f"{1000 * explained:,.1f}", seconds=f"{1000 * row.seconds:,.1f}",
        rest=f"{1000 * rest:,.1f}", calls=f"{row.calls:,.0f}", each=f"{1e6 * rest / row.calls:,.0f}",
    )  # fmt: skip


def _wrapped(text: str, width: int = 46) -> str:
    """Broken into lines for the pointer's label; Chinese characters are two wide and may be parted anywhere."""
    lines, now = [""], 0
    for piece in _pieces(text):
        size = sum(2 if ord(character) > 0x2E7F else 1 for character in piece)
        if now + size > width and lines[-1]:
            lines.append("")
            now, piece = 0, piece.lstrip()
        lines[-1] += piece
        now += size
    return "<br>".join(lines)


def _pieces(text: str) -> list[str]:
    found: list[str] = []
    for character in text:
        if not found or character == " " or ord(character) > 0x2E7F or (found[-1] and ord(found[-1][-1]) > 0x2E7F):
            closing = found and character in "，。、；：）”"
            if closing:
                found[-1] += character
            else:
                found.append(character)
        else:
            found[-1] += character
    return found


CHARTS = (Chart("roofline", frame, figure, frozenset({"run"}), frozenset({"measures"})),)
