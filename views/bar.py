"""The slim bar on top: name, pages, language, light or dark.

It is one component and not Streamlit's own navigation because a click on it takes along where the reader is: the
moment is known to the browser only, and comes with the click.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from views import place, site
from views.words import say

_ASSETS = Path(__file__).parent.parent / "assets" / "frame"
_KEY = "bar"
_bar = st.components.v2.component(
    "bar", js=(_ASSETS / "bar.js").read_text("utf-8"), css=(_ASSETS / "bar.css").read_text("utf-8")
)


def show(pages: dict[str, st.Page], current: st.Page) -> None:
    """Draw the bar; when a page was clicked, go there with the reader's place."""
    result = _bar(
        key=_KEY,
        data={
            "lang": place.lang(),
            "pages": [
                {
                    "name": entry.name,
                    "path": site.path(entry.name),
                    "title": pages[entry.name].title,
                    "group": say(f"frame.{entry.group}") if entry.group else "",
                    "current": pages[entry.name] == current,
                }
                for entry in site.ENTRIES
            ],
            "words": {
                key: say(f"frame.{key}")
                for key in ("title", "motto", "pages", "language", "lang_en", "lang_zh", "to_dark", "to_light")
            },
        },
        on_page_change=lambda: None,
        on_lang_change=_change_language,
    )
    if result.page and result.page["name"] in pages:
        st.switch_page(pages[result.page["name"]], query_params=place.parse(result.page["query"]).query())


def _change_language() -> None:
    """Before the script runs: the same place in the other language, so that all of it is drawn in that one."""
    place.go(place.parse(st.session_state[_KEY].lang))
