"""The stations' pages as a test sees them: what stands in them, read as text, the runs they are opened with, and the
tokenizers' own word."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import cache
from typing import Any

from playwright.sync_api import Locator, Page
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from engine import weights
from tests.e2e.conftest import App

LONG = 60_000
"""Milliseconds a whole exam may take on a slow machine. Only a failure waits so long."""

PATIENT = 240_000
"""Milliseconds that measuring a few pieces, or two long exams, may take on a busy machine."""

SHARED = 4
"""So many tests may look at one run: it is let go by the engine after thirty-two others."""

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


_sat: dict[str, tuple[str, int]] = {}


def begin(app: App, **settings: Any) -> str:
    """A run that goes on by itself and is kept."""
    return str(app.ask("/api/runs", {**settings, "keep": True})["id"])


def over(app: App, run: str) -> str:
    """Wait until a run has ended."""
    end = time.monotonic() + 2 * LONG / 1000
    while app.ask(f"/api/runs/{run}")["state"] != "finished":
        assert time.monotonic() < end, "the run did not end"
        time.sleep(0.05)
    return run


def sit(app: App, **settings: Any) -> str:
    """A run from start to end, kept by the engine. Tests that only look at it get the same one, `SHARED` at most."""
    key = json.dumps([app.address, settings], sort_keys=True)
    run, uses = _sat.get(key, ("", SHARED))
    if uses < SHARED and app.ask(f"/api/runs/{run}")["kept"]:
        _sat[key] = (run, uses + 1)
        return run
    run = over(app, begin(app, **settings))
    _sat[key] = (run, 1)
    return run


def stopped_early(app: App) -> str:
    """A run that was stopped while it read, so nothing was chosen. One is enough for all tests."""

    def make() -> str:
        run = begin(app, prompt="The cat sat on the mat, and then the dog came in. " * 500)
        app.ask(f"/api/runs/{run}/stop", {})
        return over(app, run)

    return _once(app, "stopped early", make)


def too_long(app: App) -> str:
    """A run that failed: its paper has more tokens than the model reads. One is enough for all tests."""
    return _once(app, "too long", lambda: over(app, begin(app, prompt="a b c d e f g h " * 3000)))


def _once(app: App, name: str, make: Callable[[], str]) -> str:
    key = f"{app.home} {name}"
    _sat[key] = found = _sat.get(key) or (make(), 1)
    return found[0]


def measured(app: App, lab: str, *pieces: str) -> dict[str, Any]:
    """What the API tells of a lab once these pieces are measured; what is there already is not measured again."""
    told = app.ask(f"/api/labs/{lab}")
    end = time.monotonic() + PATIENT / 1000
    for piece in pieces:
        while piece not in told["results"]:
            assert time.monotonic() < end, f"{piece} could not be measured"
            _measure(app, {"kind": "lab", "lab": lab, "piece": piece, "model": told["model"]})
            told = app.ask(f"/api/labs/{lab}")
    return told


def _measure(app: App, asked: dict[str, str]) -> None:
    """One piece; where the engine has other work, a little time is waited instead."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{app.address}/api/measures", json.dumps(asked).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=PATIENT / 1000).close()
    except urllib.error.HTTPError as refusal:
        assert json.load(refusal)["error"]["code"] in ("measuring", "others_at_work")
        time.sleep(0.5)


def at(visit: Callable[..., Page], app: App, name: str, query: str = "", **options: Any) -> Page:
    """A station's page, once it is ready."""
    page = visit(f"{app.address}/{name}?{query}", **options)
    page.wait_for_selector(".station[data-ready=true]", timeout=LONG)
    return page


def data(page: Page, selector: str) -> dict[str, str]:
    """The data attributes of the first such element."""
    found: dict[str, str] = page.locator(selector).first.evaluate("(e) => ({...e.dataset})")
    return found


def figure(page: Page, name: str, scope: str = "") -> dict[str, dict[str, Any]]:
    """What Plotly holds of a chart once it is drawn: its traces by what they mean (`meta`). `scope`: where to look."""
    until(page, f"{scope} [data-figure={name}]", "d.shows === 'drawn' && !d.asks")
    return traces(page.locator(f"{scope} [data-figure={name}] .drawing").first.evaluate("(e) => e.data"))


def traces(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(trace["meta"]): trace for trace in found}


def redrawn(page: Page) -> None:
    """Wait until what was asked for is drawn: a page draws in the next frame, so two frames later it has."""
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def resize(page: Page, width: int, height: int) -> None:
    """Another window, once the page is drawn in it."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function(f"() => innerWidth === {width}")
    redrawn(page)


def fits_a_phone(page: Page, inside: str = ".station") -> None:
    """On a screen 390 pixels wide nothing runs off the page."""
    resize(page, 390, 844)
    assert page.locator(inside).evaluate("(e) => e.scrollWidth - e.clientWidth") <= 1


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
