"""Where a number comes from, beside the number: the same small badge on every page."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from views.words import say

Kind = Literal["measured", "computed", "simulated", "recorded"]

_LOOKS: dict[Kind, tuple[str, Literal["green", "blue", "orange", "gray"]]] = {
    "measured": (":material/timer:", "green"),
    "computed": (":material/function:", "blue"),
    "simulated": (":material/casino:", "orange"),
    "recorded": (":material/save:", "gray"),
}


def badge(kind: Kind, **values: str) -> None:
    """Say it of the number beside this. `recorded` wants `machine` and `created` (`engine.trace.file.Header`)."""
    icon, color = _LOOKS[kind]
    st.badge(say(f"frame.{kind}"), icon=icon, color=color, help=say(f"frame.{kind}_hint", **values))
