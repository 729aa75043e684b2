"""Notes that were let go, in the exam room: their columns are torn off, come back when one scrubs back, and the bytes
and the formula are those of what is left."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.e2e.conftest import App
from tests.e2e.room import Room
from tests.e2e.stations import at, sit, until

PAPER = "The code of the safe is 4917. The code of the bicycle lock is 2038. What is the code of the safe?"


def sat(app: App, **keeping: Any) -> str:
    """A run with its notes kept in a way of its own, once it is over."""
    return sit(app, prompt=PAPER, max_new_tokens=8, keeping=keeping)


def marks(page: Page) -> str:
    """The canvas with the notes, as it stands."""
    picture: str = page.locator(".grid canvas").nth(1).evaluate("(canvas) => canvas.toDataURL()")
    return picture


def covered(page: Page) -> float:
    """Which share of that canvas is painted over."""
    share: float = (
        page.locator(".grid canvas")
        .nth(1)
        .evaluate(
            """(canvas) => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
          let n = 0
          for (let i = 3; i < data.length; i += 4) n += data[i] > 250
          return n / (data.length / 4)
        }"""
        )
    )
    return share


def test_columns_let_go_are_torn_off_and_come_back(app: App, visit: Callable[..., Page]) -> None:
    run = sat(app, first=4, last=16)
    events = app.lines(run)
    gone = [position for event in events if event["type"] == "forgot" for position in event["positions"]]
    prompt = len(next(event for event in events if event["type"] == "started")["prompt"])
    last = [event["kv"] for event in events if event["type"] in ("decoded", "forgot")][-1]
    page = visit(f"{app.address}/?run={run}&at=999")
    room = Room(page)
    moment = room.until("m.reason")
    assert int(moment.forgotten) == len(gone) == len(set(gone)) > 30
    assert (moment.columns, int(moment.kvBytes)) == (last["length"], last["bytes"])
    torn = page.locator(".paper .chip.torn")
    assert torn.count() == sum(position < prompt for position in gone)
    assert str(len(gone)) in page.locator(".say p").inner_text()
    formula = page.locator(".formula span").first.inner_text()
    layers, columns, less, heads, size, two, value = map(int, re.findall(r"\d+", formula))
    assert layers * (columns - less) * heads * size * two * value == last["bytes"]
    at_the_end, share = marks(page), covered(page)
    assert share > 0.3

    page.keyboard.press("Home")
    while int(room.moment.forgotten) or room.moment.layers == 0:
        page.keyboard.press("ArrowRight" if not int(room.moment.forgotten) else "ArrowLeft")
    assert torn.count() == 0 and covered(page) < share / 2
    page.keyboard.press("End")
    room.until("m.reason")
    assert marks(page) == at_the_end and torn.count() > 0

    page = at(visit, app, "notes", f"run={run}")  # the scratch paper's own page tears them off, too
    until(page, "[data-overview]", f"d.torn === '{len(gone)}'")
    page.locator("[data-choose=moment]").fill("0")
    until(page, "[data-overview]", "d.torn === '0'")


@pytest.mark.parametrize(("dtype", "lang"), [("int4", "en-US"), ("fp8", "zh-CN")])
def test_the_formula_of_squeezed_notes_gives_the_bytes(
    app: App, visit: Callable[..., Page], dtype: str, lang: str
) -> None:
    page = visit(f"{app.address}/?run={sat(app, dtype=dtype)}&at=999", locale=lang)
    moment = Room(page).until("m.reason")
    layers, columns, heads, two, codes, scales = map(
        int, re.findall(r"\d+", page.locator(".formula span").first.inner_text())
    )
    assert columns == moment.columns
    assert layers * columns * heads * two * (codes + scales) == int(moment.kvBytes) > 0
