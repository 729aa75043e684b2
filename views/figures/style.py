"""How every chart looks: the scene's two palettes, its fonts, room for a phone. No meaning is told by colour alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

SANS = '"Exam Sans", "Noto Sans", "Helvetica Neue", Arial, "PingFang SC", "Noto Sans CJK SC", sans-serif'
CLEAR = "rgba(0,0,0,0)"
SIZE = 13
"""Of letters, in pixels: readable on a projector, and two charts still fit side by side."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by what they mean, as in `assets/scene/scene.css`: orange is prefill, blue is decode."""

    name: str
    paper: str
    pad: str
    ink: str
    pencil: str
    rule: str
    prefill: str
    decode: str
    mark: str
    special: str
    stop: str
    graphite: str
    ghost: str


THEMES = {
    "light": Theme(
        "light", paper="#fffdf7", pad="#fbf5e3", ink="#29241e", pencil="#645a4d", rule="#e9dfca", prefill="#9a4900",
        decode="#174a9c", mark="#ffd23f", special="#0b6b66", stop="#b3261e", graphite="#3d3830", ghost="#cdbfa6",
    ),
    "dark": Theme(
        "dark", paper="#231f19", pad="#262118", ink="#f2e9d9", pencil="#c0b4a0", rule="#332d23", prefill="#f3a650",
        decode="#86b6ff", mark="#e5b521", special="#5fd0c2", stop="#ff8f78", graphite="#d9cfbd", ghost="#4d4434",
    ),
}  # fmt: skip


def rgba(colour: str, alpha: float) -> str:
    """`#rrggbb` let through by `alpha`."""
    return f"rgba({','.join(str(part) for part in bytes.fromhex(colour[1:]))},{alpha})"


def template(theme: Theme) -> go.layout.Template:
    axis: dict[str, Any] = {
        "gridcolor": theme.rule, "linecolor": theme.ghost, "zerolinecolor": theme.ghost, "tickcolor": theme.ghost,
        "tickfont": {"color": theme.pencil}, "automargin": True,
        "title": {"font": {"color": theme.ink, "size": SIZE}, "standoff": 6},
    }  # fmt: skip
    return go.layout.Template(
        layout={
            "font": {"family": SANS, "size": SIZE, "color": theme.ink},
            "paper_bgcolor": CLEAR,
            "plot_bgcolor": CLEAR,
            "xaxis": axis,
            "yaxis": axis,
            "margin": {"l": 8, "r": 10, "t": 30, "b": 8},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "itemclick": False,
                       "itemdoubleclick": False},
            "hoverlabel": {"bgcolor": theme.ink, "bordercolor": theme.ink, "align": "left",
                           "font": {"family": SANS, "size": SIZE, "color": theme.paper}},
            "modebar": {"bgcolor": CLEAR, "color": theme.pencil, "activecolor": theme.decode, "orientation": "h"},
            "dragmode": False,
            "hovermode": "closest",
            "uniformtext": {"minsize": 9, "mode": "hide"},
        }
    )  # fmt: skip


def dressed(
    figure: go.Figure, theme: Theme, summary: str, source: str, height: int = 320, origin: str = ""
) -> go.Figure:
    """The figure in the house's looks. `summary` says in a sentence what it shows, for those who do not see it;
    `source` is where its numbers come from: measured, computed, recorded, simulated, or empty for no numbers;
    `origin` names the machine and the day."""
    meta = {"summary": summary, "source": source, "origin": origin}
    figure.update_layout(template=template(theme), height=height, meta=meta)
    return figure


def empty(theme: Theme, summary: str) -> go.Figure:
    """A chart without a number: only its sentence, which says what is missing."""
    return dressed(go.Figure(), theme, summary, "")
