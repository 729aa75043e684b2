"""A stranger's text where Streamlit expects Markdown."""

from __future__ import annotations

import re


def plain(text: str) -> str:
    """The text with every sign of Markdown, HTML, LaTeX and Streamlit's own directives taken literally."""
    return re.sub(r"([\\`*_{}\[\]()#+\-.!<>|$:~&])", r"\\\1", " ".join(text.split()))
