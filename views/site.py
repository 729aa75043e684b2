"""The pages there are. A page to come is one line here, one file in `pages/`, and its words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from views.words import say

_PAGES = Path(__file__).parent.parent / "pages"


@dataclass(frozen=True, slots=True)
class Entry:
    """`name` is the file in `pages/`, the address, and the area of its words (which hold a `title`).

    `group` is a key of `frame.json`: entries of one group share a menu in the bar; without, they stand in it.
    """

    name: str
    group: str = ""


ENTRIES = (
    Entry("exam_room"),
    Entry("tokenise", "stations"),
    Entry("prefill", "stations"),
    Entry("notes", "stations"),
    Entry("decode", "stations"),
    Entry("detokenise", "stations"),
    Entry("compare", "stations"),
    Entry("two_stages", "why"),
    Entry("waiting", "why"),
    Entry("memory", "why"),
    Entry("remedies", "remedies"),
    Entry("flash", "remedies"),
    Entry("fusion", "remedies"),
    Entry("groups", "remedies"),
    Entry("smaller_notes", "remedies"),
    Entry("forgetting", "remedies"),
    Entry("paged", "remedies"),
    Entry("prefix", "remedies"),
    Entry("chunked", "remedies"),
    Entry("batching", "remedies"),
    Entry("speculative", "remedies"),
    Entry("disaggregation", "remedies"),
)
"""In the order of the bar. The first is the default page and answers at `/`."""


def pages() -> dict[str, st.Page]:
    """Streamlit's pages by name, titled in the reader's language."""
    return {
        entry.name: st.Page(
            _PAGES / f"{entry.name}.py",
            title=say(f"{entry.name}.title"),
            url_path=entry.name,
            default=entry is ENTRIES[0],
        )
        for entry in ENTRIES
    }


def path(name: str) -> str:
    """The address of a page: the default page's own name opens Streamlit's "page not found", so it is `/`."""
    return "/" if name == ENTRIES[0].name else f"/{name}"
