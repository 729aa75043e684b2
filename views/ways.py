"""Ways from page to page that a component offers: a click comes with the address's query, the place goes along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from views import place, site


def go(clicked: Mapping[str, Any] | None) -> None:
    """Change to the page that was clicked: `{"name", "query"}`, both from the browser; nothing for one there is not."""
    pages = site.pages()
    if clicked and clicked["name"] in pages:
        st.switch_page(pages[clicked["name"]], query_params=place.parse(clicked["query"]).query())
