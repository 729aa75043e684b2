"""A station's page: the analogy, the thing itself, something to try, one line to remember, where the analogy stops.

`assets/stations/NAME/NAME.js` draws it, in the frame of `assets/stations/shared/station.js` and in the scene's own
looks; it is mounted as the scene is (`views.scene`). All stations tell of the run in the address, or of a recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from views import desk, lessons, place, ways
from views.words import area, say

_station = st.components.v2.component(
    "station", js=(Path(__file__).parent.parent / "assets" / "frame" / "scene.js").read_text("utf-8")
)


def show(name: str, more: Mapping[str, Any] | None = None, both: bool = False) -> None:
    """Mount the station; `more` is what only this one is told, `both` that it tells of the run beside, too. A run that
    is chosen in it becomes the page's run."""
    here = place.here()
    run = here.run if here.run and desk.knows(here.run) else None
    beside = here.beside if both and here.beside and desk.knows(here.beside) else None
    if place.malformed() or run != here.run or (both and beside != here.beside):
        st.warning(say("exam_room.run_unknown"))
    run = run or lessons.recording(place.lang())

    def follow() -> None:
        """Before the script runs: another run, from its beginning, in the language chosen."""
        chosen = place.parse({"run": st.session_state[name].run}).run
        place.go(place.Place(run=chosen, beside=place.here().beside, lang=place.here().lang))

    def compare() -> None:
        """The same for what is chosen in both: `{run, beside}`."""
        chosen = place.parse(st.session_state[name].pair)
        place.go(place.Place(run=chosen.run, beside=chosen.beside, lang=place.here().lang))

    result = _station(
        key=name,
        data={**payload(name, run, beside), **(more or {})},
        on_run_change=follow,
        on_pair_change=compare,
        on_page_change=lambda: None,
    )
    ways.go(result.page)


def payload(name: str, run: str, beside: str | None = None) -> dict[str, Any]:
    """What a station is told, in full each time."""
    here = place.here()
    return {
        "module": f"/stations/{name}/{name}.js",
        "lang": place.lang(),
        "run": run,
        "beside": beside,
        "moment": here.moment if here.run == run else {},
        "words": {**area("stations"), **area(name)},
        "scene": area("scene"),
        "errors": area("errors"),
        "missing": say("stations.missing"),
    }
