"""The security policy in a real browser: nothing that a page does, or may come to do, goes against it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import plotly
import pytest
from playwright.sync_api import Page

from tests.e2e.conftest import App
from tests.e2e.room import Room

PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
WATCH = """window.violations = []
document.addEventListener('securitypolicyviolation', (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`))"""
LOAD = """(source) => new Promise((loaded, failed) => {
  document.head.append(Object.assign(document.createElement('script'), {src: source, onload: loaded, onerror: failed}))
})"""
PLOT = """async () => {
  const place = document.body.appendChild(document.createElement('div'))
  const traces = [{y: [1, 4, 9]}, {type: 'bar', y: [3, 2, 1]}, {type: 'heatmap', z: [[1, 2], [3, 4]]}]
  await Plotly.newPlot(place, traces, {title: {text: 'three'}})
  return (await Plotly.toImage(place, {format: 'png'})).slice(0, 21)
}"""


def watched(page: Page) -> Page:
    """The same page loaded again, with an eye on what its policy blocks, from the first byte on."""
    page.add_init_script(WATCH)
    page.reload()
    return page


@pytest.mark.parametrize("path", ["", "memory", "flash"])
def test_no_page_goes_against_its_policy(visit: Callable[..., Page], app: App, path: str) -> None:
    page = watched(visit(f"{app.address}/{path}"))
    page.wait_for_selector("[data-testid=stAppViewContainer] :is(h1, h2)", timeout=60_000)
    page.wait_for_selector("[data-testid=stSkeleton]", state="detached", timeout=60_000)
    if not path:
        Room(page).ask("What is the capital of France?", max_new_tokens=8)
    assert page.evaluate("violations") == []


def test_plotly_draws_under_it(visit: Callable[..., Page], app: App) -> None:
    page = visit(app.address)
    page.route("**/plotly.min.js", lambda route: route.fulfill(path=PLOTLY, content_type="text/javascript"))
    watched(page)
    Room(page)
    page.evaluate(LOAD, "/plotly.min.js")
    assert page.evaluate(PLOT) == "data:image/png;base64"
    assert page.evaluate("violations") == []
