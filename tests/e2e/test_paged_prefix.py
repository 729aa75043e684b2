"""PagedAttention and prefix caching in a real browser: the pool is the engine's, figures are the API's, what is typed
is compared as the engine compares it, and the runs play in the exam room."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from engine.labs import LABS
from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, PATIENT, at, data, figure, fits_a_phone, measured, until

Visit = Callable[..., Page]
ROOM = [f"room/capital/{block}" for block in (0, 1, 16, 64)]


def tables(page: Page) -> dict[str, list[int]]:
    found: dict[str, str] = page.locator("[data-table]").evaluate_all(
        "(all) => Object.fromEntries(all.map((e) => [e.dataset.table, e.dataset.blocks]))"
    )
    return {run: json.loads(blocks) for run, blocks in found.items()}


def holders(page: Page) -> list[dict[str, str]]:
    found: list[dict[str, str]] = page.locator("[data-block]").evaluate_all("(all) => all.map((e) => ({...e.dataset}))")
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pool_is_drawn_as_the_engine_had_it(app: App, visit: Visit, lang: str) -> None:
    scene = measured(app, "paged", "scenario")["figures"]["scenario"]
    frames = scene["frames"]
    page = at(visit, app, "paged", f"run=open-book&lang={lang}")
    until(page, "[data-pool]", "d.step")
    assert data(page, "[data-pool]")["what"] == "shares", "at first sight something is shared"
    page.locator("[data-do=scrub]").fill("1")
    for number, frame in enumerate(frames, 1):
        told = data(page, "[data-pool]")
        assert (int(told["step"]), int(told["of"]), told["what"]) == (number, len(frames), frame["what"])
        assert int(told["free"]) == frame["free"] and tables(page) == frame["tables"]
        drawn = holders(page)
        assert [len(block["runs"]) for block in drawn] == frame["holders"]
        for block in drawn:
            seen = [
                min(scene["size"], frame["lengths"][run] - table.index(int(block["block"])) * scene["size"])
                for run, table in frame["tables"].items()
                if int(block["block"]) in table
            ]
            assert int(block["full"]) == max(seen, default=0)
        page.locator("[data-do=step]").click()
    shared = next(number for number, frame in enumerate(frames, 1) if frame["what"] == "shares")
    page.locator("[data-do=scrub]").fill(str(shared))
    both = page.locator(".block.shared").first
    assert "gradient" in both.evaluate("(e) => getComputedStyle(e).backgroundImage"), "two holders are striped"
    assert both.locator("span").inner_text().strip(), "a block says what its notes are of"
    page.locator("[data-do=back]").click()
    until(page, "[data-pool]", f"d.step === '{shared - 1}'")
    page.locator("[data-do=play]").click()
    expect(page.locator("[data-do=play]")).to_have_text(say("paged.pool.pause", lang))
    until(page, "[data-pool]", f"Number(d.step) > {shared - 1}")
    fits_a_phone(page)


def test_room_is_the_apis(app: App, visit: Visit) -> None:
    figures = measured(app, "paged", *ROOM, "time/128")["figures"]
    page = at(visit, app, "paged", "run=open-book&lang=en")
    paper = figures["room"]["papers"][0]
    until(page, "[data-answers]", "d.of > 0")
    rooms, times, own = (figure(page, f"paged-{name}") for name in ("room", "time", "own"))
    for way, kept in paper["ways"].items():
        side = "contiguous" if way == "contiguous" else f"blocks/{way}"
        assert (rooms[side]["customdata"][0][0], times[side]["customdata"][0][0]) == ("capital", 128)
        assert (rooms[side]["x"][0], rooms[f"of/{side}"]["x"][0]) == (kept["bytes"], kept["allocated"])
        assert times[side]["x"][0] == figures["time"][0]["ways"][way]["middle"]
    answers = data(page, "[data-answers]")
    assert int(answers["same"]) == int(answers["of"]) == figures["answers"]["of"] == figures["answers"]["same"]
    problem = data(page, "[data-problem]")
    kv = next(line["kv"] for line in reversed(app.lines("open-book")) if line.get("kv"))
    assert (int(problem["bytes"]), int(problem["allocated"])) == (kv["bytes"], kv["allocated"])
    assert (own["contiguous"]["x"], own["of/contiguous"]["x"]) == ([kv["bytes"]], [kv["allocated"]])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_typed_is_compared_id_by_id_and_really_taken_over(app: App, visit: Visit, lang: str) -> None:
    figures = measured(app, "prefix", "pairs")["figures"]
    page = at(visit, app, "prefix", f"run=open-book&lang={lang}")
    until(page, "[data-match]", "d.cut === 'done'")
    for pair in figures["pairs"]:
        page.locator(f"[data-pair={pair['name']}]").click()
        until(page, "[data-match]", "d.cut === 'done'")
        told = data(page, "[data-match]")
        assert [int(told[name]) for name in ("match", "taken", "blocks")] == [
            pair[name] for name in ("match", "taken", "blocks")
        ]
        ids = page.locator("[data-line=second] .token").evaluate_all("(all) => all.map((e) => +e.dataset.id)")
        assert ids == [token["id"] for token in pair["tokens"][1]]
        equal = page.locator("[data-line=second] .token.equal").count()
        assert equal == pair["taken"]
        row = page.locator(f"[data-row={pair['name']}] [data-cell=taken]")
        assert row.get_attribute("data-value") == str(pair["taken"])
    mark = f"No {lang} paper was like this one. "
    page.locator("[data-do=first]").fill(mark + "I am test")
    page.locator("[data-do=second]").fill(mark + "I am testing")
    until(page, "[data-match]", "d.cut === 'done' && d.taken > 5")
    taken = data(page, "[data-match]")["taken"]
    page.locator("[data-do=sit]").click()
    page.wait_for_selector("p[data-sat=finished]", timeout=PATIENT)
    sat = data(page, "p[data-sat]")
    reused = next(line for line in app.lines(sat["run"]) if line["type"] == "reused")
    assert str(reused["stop"]) == sat["taken"] == taken
    fits_a_phone(page)


def test_a_second_questions_figures_are_the_apis(app: App, visit: Visit) -> None:
    figures = measured(app, "prefix", "lesson/0")["figures"]
    lesson = figures["lesson"]
    page = at(visit, app, "prefix", "run=open-book&lang=en")
    until(page, "[data-lesson]", "d.prompt > 0")
    told = data(page, "[data-lesson]")
    assert [float(told[name]) for name in ("prompt", "reused", "read", "times")] == [
        lesson[name] for name in ("prompt", "reused", "read", "times")
    ]
    queries, waits = figure(page, "prefix-queries"), figure(page, "prefix-waits")
    for side, read in (("plain", lesson["prompt"]), ("reuse", lesson["read"])):
        assert queries[side]["customdata"][0][0] == waits[side]["customdata"][0][0] == "lesson"
        assert (queries[side]["x"][0], waits[side]["x"][0]) == (read, lesson[side]["middle"])
    sums = data(page, "[data-sums]")
    assert int(sums["columns"]) == int(sums["unchanged"]) >= lesson["columns"] > 100


@pytest.mark.parametrize(("lab", "lang"), [("paged", "zh"), ("prefix", "en")])
def test_the_runs_are_really_sat_and_play_in_the_exam_room(app: App, visit: Visit, lab: str, lang: str) -> None:
    page = at(visit, app, lab, f"run=open-book&lang={lang}")
    page.locator("[data-do=both]:enabled").click(timeout=LONG)
    page.wait_for_selector("[data-both=finished]", timeout=PATIENT)
    assert data(page, "[data-both]")["same"] == "true"
    runs = {name: data(page, f"[data-sat={name}]")["run"] for name in LABS[lab].runs()}
    name = "blocks" if lab == "paged" else "reuse"
    lines: list[dict[str, Any]] = app.lines(runs[name])
    started = next(line for line in lines if line["type"] == "started")
    if lab == "paged":
        kv = [line["kv"] for line in lines if line["type"] == "decoded"][-1]
        block = kv["bytes"] // kv["length"] * 16
        assert started["settings"]["keeping"]["block"] == 16 and kv["allocated"] == -(-kv["length"] // 16) * block
    else:
        reused = next(line for line in lines if line["type"] == "reused")
        assert reused["run"] == runs["first"] and reused["stop"] > 150
    page.locator(f".sat a[data-to=exam_room][href*='{runs[name]}']").click()
    page.wait_for_selector(f"[data-moment][data-run='{runs[name]}']", timeout=LONG, state="attached")
    page.keyboard.press("End")
    chosen = len([line for line in lines if line["type"] == "chose"])
    page.wait_for_selector(f"[data-moment][data-chosen='{chosen}']", timeout=LONG, state="attached")
    if lab == "prefix":
        rest = len(started["prompt"]) - reused["stop"]
        sentence = page.locator(".exam-scene").inner_text()
        assert f"{reused['stop']} columns taken over, {rest} read in" in sentence
