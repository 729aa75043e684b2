"""Waiting, in a real browser: papers are really sat; what is kept and drawn is their traces' own; it can be felt."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from statistics import median

import pytest
from playwright.sync_api import Page, expect

from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, begin, figure, fits_a_phone, sit, until
from tests.e2e.stations import at as station

Visit = Callable[..., Page]
SWEEP = 4 * LONG
"""Milliseconds for a handful of runs on a slow machine. Only a failure waits so long."""


def at(visit: Visit, app: App, query: str = "") -> Page:
    return station(visit, app, "waiting", query)


def drawn(page: Page, name: str, meta: str) -> list[list[float]]:
    """The points of a chart's trace, [[x, y], …]."""
    trace = figure(page, name).get(meta, {"x": [], "y": []})
    return [list(point) for point in zip(trace["x"], trace["y"], strict=True)]


def test_papers_are_sat_and_their_own_times_are_kept_drawn_and_exported(app: App, visit: Visit) -> None:
    page = at(visit, app)
    page.locator("[data-choose=most]").select_option("256")
    page.locator("[data-do=sweep]").click()
    page.wait_for_selector("[data-measure=sweep][data-state=finished]", timeout=SWEEP)
    told = app.ask("/api/measures")
    waits = sorted(
        (one for name, one in told["results"].items() if name.startswith("wait/")), key=lambda w: w["prompt"]
    )
    assert len(waits) == 4
    rows = page.locator("[data-wait]").evaluate_all("(all) => all.map((e) => ({...e.dataset}))")
    for wait, row in zip(waits, rows, strict=True):
        arrivals = [event["at"] for event in app.lines(row["run"]) if event["type"] == "chose"]
        assert (int(row["wait"]), float(row["ttft"])) == (wait["prompt"], arrivals[0])
        assert float(row["pace"]) == pytest.approx(median(b - a for a, b in pairwise(arrivals)))
    assert drawn(page, "waiting-ttft", "point") == [[wait["prompt"], wait["ttft"]] for wait in waits]
    paced = [wait for wait in waits if wait["middle"] is not None]
    points = [[sum(wait["contexts"]) / len(wait["contexts"]), 1000 * wait["middle"]] for wait in paced]
    assert drawn(page, "waiting-tpot", "point") == [pytest.approx(point) for point in points]
    fit = page.locator("[data-fit=ttft]").evaluate("(e) => ({...e.dataset})")
    assert [float(fit[name]) for name in "abc"] == [told["fits"]["ttft"][name] for name in "abc"]
    assert len(drawn(page, "waiting-ttft", "curve")) > 20
    off = [[wait["prompt"], 1000 * left] for wait, left in zip(waits, told["fits"]["ttft"]["residuals"], strict=True)]
    assert drawn(page, "waiting-ttft", "residual") == [pytest.approx(point) for point in off]
    reads_by_keyboard(page)
    for form in ("csv", "json"):
        with page.expect_download() as download:
            page.locator(f"[data-do=export-{form}]").click()
        text = download.value.path().read_text("utf-8")
        if form == "csv":
            assert [line.split(",")[0] for line in text.splitlines()] == ["prompt", *(str(w["prompt"]) for w in waits)]
        else:
            assert json.loads(text)["waits"] == waits and json.loads(text)["machine"] == told["machine"]
    curve = told["fits"]
    for name, (prompt, answer) in {"chat": (150, 200), "own": (500, 100)}.items():
        row = page.locator(f"[data-scenario={name}]").evaluate("(e) => ({...e.dataset})")
        ttft, tpot = ((one["a"] + one["b"] * n + one["c"] * n * n) for one, n in
                      ((curve["ttft"], prompt), (curve["tpot"], prompt + answer / 2)))  # fmt: skip
        assert float(row["waiting"]) == pytest.approx(max(0, ttft))
        assert float(row["typing"]) == pytest.approx((answer - 1) * max(0, tpot))
    page.locator("[data-own=paper]").fill("20000")
    expect(page.locator("[data-scenario=own]")).to_contain_text("8,192")
    fits_a_phone(page)


def reads_by_keyboard(page: Page) -> None:
    """Arrow keys go from point to point, and each is said; the picture and the table can be taken away."""
    chart = page.locator("[data-figure=waiting-ttft]")
    first = figure(page, "waiting-ttft")["point"]["hovertext"]
    chart.locator(".drawing").focus()
    heard = []
    for _ in range(12):
        page.keyboard.press("ArrowRight")
        heard.append(chart.locator("[aria-live]").inner_text())
    assert set(first) <= set(heard)
    with page.expect_download() as download:
        chart.locator("[data-form=csv]").click()
    assert download.value.path().read_text("utf-8").startswith("kind,tokens,seconds,fitted,residual")
    chart.hover()
    with page.expect_download() as download:
        chart.locator(".modebar-btn").first.click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_sweep_can_be_stopped_in_the_middle_of_a_paper(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, f"lang={lang}")
    before = len(app.ask("/api/measures")["results"])
    page.locator("[data-choose=most]").select_option("4096")
    page.locator("[data-do=sweep]").click()
    page.wait_for_selector("[data-measure=sweep][data-state=running]", timeout=LONG)
    page.locator("[data-do=sweep-stop]").click()
    page.wait_for_selector("[data-measure=sweep][data-state=stopped]", timeout=LONG)
    expect(page.locator("[data-do=sweep]")).to_be_visible()
    assert app.ask("/api/health")["active"] == 0
    assert len(app.ask("/api/measures")["results"]) <= before + 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_two_sheets_type_each_at_its_own_pace(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, f"lang={lang}")
    for pane, (ttft, tpot) in enumerate(((0, 5), (10, 500))):
        page.locator(f"[data-feel=ttft-{pane}]").fill(str(ttft))
        page.locator(f"[data-feel=tpot-{pane}]").fill(str(tpot))
    page.locator("[data-do=feel]").click()
    until(page, "[data-pane='0'] [data-typed]", "Number(d.typed) > 20")
    assert page.locator("[data-pane='1'] [data-typed]").get_attribute("data-typed") == "0", "it still waits"
    text = page.locator("[data-pane='0'] [data-typed]").inner_text()
    assert say("waiting.feel.text", lang).startswith(text.strip()[:20])
    page.locator("[data-do=feel-stop]").click()
    expect(page.locator("[data-do=feel]")).to_be_visible()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_run_on_show_says_how_long_it_made_one_wait(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, prompt="What is the capital of France?", max_new_tokens=6)
    page = at(visit, app, f"run={run}&lang={lang}")
    until(page, ".state[data-state]", "d.state === 'finished'")
    summary = app.ask(f"/api/runs/{run}")
    told = page.locator(".state[data-state]").evaluate("(e) => ({...e.dataset})")
    assert float(told["ttft"]) == summary["ttft"] and float(told["tpot"]) == pytest.approx(summary["tpot"])
    going = begin(app, prompt="Tell me a very long story about a lighthouse.", max_new_tokens=512)
    page = at(visit, app, f"run={going}&lang={lang}")
    until(page, ".state[data-state]", "d.state === 'running'")
    app.ask(f"/api/runs/{going}/stop", {})
    until(page, ".state[data-state]", "d.state === 'stopped'")
    failed = begin(app, prompt="word " * 2000, notes=False, max_new_tokens=4)
    page = at(visit, app, f"run={failed}&lang={lang}")
    until(page, ".state[data-state]", "d.state === 'failed'")
