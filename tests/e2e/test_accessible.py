"""Every page once, looked at by axe-core in light and in dark: nothing serious or critical. English, Chinese in turns.

And what a narrow window cuts: long names of runs, tables that are wider than a phone.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG
from views.site import ENTRIES, path

Visit = Callable[..., Page]
GRAVE = {"serious", "critical"}
STREAMLITS: dict[str, str] = {}
"""Faults in what Streamlit itself draws: the end of a selector, and why it is left."""

LANGS = {entry.name: ("en", "zh")[number % 2] for number, entry in enumerate(ENTRIES)}


def faults(page: Page) -> list[str]:
    """What axe finds on the page as it stands, Streamlit's own aside: rule, place and reason."""
    told: dict[str, Any] = Axe().run(page, options={"resultTypes": ["violations"]}).response
    found = [(rule["id"], flat(node["target"]), node["failureSummary"])
             for rule in told["violations"] if rule["impact"] in GRAVE for node in rule["nodes"]]  # fmt: skip
    return [f"{rule} at {place}: {why}" for rule, place, why in found if not place.endswith(tuple(STREAMLITS))]


def flat(target: list[Any]) -> str:
    """The selector inside the innermost shadow root."""
    last = target[-1]
    return str(last[-1] if isinstance(last, list) else last)


def drawn(page: Page, name: str) -> None:
    """Wait until a page stands: the scene, a station, or Streamlit's own widgets and a figure of plotly's."""
    what = {"exam_room": ".exam-scene[data-ready=true]", "memory": ".js-plotly-plot .main-svg"}
    expect(page.locator(what.get(name, ".station[data-ready=true]")).first).to_be_visible(timeout=LONG)


@pytest.mark.parametrize("name", LANGS)
def test_axe_finds_nothing_grave_in_light_and_in_dark(app: App, visit: Visit, name: str) -> None:
    lang = LANGS[name]
    page = visit(f"{app.address}{path(name)}?lang={lang}")
    drawn(page, name)
    assert faults(page) == []
    page.get_by_role("button", name=say("frame.to_dark", lang)).click()
    expect(page.get_by_role("button", name=say("frame.to_light", lang))).to_be_visible()
    drawn(page, name)
    assert faults(page) == []


def test_axe_sees_a_fault_inside_a_station(app: App, visit: Visit) -> None:
    page = visit(f"{app.address}/detokenise?lang=en")
    drawn(page, "detokenise")
    page.locator(".station .remember").evaluate("(line) => { line.style.color = line.style.background = '#777' }")
    assert any(fault.startswith("color-contrast at ") and ".remember" in fault for fault in faults(page))


def test_a_long_title_does_not_widen_the_chooser(app: App, visit: Visit) -> None:
    page = visit(f"{app.address}/detokenise?lang=en&run=open-book")
    drawn(page, "detokenise")
    chooser = page.locator(".station [data-do=run]")
    before = chooser.bounding_box()
    chooser.evaluate("(e) => e.append(new Option('A very long title '.repeat(20), 'long', true, true))")
    assert chooser.bounding_box() == before
    assert chooser.get_attribute("title") == f"{say('examples.open-book.title', 'en')} (recorded)"
    assert chooser.evaluate("(e) => getComputedStyle(e).textOverflow") == "ellipsis"


SHADE = """async (image) => {
    const picture = await createImageBitmap(new Blob([Uint8Array.from(atob(image), (c) => c.charCodeAt(0))]))
    const canvas = new OffscreenCanvas(picture.width, picture.height)
    const context = canvas.getContext('2d')
    context.drawImage(picture, 0, 0)
    const {data} = context.getImageData(0, 0, picture.width, picture.height)
    let sum = 0
    for (let k = 0; k < data.length; k += 4) sum += data[k] + data[k + 1] + data[k + 2]
    return sum / (data.length / 4) / 3
}"""
"""How light a picture is in the mean, from 0 to 255."""


def edges(page: Page, wide: Locator) -> tuple[float, float]:
    """How light the outermost four pixels left and right of a table's frame are, its text hidden."""
    box = wide.bounding_box()
    assert box
    strips = ({**box, "width": 4}, {**box, "x": box["x"] + box["width"] - 4, "width": 4})
    shots = [page.screenshot(clip=strip) for strip in strips]  # type: ignore[arg-type]
    left, right = (page.evaluate(SHADE, base64.b64encode(shot).decode()) for shot in shots)
    return left, right


def test_a_table_wider_than_a_phone_says_so_at_its_edge(app: App, visit: Visit) -> None:
    page = visit(f"{app.address}/tokenise?lang=en", width=390, height=844)
    drawn(page, "tokenise")
    wide = page.locator(".station .wide").first
    wide.scroll_into_view_if_needed()
    wide.evaluate("(e) => { e.firstChild.style.cssText = 'visibility: hidden; width: 900px' }")
    left, right = edges(page, wide)
    assert left - right > 20, "more to the right"
    wide.evaluate("(e) => e.scrollTo(e.scrollWidth, 0)")
    left, right = edges(page, wide)
    assert right - left > 20, "more to the left"
    wide.evaluate("(e) => { e.firstChild.style.width = '100%' }")
    left, right = edges(page, wide)
    assert left == pytest.approx(right, abs=1), "nothing is hidden"
