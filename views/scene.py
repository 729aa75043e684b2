"""The scene on a page. `assets/scene/mount.js` draws it and talks to the service; this hands it what it shows.

Once mounted it stays: the key is fixed, and whatever changes (language, run) reaches it as its full data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from engine.settings import MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS
from engine.weights.catalogue import MODELS
from views import lessons, place, site, ways
from views.words import area, say

_KEY = "scene"
STATIONS = ("tokenise", "prefill", "notes", "decode", "detokenise")
"""Pages that the desk has a way to."""
_scene = st.components.v2.component(
    "scene", js=(Path(__file__).parent.parent / "assets" / "frame" / "scene.js").read_text("utf-8")
)


def show(run: str) -> None:
    """Mount the scene, playing `run`; a run that a person starts in it becomes the page's run."""
    result = _scene(key=_KEY, data=payload(run), on_run_change=_follow, on_page_change=lambda: None)
    ways.go(result.page)


def payload(run: str) -> dict[str, Any]:
    """What the scene is told, in full each time."""
    here = place.here()
    return {
        "lang": place.lang(),
        "run": run,
        "moment": here.moment if here.run == run else {},
        "words": area("scene"),
        "errors": area("errors"),
        "missing": say("exam_room.scene_missing"),
        "examples": lessons.examples(place.lang()),
        "models": {
            model.name: {"title": model.title, "parameters": model.parameters, "bits": model.bits}
            for model in MODELS.values()
        },
        "stations": {name: site.path(name) for name in STATIONS if name in {entry.name for entry in site.ENTRIES}},
        "limits": {"characters": MAX_PROMPT_CHARACTERS, "new_tokens": MAX_NEW_TOKENS},
    }


def _follow() -> None:
    """A run was started: it is the page's from now on, from its beginning, in the language chosen."""
    run = place.parse({"run": st.session_state[_KEY].run}).run
    place.go(place.Place(run=run, beside=place.here().beside, lang=place.here().lang))
