"""The stations' pages as a test sees them: what stands in them, read as text, and the tokenizers' own word."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from playwright.sync_api import Locator, Page
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from engine import weights

LONG = 60_000
"""Milliseconds a whole exam may take on a slow machine. Only a failure waits so long."""

GEMMA = "gemma-3-270m"


@cache
def tokenizer(model: str = weights.DEFAULT) -> PreTrainedTokenizerBase:
    """The library's own, read beside the app."""
    read: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(weights.folder(model), local_files_only=True)
    return read


class Cut:
    """One tokenizer's chips on the page."""

    def __init__(self, page: Page, name: str = "first") -> None:
        self.page = page
        self.name = name
        self.sheet: Locator = page.locator(f"[data-cut={name}]")

    @property
    def data(self) -> dict[str, str]:
        data: dict[str, str] = self.sheet.evaluate("(sheet) => ({...sheet.dataset})")
        return data

    @property
    def tokens(self) -> list[dict[str, Any]]:
        tokens: list[dict[str, Any]] = json.loads(self.data.get("tokens", "[]"))
        return tokens

    @property
    def own(self) -> list[dict[str, Any]]:
        first, end = map(int, self.data["own"].split())
        return self.tokens[first:end]

    def until(self, text: str) -> None:
        """Wait until the bytes of the person's own tokens hold `text`, or there is nothing to hold."""
        wanted = text.encode().hex(" ").upper()
        held = "d.tokens && JSON.parse(d.tokens).map((t) => t.bytes).join(' ')"
        until(self.page, f"[data-cut={self.name}]", f"{held}.includes({json.dumps(wanted)})")


def until(page: Page, selector: str, condition: str) -> None:
    """Wait until a condition on an element's data (`d`) holds; the element may be inside a component."""
    page.wait_for_function(
        f"""() => {{
          const deep = (root) => root.querySelector({json.dumps(selector)})
            ?? [...root.querySelectorAll('*')].map((e) => e.shadowRoot && deep(e.shadowRoot)).find(Boolean)
          const d = deep(document)?.dataset
          return d && ({condition})
        }}""",
        timeout=LONG,
    )
