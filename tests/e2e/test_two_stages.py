"""Why two stages, in a real browser: the table is the trace's, the points stand where they belong, the race is run."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, begin, figure, fits_a_phone, sit, until
from tests.e2e.stations import at as station

Visit = Callable[..., Page]
PAPER = {"prompt": "Anna's cat is called Luna. What is the name of Anna's cat?", "max_new_tokens": 12}


def at(visit: Visit, app: App, run: str, query: str = "") -> Page:
    return station(visit, app, "two_stages", f"run={run}{query}")


def cell(page: Page, name: str) -> float:
    return float(page.locator(f"[data-cell='{name}']").get_attribute("data-value") or "nan")


def points(page: Page) -> dict[str, tuple[float, float]]:
    """Every point of the roofline: its name, and its place."""
    found = figure(page, "roofline")
    batches = found.pop("batch", {"x": [], "y": [], "customdata": []})
    stand = {name: (found[name]["x"][0], found[name]["y"][0]) for name in ("prefill", "decode") if name in found}
    return stand | {
        f"batch-{batch:.0f}": (x, y)
        for batch, x, y in zip(batches["customdata"], batches["x"], batches["y"], strict=True)
    }


def measured(page: Page, name: str) -> None:
    page.locator(f"[data-do={name}]").click()
    page.wait_for_selector(f"[data-measure={name}][data-state=finished]", timeout=LONG)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_is_filled_from_the_runs_own_trace(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **PAPER)
    page = at(visit, app, run, f"&lang={lang}")
    until(page, ".state[data-state]", "d.state === 'finished'")
    lines, costs = app.lines(run), app.ask(f"/api/runs/{run}/costs")
    read = [event for event in lines if event["type"] == "prefilled"]
    steps = sorted((event for event in lines if event["type"] == "decoded"), key=lambda event: event["seconds"])
    middle = steps[len(steps) // 2]
    cost = costs["steps"][middle["position"] - costs["prompt"]]
    assert cell(page, "seconds.prefill") == sum(event["seconds"] for event in read)
    assert cell(page, "seconds.decode") == middle["seconds"]
    assert cell(page, "input.prefill") == costs["prompt"] and cell(page, "input.decode") == 1
    assert cell(page, "flops.prefill") == costs["prefill"]["total"] and cell(page, "flops.decode") == cost["total"]
    for key in ("weights", "cache_read", "cache_written"):
        assert cell(page, f"{key}.decode") == cost["bytes"][key]
    assert cell(page, "rate.decode") == pytest.approx(cost["total"] / middle["seconds"])
    assert cell(page, "speed.prefill") == pytest.approx(costs["prefill"]["moved"] / cell(page, "seconds.prefill"))


def test_the_machine_is_measured_and_the_points_stand_under_its_roof(app: App, visit: Visit) -> None:
    run = sit(app, **PAPER)
    page = at(visit, app, run)
    for name in ("peaks", "batches", "parts"):
        measured(page, name)
    told, costs = app.ask("/api/measures"), app.ask(f"/api/runs/{run}/costs")
    results = told["results"]
    rates = {kind: max(one["rate"] for name, one in results.items() if name.startswith("peak/") and one["kind"] == kind)
             for kind in ("compute", "bandwidth")}  # fmt: skip
    roof = figure(page, "roofline")["roof"]
    assert roof["y"][0] / roof["x"][0] == pytest.approx(rates["bandwidth"]), "the slope"
    assert roof["y"][1:] == pytest.approx([rates["compute"]] * 2), "the flat top"
    stand = points(page)
    assert set(stand) == {"prefill", "decode", *(f"batch-{batch}" for batch in told["batches"])}
    for batch in told["batches"]:
        cost, kept = costs["batches"][str(batch)], results[f"batch/{costs['prompt']}/{batch}"]
        assert stand[f"batch-{batch}"] == pytest.approx((cost["intensity"], cost["total"] / kept["best"]))
    assert stand["prefill"] == pytest.approx((costs["prefill"]["intensity"], cell(page, "rate.prefill")))
    parts = figure(page, "parts")
    for part, seconds in results[f"parts/{costs['prompt']}/decode"]["parts"].items():
        values = {(stage, kind): value for stage, kind, value in parts[part]["customdata"]}
        assert values["decode", "seconds"] == pytest.approx(seconds)
    words = figure(page, "batches")["words"]
    assert words["x"] == told["batches"]
    assert words["y"] == [pytest.approx(n / results[f"batch/{costs['prompt']}/{n}"]["best"]) for n in words["x"]]
    assert page.locator("[data-figure=roofline] .drawing svg path.point").count() >= len(stand), "the chart is drawn"
    reloaded = at(visit, app, run)
    assert points(reloaded) == stand, "what was measured is kept"
    fits_a_phone(reloaded)


def test_the_points_are_read_by_keyboard_and_pointer_and_the_slider_walks_prefill(app: App, visit: Visit) -> None:
    run = sit(app, **PAPER)
    page = at(visit, app, run)
    if not app.ask("/api/measures")["results"]:
        measured(page, "peaks")
    stand = points(page)
    page.locator("[data-figure=roofline] .drawing").focus()
    heard = {}
    for _ in range(len(stand) + 1):
        page.keyboard.press("ArrowRight")
        told = page.locator("[data-roofline]").evaluate("(e) => ({...e.dataset})")
        heard[told["name"]] = (float(told["x"]), float(told["y"]))
        assert page.locator("[data-figure=roofline] [aria-live]").inner_text()
    assert {name: heard[name] for name in stand} == stand
    page.keyboard.press("Home")
    place = page.locator("[data-figure=roofline] path.point").nth(len(stand) - 1)  # batches, decode, prefill
    end = time.monotonic() + LONG / 1000
    while page.locator("[data-roofline]").get_attribute("data-name") != "prefill":
        assert time.monotonic() < end, "the pointer is not heard"
        page.mouse.move(5, 5)
        place.hover(force=True)
    curve = app.ask(f"/api/runs/{run}/costs")["curve"]
    slider = page.locator("[data-do=length]")
    seen = []
    for step in (0, 12, len(curve) - 1):
        slider.fill(str(step))
        guess = page.locator("p[data-guess]").evaluate("(e) => ({...e.dataset})")
        assert (int(guess["tokens"]), float(guess["intensity"])) == (curve[step]["tokens"], curve[step]["intensity"])
        seen.append((float(guess["intensity"]), float(guess["rate"])))
    assert seen == sorted(seen) and seen[0][1] < seen[-1][1], "up the slope"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_race_is_run_twice_and_says_the_same_words(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, sit(app, **PAPER), f"&lang={lang}")
    page.locator("[data-do=race]").click()
    page.wait_for_selector("[data-race=finished]", timeout=LONG)
    lanes = {
        side: page.locator(f"[data-lane={side}]").evaluate("(e) => ({...e.dataset})") for side in ("notes", "none")
    }
    assert lanes["notes"]["ids"] == lanes["none"]["ids"] != ""
    assert page.locator("[data-race]").get_attribute("data-same") == "true"
    expect(page.get_by_text(say("two_stages.race.same", lang))).to_be_visible()
    for side, lane in lanes.items():
        lines = app.lines(lane["run"])
        chose = [event for event in lines if event["type"] == "chose"]
        assert lane["ids"].split() == [str(event["token"]["id"]) for event in chose]
        assert lines[[event["type"] for event in lines].index("started")]["settings"]["notes"] is (side == "notes")
        costs = app.ask(f"/api/runs/{lane['run']}/costs")["race"][side]
        assert float(lane["flops"]) == sum(costs[: len(chose)])
        until(page, "[data-figure=race-seconds]", f"d.points === '{2 * len(chose)}'")
        drawn = figure(page, "race-seconds")[side]
        assert (drawn["x"], drawn["y"]) == (list(range(1, len(chose) + 1)), [event["at"] for event in chose])
    read = [event["read"] for event in app.lines(lanes["none"]["run"]) if event["type"] == "decoded"]
    assert read == sorted(read) and read[0] > 1
    page.locator("[data-do=race-replay]").click()
    until(page, "[data-lane=none]", f"Number(d.words) === {len(lanes['none']['ids'].split())}")


def test_the_race_can_be_stopped(app: App, visit: Visit) -> None:
    page = at(visit, app, sit(app, prompt="Tell me a long story about a lighthouse.", max_new_tokens=48))
    page.locator("[data-do=race]").click()
    until(page, "[data-lane=none]", "Number(d.words) >= 2")
    page.locator("[data-do=race-stop]").click()
    page.wait_for_selector("[data-race=stopped]", timeout=LONG)
    run = page.locator("[data-lane=none]").get_attribute("data-run")
    assert app.lines(str(run))[-1]["reason"] == "stopped"
    expect(page.locator("[data-do=race]")).to_be_visible()


def test_a_measurement_can_be_stopped_and_what_was_measured_stays(app: App, visit: Visit) -> None:
    page = at(visit, app, sit(app, **PAPER))
    page.locator("[data-do=batches]").click()
    page.wait_for_selector("[data-measure=batches][data-state=running]")
    page.locator("[data-do=batches-stop]").click()
    page.wait_for_selector("[data-measure=batches][data-state=stopped]", timeout=LONG)
    expect(page.locator("[data-do=batches]")).to_be_enabled()
    assert app.ask("/api/health")["engine"] == "ready"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_recording_does_not_stand_under_this_machines_roof(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, "open-book", f"&lang={lang}")
    until(page, ".state[data-state]", "d.state === 'finished'")
    assert figure(page, "roofline")["prefill"]["x"]
    started = next(event for event in app.lines("open-book") if event["type"] == "started")
    if started["facts"]["device_name"] != app.ask("/api/measures")["machine"]["device_name"]:
        assert "roof" not in figure(page, "roofline")
        assert page.locator("[data-do=batches]").is_disabled() and page.locator("[data-do=parts]").is_disabled()
    page.locator("[data-do=again]").click()
    page.wait_for_url(lambda url: "run=" in url and "run=open-book" not in url)
    until(page, ".state[data-state]", "d.state === 'finished'")
    expect(page.locator("[data-do=batches]")).to_be_enabled()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_runs_that_go_on_stop_or_fail_are_told_of(app: App, visit: Visit, lang: str) -> None:
    end = time.monotonic() + 120
    while app.ask("/api/health")["active"]:
        assert time.monotonic() < end, "steps shared with somebody's run are left out of the table"
        time.sleep(0.2)
    run = begin(app, prompt="Tell me a very long story about a lighthouse.", max_new_tokens=512)
    page = at(visit, app, run, f"&lang={lang}")
    until(page, ".state[data-state]", "d.state === 'running'")
    while app.ask(f"/api/runs/{run}")["tpot"] is None:
        assert time.monotonic() < end, "no second word came"
        time.sleep(0.2)
    app.ask(f"/api/runs/{run}/stop", {})
    until(page, ".state[data-state]", "d.state === 'stopped'")
    assert cell(page, "input.decode") == 1
    failed = begin(app, prompt="word " * 2000, notes=False, max_new_tokens=4)
    page = at(visit, app, failed, f"&lang={lang}")
    until(page, ".state[data-state]", "d.state === 'failed'")
    expect(page.get_by_text("1024").first).to_be_visible()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_without_notes_says_so_in_the_exam_room_and_here(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **PAPER, notes=False)
    third = [event["at"] for event in app.lines(run) if event["type"] == "chose"][2]
    page = visit(f"{app.address}/?run={run}&at={third}&lang={lang}")
    expect(page.get_by_text(say("scene.head.reread", lang)).first).to_be_visible(timeout=LONG)
    page = at(visit, app, run, f"&lang={lang}")
    expect(page.get_by_text(say("two_stages.table.no_notes", lang))).to_be_visible()
    assert page.locator("[data-cell='input.decode']").count() == 0
    page = station(visit, app, "notes", f"run={run}&lang={lang}")
    said = say("notes.overview.none", lang, word="").strip()
    expect(page.locator("[data-note]")).to_contain_text(said.lstrip("：: "))
