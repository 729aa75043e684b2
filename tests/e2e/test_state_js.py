"""`state.js` is the twin of `engine.trace.state_at`: both give the states of tests/fixtures/states.json."""

from __future__ import annotations

import functools
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent.parent
CASES: list[dict[str, Any]] = json.loads((ROOT / "tests" / "fixtures" / "states.json").read_text("utf-8"))
FOLD = """async ([events, step]) => {
    const {stateAt} = await import('/trace/state.js')
    return stateAt(events, step)
}"""
INDEXED = """async (events) => {
    const [{Trace}, {stateAt}] = [await import('/trace/trace.js'), await import('/trace/state.js')]
    const trace = new Trace()
    events.forEach((event) => trace.push(event))
    return trace.states.map((state, step) => JSON.stringify(state) === JSON.stringify(stateAt(events, step)))
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def guess_type(self, path: str | os.PathLike[str]) -> str:
        return "text/javascript" if str(path).endswith(".js") else super().guess_type(path)

    def log_message(self, *arguments: object) -> None:
        """Nothing: a test's output is for its failures."""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """An empty page from which the scene's modules can be imported."""
    serve = functools.partial(Quiet, directory=str(ROOT / "assets" / "scene"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/fonts/README.md")
        yield page
        page.close()
        server.shutdown()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_browser_folds_the_same_states(page: Page, case: dict[str, Any]) -> None:
    for expected in case["states"]:
        state = page.evaluate(FOLD, [case["events"], expected["step"]])
        assert state == pytest.approx(expected["state"], abs=1e-12), f"after {expected['step']} events"


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_index_that_is_drawn_from_holds_the_folds_states(page: Page, case: dict[str, Any]) -> None:
    assert page.evaluate(INDEXED, case["events"]) == [True] * (len(case["events"]) + 1)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_wait_for_the_engine_itself_is_not_called_a_taken_desk(page: Page, lang: str) -> None:
    words = json.loads((ROOT / "assets" / "words" / lang / "scene.json").read_text("utf-8"))
    said = page.evaluate(
        """async (words) => {
          const { sentences } = await import('/draw/headline.js')
          const title = (engine) => sentences(
            { words, trace: {}, engine: { away: engine !== 'ready', health: { engine } } },
            { phase: 'queued', state: { ahead: 0 } }).title
          return ['ready', 'restarting', 'loading'].map(title)
        }""",
        words,
    )
    assert said[0] == words["head"]["queued"] and len(set(said)) == 3
    for title, state in zip(said[1:], ("restarting", "loading"), strict=True):
        assert title.startswith(words["engine"][state])


def test_every_ending_and_every_kind_of_event_is_among_the_cases() -> None:
    kinds = {event["type"] for case in CASES for event in case["events"]}
    endings = {event["reason"] for case in CASES for event in case["events"] if event["type"] == "finished"}
    assert kinds == {
        "queued",
        "started",
        "reused",
        "layer",
        "prefilled",
        "chose",
        "decoded",
        "forgot",
        "wrote",
        "finished",
    }
    assert endings == {"eos", "length", "stop_string", "stopped", "timeout", "out_of_memory", "error"}
