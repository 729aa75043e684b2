"""The wait for the first word against the length of a paper's beginning, and what it should be by the formula.

Rows a page sends, one for each length: `tokens`, `middle`, `low`, `high` (seconds: the median of the readings, the
shortest, the longest) and `flops`, computed (`engine.plan.cost`), or null; one with `kind` `own` is the run on show.

The frame has them with `kind` (`point`, `own`, `curve` for places between the lengths), `fitted` and `off`, the share
by which `middle` lies above the curve. The curve: seconds = fixed + slope × FLOPs, fitted by least squares of relative
differences, so that a short length counts as much as a long one. `attrs["fit"]`: `fixed`, `slope`, `mean` and `worst`
of the shares, without a sign.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from views.figures.chart import Chart, Given, Words
from views.figures.stages import percent
from views.figures.style import Theme, dressed, empty

COLUMNS = ("kind", "tokens", "middle", "low", "high", "flops", "fitted", "off")
NUMBERS = [column for column in COLUMNS if column != "kind"]
LEAST = 3
"""Lengths from which on a curve is fitted."""
STEPS = 49


def frame(given: Given) -> pd.DataFrame:
    table = pd.DataFrame(list(given.rows)).reindex(columns=list(COLUMNS))
    table["kind"] = table["kind"].astype(object).where(table["kind"] == "own", "point")
    table[NUMBERS] = table[NUMBERS].apply(pd.to_numeric, errors="coerce").astype(float)
    table = table[table["tokens"].gt(0) & table["middle"].gt(0)].sort_values("tokens", kind="stable", ignore_index=True)
    points, about = table[table["kind"] == "point"], {}
    if len(points) >= LEAST and points["flops"].gt(0).all():
        fixed, slope = fitted(points["flops"].to_numpy(), points["middle"].to_numpy())
        table["fitted"] = (fixed + slope * table["flops"]).where(table["kind"] == "point")
        table["off"] = table["middle"] / table["fitted"] - 1
        table = pd.concat([table, _curve(points, fixed, slope)], ignore_index=True)
        off = table["off"].abs()
        about = {"fixed": fixed, "slope": slope, "mean": float(off.mean()), "worst": float(off.max())}
    table.attrs = {"source": "measured" if len(points) else "", "fit": about or None}
    return table


def fitted(flops: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """(fixed, slope) of the least squares of relative differences. A wait with nothing to read is not below nothing."""
    rows = np.column_stack([np.ones_like(flops), flops]) / seconds[:, None]
    fixed, slope = np.linalg.lstsq(rows / [1, flops.max()], np.ones_like(flops), rcond=None)[0] / [1, flops.max()]
    if fixed < 0:
        share = flops / seconds
        return 0.0, float(share.sum() / (share @ share))
    return float(fixed), float(slope)


def _curve(points: pd.DataFrame, fixed: float, slope: float) -> pd.DataFrame:
    """Between two lengths FLOPs are not asked for: they follow the parabola through all of them, which they are."""
    n, flops = points["tokens"].to_numpy(), points["flops"].to_numpy()
    places = np.geomspace(n.min(), n.max(), STEPS)
    shape = np.polynomial.Polynomial.fit(n, flops, 2)
    return pd.DataFrame(
        {"kind": "curve", "tokens": places, "fitted": fixed + slope * shape(places)}, columns=list(COLUMNS)
    )


def figure(table: pd.DataFrame, words: Words, theme: Theme) -> go.Figure:
    """Both axes by doublings: a wait in proportion to the length is a straight line."""
    points, own, curve = (table[table["kind"] == kind] for kind in ("point", "own", "curve"))
    if points.empty:
        return empty(theme, words("lengths.nothing"))
    made = go.Figure()
    if not curve.empty:
        made.add_scatter(
            x=curve["tokens"].tolist(), y=(1000 * curve["fitted"]).tolist(), mode="lines", meta="curve",
            hoverinfo="skip", name=words("lengths.curve"), line={"color": theme.decode, "dash": "dash", "width": 2},
        )  # fmt: skip
    _marks(made, "point", points, words, "circle", theme.prefill)
    _marks(made, "own", own, words, "square-open", theme.ink)
    made.update_xaxes(type="log", title=words("lengths.across"), tickvals=points["tokens"].tolist(), tickformat=",d")
    made.update_yaxes(type="log", dtick="D2", title=words("lengths.axis"))
    first, last = points.iloc[0], points.iloc[-1]
    summary = words("lengths.summary", least=f"{first['tokens']:,.0f}", most=f"{last['tokens']:,.0f}",
                    short=_ms(first["middle"]), long=_ms(last["middle"]))  # fmt: skip
    return dressed(made, theme, summary, table.attrs["source"], 320)


def _marks(made: go.Figure, kind: str, part: pd.DataFrame, words: Words, symbol: str, colour: str) -> None:
    """Each length with its readings from the shortest to the longest, and its time written beside it."""
    if part.empty:
        return
    above, below = part["high"] - part["middle"], part["middle"] - part["low"]
    made.add_scatter(
        x=part["tokens"].tolist(), y=(1000 * part["middle"]).tolist(), name=words(f"lengths.{kind}"), meta=kind,
        mode="markers+text", cliponaxis=False, textposition="top left", textfont={"color": colour},
        text=[_ms(value) for value in part["middle"]] if kind == "point" else None,
        marker={"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2}},
        error_y={"type": "data", "symmetric": False, "array": (1000 * above).fillna(0).tolist(),
                 "arrayminus": (1000 * below).fillna(0).tolist()},
        hovertext=[_said(row, words) for row in part.itertuples()], hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip


def _said(row: object, words: Words) -> str:
    tokens, middle, off = (float(getattr(row, name)) for name in ("tokens", "middle", "off"))
    said = words("lengths.at", tokens=f"{tokens:,.0f}", time=_ms(middle))
    return said if np.isnan(off) else said + words("lengths.off", share=f"{'−' if off < 0 else '+'}{percent(abs(off))}")


def _ms(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.{0 if seconds >= 0.1 else 1}f} ms"


CHARTS = (Chart("lengths", frame, figure),)
