"""The remedies' pages in a real browser: figures are the API's, what is drawn is the run's own, both runs play."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from engine.labs import LABS
from engine.labs.tiles import naive, tiles
from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import GEMMA, LONG, PATIENT, at, data, figure, fits_a_phone, measured, sit, until

Visit = Callable[..., Page]
PAPER = {"prompt": "Anna's cat is called Luna. What is the name of Anna's cat?", "max_new_tokens": 8}

DRAWN = """([name, n]) => {
  const deep = (root) => root.querySelector(`[data-figure=${name}] .drawing`)
    ?? [...root.querySelectorAll('*')].map((e) => e.shadowRoot && deep(e.shadowRoot)).find(Boolean)
  return deep(document)?.data?.every((trace) => trace.x.length === n)
}"""
"""Whether a chart has so many points in every trace."""


def colours(page: Page, selector: str) -> int:
    found: int = page.locator(selector).evaluate(
        """(canvas) => new Set(new Uint32Array(canvas.getContext('2d')
             .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
    )
    return found


def head_of(app: App, run: str, layer: int, head: int) -> tuple[list[torch.Tensor], float]:
    """A head's Q, K, V and the formula's output as the API tells them, and the factor before the softmax."""
    with urllib.request.urlopen(f"{app.address}/api/runs/{run}/qkv?layer={layer}&head={head}", timeout=30) as reply:
        numbers = torch.from_numpy(np.frombuffer(reply.read(), "<f4").copy())
        n, size = int(reply.headers["X-Positions"]), int(reply.headers["X-Size"])
        return list(numbers.view(4, n, size)), float(reply.headers["X-Scale"])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_tiles_are_worked_through_on_the_runs_own_numbers(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **PAPER)
    page = at(visit, app, "flash", f"run={run}&lang={lang}")
    until(page, "[data-tiles]", "d.step")
    layer, head, side = (int(page.locator(f"[data-do={name}]").input_value()) for name in ("layer", "head", "side"))
    (query, key, value, exact), scale = head_of(app, run, layer, head)
    assert (naive(query, key, value, scale) - exact).abs().max() <= 1e-5
    walk = list(tiles(query, key, value, scale, side))
    for move in ("", "step", "back", "scrub"):
        if move == "scrub":
            page.locator("[data-do=scrub]").fill(str(len(walk)))
        elif move:
            page.locator(f"[data-do={move}]").click()
        told = data(page, "[data-tiles]")
        tile = walk[int(told["step"]) - 1]
        assert (int(told["of"]), int(told["row"]), int(told["column"])) == (len(walk), tile.row, tile.column)
        word = int(told["word"]) - tile.row
        assert float(told["m"]) == pytest.approx(float(tile.largest[word]), abs=1e-4)
        assert float(told["l"]) == pytest.approx(float(tile.total[word]), rel=1e-4)
        assert page.locator("canvas[data-drawn]").get_attribute("data-drawn") == f"{told['step']}/{side}"
        assert colours(page, "canvas[data-drawn]") > 20, "the canvas is blank"
    assert int(data(page, "[data-tiles]")["step"]) == len(walk)
    proof = data(page, "[data-difference]")
    assert 0 < float(proof["difference"]) <= 1e-5 and float(proof["kernel"]) <= 1e-5 and proof["good"] == "true"
    page.locator("[data-do=side]").select_option(str(side // 2))
    until(page, "[data-tiles]", f"Number(d.of) > {len(walk)}")
    page.locator("[data-do=play]").click()
    until(page, "[data-tiles]", "d.step === d.of")
    expect(page.locator("[data-do=play]")).to_have_text(say("flash.tiles.play", lang))
    fits_a_phone(page)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_kernels_figures_are_the_apis(app: App, visit: Visit, lang: str) -> None:
    told = measured(app, "flash", "kernel/256", "kernel/512", "run/256", "tiles")
    page = at(visit, app, "flash", f"run=open-book&lang={lang}")
    until(page, "[data-lab]", "d.measured === '4'")
    figures = told["figures"]
    for one in figures["kernel"]:
        values = {"time": one["time"], "memory": one["memory"]}
        for side in ("math", "fast"):
            values |= {f"{side}.seconds": one[side]["seconds"]["middle"], f"{side}.bytes": one[side]["bytes"]}
        for name, value in values.items():
            shown = page.locator(f"[data-figure='{one['n']}.{name}']").get_attribute("data-value")
            assert float(shown or "nan") == value
        assert one["math"]["source"] == one["fast"]["source"] == "measured"
        assert one["math"]["bytes"] >= one["matrix"] > one["fast"]["bytes"], "the matrix is written by one only"
    for side in ("math", "fast"):
        memory, time = figure(page, "flash-memory")[side], figure(page, "flash-time")[side]
        assert memory["x"] == time["x"] == [one["n"] for one in figures["kernel"]]
        assert memory["y"] == [one[side]["bytes"] for one in figures["kernel"]]
        assert time["y"] == [one[side]["seconds"]["middle"] for one in figures["kernel"]]
        assert figure(page, "flash-run")[side]["x"] == [one[side]["middle"] for one in figures["run"]]
    matrix = figure(page, "flash-matrix")
    facts = next(line["facts"] for line in app.lines("open-book") if line["type"] == "started")
    n = int(data(page, "[data-problem]")["n"])
    assert matrix["matrix"]["x"][0] == n * n * facts["heads"] * facts["value_bytes"]
    assert len(matrix["matrix"]["x"]) == len(matrix["notes"]["x"]) == 3
    assert figures["run"][0]["same"] and figures["tiles"]["tiles"] <= 1e-5
    assert float(data(page, "[data-engine]")["tiles"]) == figures["tiles"]["tiles"]
    assert say("flash.tiles.absent", lang) in page.locator("[data-absent]").inner_text(), "a recording holds no Q, K, V"
    until(page, "[data-tiles]", "d.recorded === 'open-book' && d.step")
    assert float(data(page, "[data-difference]")["difference"]) <= 1e-5, "but a head of one is kept"
    page.locator("[data-do=again]").click()
    page.wait_for_url(lambda url: "run=" in url and "run=open-book" not in url, timeout=LONG)
    until(page, "[data-tiles]", "d.step")


def test_the_sizes_of_shared_notes_are_those_of_the_model_that_is_told_of(app: App, visit: Visit) -> None:
    """The run on show is another model's, mostly not on this machine: every formula's factors make its product."""
    page = at(visit, app, "groups", "run=chinese&lang=en")
    until(page, "[data-lab]", "d.of > 0")
    page.wait_for_selector("[data-formula=own]", timeout=LONG)
    for name in ("ordinary", "own", "multi"):
        line = page.locator(f"[data-formula={name}]")
        layers, kept, size, width = (int(n) for n in re.findall(r"× ([\d,]+) ", line.inner_text()))
        assert 2 * layers * kept * size * width == int(line.get_attribute("data-value") or 0)
    if not (app.home / "models" / GEMMA).exists():
        own = page.locator("[data-way=own]").inner_text()
        assert app.ask("/api/labs/groups")["model"] in own and say("groups.ways.name.grouped", "en") in own


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_notes_shared_are_measured_with_the_button_and_told_on_the_entry_page(
    app: App, visit: Visit, lang: str
) -> None:
    page = at(visit, app, "groups", f"run={sit(app, **PAPER)}&lang={lang}")
    until(page, "[data-lab]", "d.of > 0")
    plan = app.ask("/api/labs/groups")["plan"]
    for variant in plan[0]["variants"]:
        assert page.locator(f"[data-formula={variant['name']}]").get_attribute("data-value") == str(
            variant["per_token"]
        )
    n = int(data(page, "[data-do=context]")["n"])
    assert figure(page, "groups-bytes")["cache"]["x"] == [n * variant["per_token"] for variant in plan[0]["variants"]]
    page.locator("[data-do=measure]").click()
    page.wait_for_selector("[data-measure=measure][data-state=finished]", timeout=PATIENT)
    told = app.ask("/api/labs/groups")
    figures = told["figures"]
    assert data(page, "[data-lab]")["measured"] == str(len(plan)) == str(len(told["results"]))
    page.wait_for_function(DRAWN, arg=["groups-step", len(figures["decode"])], timeout=LONG)
    steps = figure(page, "groups-step")
    for side in ("repeated", "grouped"):
        assert steps[side]["y"] == [one[side]["middle"] for one in figures["decode"]]
        assert steps[side]["customdata"] == [
            [one["n"], one[side]["low"], one[side]["high"]] for one in figures["decode"]
        ]
    assert figures["ids"]["same"] and data(page, "[data-ids]")["same"] == "true"
    cache = data(page, "[data-cache]")
    assert int(cache["ordinary"]) == 3 * int(cache["own"]) == figures["cache"]["allocated"]["ordinary"]
    fits_a_phone(page)
    entry = at(visit, app, "remedies", f"lang={lang}")
    until(entry, "[data-remedy=groups]", "d.gained === 'true'")
    row = data(entry, "[data-remedy=groups]")
    assert json.loads(row["values"]) == figures["gained"] and figures["gained"]["bytes"] == 3
    assert entry.locator("[data-remedy]").count() == 11
    fits_a_phone(entry)
    entry.locator("[data-remedy=flash] th a").click()
    entry.wait_for_url("**/flash?*", timeout=LONG)


@pytest.mark.parametrize(("lab", "lang"), [("groups", "en"), ("groups", "zh"), ("flash", "en")])
def test_both_are_really_sat_and_play_in_the_exam_room(app: App, visit: Visit, lab: str, lang: str) -> None:
    wanted = LABS[lab].runs()
    page = at(visit, app, lab, f"run=open-book&lang={lang}")
    page.locator("[data-do=both]:enabled").click(timeout=LONG)
    page.wait_for_selector("[data-both=finished]", timeout=PATIENT)
    assert data(page, "[data-both]")["same"] == "true"
    runs = {name: data(page, f"[data-sat={name}]")["run"] for name in wanted}
    for name, run in runs.items():
        lines = app.lines(run)
        started = next(line for line in lines if line["type"] == "started")
        for setting in ("prompt", "grouped", "kernel"):
            assert started["settings"][setting] == getattr(wanted[name], setting)
        summary = app.ask(f"/api/runs/{run}")
        column = 1 + list(runs).index(name)
        for time in ("ttft", "tpot"):
            shown = page.locator(f".sat [data-row={time}] td:nth-child({column + 1})").get_attribute("data-value")
            assert float(shown or "nan") == pytest.approx(summary[time])
    last = list(runs.values())[-1]
    page.locator("[data-to=exam_room]").last.click()
    page.wait_for_selector(f"[data-moment][data-run='{last}']", timeout=LONG, state="attached")
    page.keyboard.press("End")
    chosen = len([line for line in app.lines(last) if line["type"] == "chose"])
    page.wait_for_selector(f"[data-moment][data-chosen='{chosen}']", timeout=LONG, state="attached")


def test_where_nothing_can_be_measured_a_recorded_result_is_shown(app: App, visit: Visit) -> None:
    told = app.ask("/api/labs/groups/recorded")
    page = visit("about:blank")
    refusal = {"error": {"code": "model_absent", "message": "The model is not here."}}
    page.route("**/api/labs/groups?*", lambda route: route.fulfill(status=503, json=refusal))
    page.goto(f"{app.address}/groups?run=open-book&lang=zh")
    until(page, "[data-lab]", "d.figures === 'recorded'")
    assert page.locator("[data-trouble]").inner_text() == "The model is not here."
    assert told["machine"]["device_name"] in page.locator("[data-source]").inner_text()
    steps = figure(page, "groups-step")["grouped"]
    assert steps["y"] == [one["grouped"]["middle"] for one in told["figures"]["decode"]]
    assert (
        page.locator("[data-part=measured] .tag.recorded").count()
        and not page.locator("[data-part=measured] .tag.measured").count()
    )
    page.unroute("**/api/labs/groups?*")
    measured(app, "groups", "ids")
    page.reload()
    until(page, "[data-lab]", "d.figures === 'own'")
    page.locator("[data-do=recorded]").click()
    until(page, "[data-lab]", "d.figures === 'recorded'")


def test_a_measurement_stops_and_what_was_measured_stays(app: App, visit: Visit) -> None:
    page = at(visit, app, "flash", "run=open-book")
    before = int(data(page, "[data-lab]")["measured"] or 0)
    page.locator("[data-do=measure]").click()
    page.wait_for_selector("[data-measure=measure][data-state=running]", timeout=LONG)
    page.locator("[data-do=measure-stop]").click()
    page.wait_for_selector("[data-measure=measure][data-state=stopped]", timeout=LONG)
    expect(page.locator("[data-do=measure]")).to_be_visible()
    assert len(app.ask("/api/labs/flash")["results"]) >= before
