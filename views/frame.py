"""Around every page: the language, the place, the bar, and a sentence where a page fails. Given to `st.App`."""

from __future__ import annotations

import logging
from pathlib import Path

import streamlit as st

from views import bar, site
from views.words import say

_ASSETS = Path(__file__).parent.parent / "assets" / "frame"

pages = site.pages()
page = st.navigation(list(pages.values()), position="hidden")
st.set_page_config(page_title=f"{page.title} · {say('frame.title')}", layout="wide", page_icon=_ASSETS / "icon.svg")
st.html(_ASSETS / "frame.css")
bar.show(pages, page)
try:
    page.run()
except Exception:  # a person sees a sentence; whoever runs the program, the traceback
    logging.getLogger(__name__).exception("page %s", page.url_path)
    st.error(say("frame.page_failed"))
