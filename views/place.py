"""Where the reader is: which run (and which one beside it), which moment, which layer and head, which language.

It stands in the address, so that a link shows the same. Changing page drops the address's query, so whoever changes
page writes it again (`Place.query`): every page tells of the same run at the same moment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import cast

import streamlit as st

from engine.words import Lang

_RUN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LANG = "lang"


@dataclass(frozen=True, slots=True)
class Place:
    """`beside`: the run that `run` is compared with. `at`: seconds of the run's own clock, None for its beginning.
    `layer` and `head` count from 0; a layer without a head is the mean of its heads. `lang` is None while nobody has
    chosen one."""

    run: str | None = None
    beside: str | None = None
    at: float | None = None
    layer: int | None = None
    head: int | None = None
    lang: Lang | None = None

    def query(self) -> dict[str, str]:
        """The address's query that leads here."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: str(value) for name, value in values.items() if value is not None}

    @property
    def moment(self) -> dict[str, object]:
        """What is left when the run and the language are taken away, as the scene takes it."""
        return {"at": self.at, "layer": self.layer, "head": self.head}


def parse(query: Mapping[str, str]) -> Place:
    """The place of an address. What cannot be read counts as not said: an address is a text from a stranger."""
    return Place(
        run=_run(query.get("run", "")),
        beside=_run(query.get("beside", "")),
        at=_seconds(query.get("at", "")),
        layer=_count(query.get("layer", "")),
        head=_count(query.get("head", "")),
        lang=cast("Lang", query["lang"]) if query.get("lang") in ("en", "zh") else None,
    )


def here() -> Place:
    """The place of this script run. The language once chosen holds until another is, the address naming one or not."""
    asked = parse(st.query_params)
    chosen = asked.lang or st.session_state.get(_LANG)
    st.session_state[_LANG] = chosen
    return replace(asked, lang=chosen)


def go(place: Place) -> None:
    """Be there from now on."""
    st.session_state[_LANG] = place.lang
    st.query_params.from_dict(place.query())


def malformed() -> bool:
    """Whether the address names a run in a way no run is ever named."""
    return any(name in st.query_params and not _run(st.query_params[name]) for name in ("run", "beside"))


def lang() -> Lang:
    """The language of this script run: chosen, else the browser's, else English."""
    chosen = here().lang
    return chosen or ("zh" if (st.context.locale or "").lower().startswith("zh") else "en")


def _run(text: str) -> str | None:
    return text if _RUN.fullmatch(text) else None


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text) else None
