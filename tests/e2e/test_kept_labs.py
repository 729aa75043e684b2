"""Smaller notes and forgetting, in a real browser: the pages' figures are the API's, the pictures those of real
numbers, and the runs with the remedy play in the exam room."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.room import Room
from tests.e2e.stations import LONG, at, figure, measured, until

Visit = Callable[..., Page]


def opened(visit: Visit, app: App, lab: str, lang: str) -> Page:
    page = at(visit, app, lab, f"lang={lang}")
    until(page, "[data-lab]", "Number(d.measured) > 0")
    return page


def value(page: Page, selector: str) -> float:
    return float(page.locator(selector).first.get_attribute("data-value") or "nan")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_squeezed_notes_show_what_was_measured(app: App, visit: Visit, lang: str) -> None:
    told = measured(app, "smaller_notes", "group", "safe/int8", "safe/int2")
    page = opened(visit, app, "smaller_notes", lang)
    times, errors = figure(page, "smaller-notes-times"), figure(page, "smaller-notes-error")
    for way in ("int8", "int2"):
        figures = told["figures"]["papers"]["safe"]["ways"][way]
        row = f"[data-part=measured] tr[data-way={way}]"
        for cell, key in {
            "bytes": "bytes",
            "share": "share",
            "kl": "kl_mean",
            "agreed": "agreed",
            "slower": "slower",
        }.items():
            assert value(page, f"{row} [data-cell={cell}]") == figures[key]
        for side, name in (("exact", "before"), ("kept", "after")):
            bars = {case: x for (case, _, _), x in zip(times[side]["customdata"], times[side]["x"], strict=True)}
            assert bars[way] == figures[name]["middle"]
        assert errors[f"key/{way}"]["y"] == figures["error"]["key"]
        assert errors[f"value/{way}"]["y"] == figures["error"]["value"]
        answer = page.locator(f"[data-answer={way}]")
        assert answer.get_attribute("data-right") == json.dumps(figures["right"])
        assert answer.locator(".answer").evaluate("(cell) => cell.textContent") == figures["text"]
    assert json.loads(page.locator("[data-words]").get_attribute("data-words") or "") in [
        told["figures"]["papers"]["safe"]["ways"][way]["kl"] for way in ("int8", "int2")
    ]
    assert page.locator("[data-part=proof] h2").inner_text() == say("smaller_notes.proof.title", lang)
    now, _, weights = figure(page, "smaller-notes-bytes")["cache"]["x"]
    lines = app.lines("open-book")
    assert now == next(line["kv"] for line in reversed(lines) if line.get("kv"))["bytes"]
    assert weights == next(line["facts"] for line in lines if line["type"] == "started")["weight_bytes"]


def test_a_real_group_is_squeezed_step_by_step(app: App, visit: Visit) -> None:
    group = measured(app, "smaller_notes", "group", "safe/int8")["figures"]["group"]["layers"][0]
    page = opened(visit, app, "smaller_notes", "en")
    sheet = page.locator("[data-group]")
    page.locator("[data-choose=dtype] label").filter(has_text="int2").click()
    assert json.loads(sheet.get_attribute("data-codes") or "") == group["ways"]["int2"]["codes"]
    assert sheet.locator("circle.exact").count() == 64 and sheet.locator(".level").count() == 0
    for _ in range(2):
        page.locator("[data-do=group-on]").click()
    assert sheet.get_attribute("data-group") == "grid" and sheet.locator(".level").count() == 4
    for _ in range(2):
        page.locator("[data-do=group-on]").click()
    assert sheet.locator("rect.read").count() == 64
    expect(page.locator("[data-do=group-on]")).to_be_disabled()
    assert [int(text) for text in sheet.locator(".codes span").all_inner_texts()] == group["ways"]["int2"]["codes"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_forgetting_shows_which_columns_were_there_for_each_word(app: App, visit: Visit, lang: str) -> None:
    told = measured(app, "forgetting", "guard/paper", "guard/sink/64")
    figures = told["figures"]["papers"]["guard"]
    one = figures["ways"]["sink"]["64"]
    page = opened(visit, app, "forgetting", lang)
    row = "[data-part=measured] tr[data-way=sink][data-budget='64']"
    for cell, key in {"bytes": "bytes", "kl": "kl_mean", "agreed": "agreed", "slower": "slower"}.items():
        assert value(page, f"{row} [data-cell={cell}]") == one[key]
    kept = figure(page, "forgetting-times")["kept"]
    assert (kept["x"], kept["customdata"][0][0]) == ([one["after"]["middle"]], "sink")
    picture, sheet = page.locator(".columns-picture"), page.locator("[data-torn]")
    for word in (1, 2, 3):
        if word > 1:
            picture.press("ArrowDown")
        row_of = one["prompt"] + word
        seen = sum(gone is None or gone > word for gone in one["gone"][:row_of])
        assert (sheet.get_attribute("data-word"), sheet.get_attribute("data-seen")) == (str(word), str(seen))
        assert seen < row_of
    torn = sum(gone is not None and gone <= 3 for gone in one["gone"][: one["prompt"]])
    assert sheet.locator(".forgetting-text .torn").count() == torn > 100
    colours = picture.locator("canvas").evaluate(
        """(canvas) => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
          return new Set(new Uint32Array(data.buffer)).size
        }"""
    )
    assert colours >= 3
    assert figures["text"]["tokens"][:3] == ["<|im_start|>", "system", "\n"]


def test_a_run_that_forgets_is_sat_from_its_page_and_plays_in_the_exam_room(app: App, visit: Visit) -> None:
    told = measured(app, "forgetting", "guard/paper", "guard/sink/64")
    page = opened(visit, app, "forgetting", "en")
    page.locator("[data-do=both]").click()
    page.wait_for_selector("[data-both=finished]", timeout=4 * LONG)
    sat = page.locator("[data-sat=sink]").get_attribute("data-run")
    assert set(told["runs"]) == {"exact", "window", "sink", "heavy"}
    room = Room(visit(f"{app.address}/?run={sat}&at=999"))
    moment = room.until("m.reason")
    gone = sum(len(event["positions"]) for event in app.lines(str(sat)) if event["type"] == "forgot")
    assert int(moment.forgotten) == gone > 100
