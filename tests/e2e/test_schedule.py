"""Chunked prefill and continuous batching in a real browser: figures are the API's, everybody is drawn on one clock,
the runs that sit at the same time open in the exam room, and who waits for a turn says so."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from engine.labs import LABS
from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, figure, until
from tests.e2e.test_remedies import PATIENT, Visit, at, data, measured


def lanes(drawn: dict[str, Any], kind: str) -> dict[str, list[tuple[float, float]]]:
    """Start and stop of what is drawn of a kind, by lane."""
    found: dict[str, list[tuple[float, float]]] = {}
    trace = drawn.get(kind, {"customdata": []})
    for number, (lane, _) in enumerate(trace["customdata"]):
        start = trace["x"][number] if kind == "word" else trace["base"][number]
        found.setdefault(lane, []).append((start, start if kind == "word" else start + trace["x"][number]))
    return found


def states(page: Page) -> dict[str, str]:
    told: dict[str, str] = json.loads(data(page, "[data-desk]")["states"])
    return told


def shown(page: Page, name: str, told: Callable[[dict[str, Any]], Any], value: Any, scope: str = "") -> dict[str, Any]:
    """A chart once it tells what it must: it is asked for anew with every choice."""
    end = time.monotonic() + LONG / 1000
    while told(drawn := figure(page, name, scope)) != value:
        assert time.monotonic() < end, f"{name} never showed it"
        page.wait_for_timeout(50)
    return drawn


def words_of(drawn: dict[str, Any], lane: str = "A") -> list[float]:
    return [at for at, _ in lanes(drawn, "word").get(lane, [])]


def moved(page: Page, share: float) -> None:
    page.locator("[data-do=scrub]").first.fill(str(round(1000 * share)))


def brief(route: Route) -> None:
    """The lab as the service tells it, but that its runs are shorter: they are sat in seconds."""
    told = route.fetch().json()
    for settings in told["runs"].values():
        settings["prompt"] = settings["prompt"][-1200:]
        settings["max_new_tokens"] = min(settings["max_new_tokens"], 16)
    route.fulfill(json=told)


def test_every_chunk_size_is_drawn_as_it_was_run(app: App, visit: Visit) -> None:
    figures = measured(app, "chunked", "1024/whole", "1024/256")["figures"]
    (length,) = figures["lengths"]
    page = at(visit, app, "chunked", "run=open-book&lang=zh")
    until(page, "[data-chunk]", "d.stall")
    for number, point in enumerate(length["points"]):
        page.locator("[data-do=chunk]").fill(str(number))
        told, sitting = data(page, "[data-chunk]"), point["sitting"]
        assert [float(told[name]) for name in ("chunk", "stall", "ttft", "passes")] == [
            point["chunk"], point["stall"]["middle"], point["ttft"]["middle"], point["passes"],
        ]  # fmt: skip
        drawn = shown(page, "chunked-desk", words_of, sitting["words"])
        assert [at for at, _ in lanes(drawn, "word")["B"]] == sitting["late"]
        assert [start for start, _ in lanes(drawn, "read")["B"]] == [chunk[0] for chunk in sitting["chunks"]]
        (pause,) = lanes(drawn, "rest")["A"]
        assert pause[1] - pause[0] == pytest.approx(sitting["stall"])
        ring = (point["ttft"]["middle"], point["stall"]["middle"])
        trade = shown(page, "chunked-trade", lambda one: (one["now"]["x"][0], one["now"]["y"][0]), ring)
        assert list(zip(trade["sizes"]["x"], trade["sizes"]["y"], strict=True)) == [
            (one["ttft"]["middle"], one["stall"]["middle"]) for one in length["points"]
        ]
    for name in ("stall", "ttft"):
        bars = figure(page, f"chunked-{name}")["1024"]
        assert dict(zip(bars["customdata"], bars["y"], strict=True)) == {
            str(point["chunk"]): point[name]["middle"] for point in length["points"]
        }
    end = float(data(page, "[data-desk]")["end"])
    for share in (0.0, 0.5, 1.0):
        moved(page, share)
        now = float(data(page, "[data-desk]")["at"])
        assert now == pytest.approx(share * end, rel=1e-6)
        assert (states(page)["B"] == "away") == (now < sitting["arrived"])
    moved(page, 0)
    page.locator("[data-do=play]").first.click()
    expect(page.locator("[data-do=play]").first).to_have_text(say("chunked.desk.pause", "zh"))
    until(page, "[data-desk]", "d.at > 0.2")
    answers = data(page, "[data-answers]")
    assert answers["same"] == answers["of"] == str(figures["answers"]["of"]) != "0"


def test_eight_people_are_drawn_as_they_were_served(app: App, visit: Visit) -> None:
    pieces = ("company/alone", "company/continuous", "batch/1", "batch/4")
    figures = measured(app, "batching", *pieces)["figures"]
    page = at(visit, app, "batching", "run=open-book&lang=en")
    until(page, "[data-way]", "d.rate")
    for one in figures["ways"]:
        page.locator(f"[data-do=way-{one['way']}] + span").click()
        until(page, "[data-way]", f"d.way === '{one['way']}'")
        assert float(data(page, "[data-way]")["rate"]) == one["rate"]
        bars = figure(page, "batching-ways")
        assert bars[f"rate-{one['way']}"]["y"] == [one["rate"]]
        drawn = shown(page, "batching-desk", lambda told: words_of(told, "H"), one["members"][-1]["words"])
        for member in one["members"]:
            assert [at for at, _ in lanes(drawn, "word")[member["name"]]] == member["words"]
            assert lanes(drawn, "wait").get(member["name"], [(member["arrived"], 0)])[0][0] == member["arrived"]
            cell = page.locator(f"[data-cell={one['way']}-{member['name']}-ttft]").get_attribute("data-value")
            assert float(cell or "nan") == member["ttft"]
        moved(page, 0)
        page.locator("[data-do=step]").first.click()
        assert float(data(page, "[data-desk]")["at"]) == pytest.approx(one["turns"][0]["stop"])
    last = figures["batches"][-1]
    batch = data(page, "[data-batch]")
    assert figure(page, "batching-rate")["steps"]["y"] == [each["rate"] for each in figures["batches"]]
    assert (float(batch["rate"]), float(batch["tpot"])) == (last["rate"], last["tpot"]["middle"])
    answers = data(page, "[data-answers]")
    assert answers["same"] == answers["of"] == "8"
    problem = data(page, "[data-problem]")
    assert int(problem["steps"]) == sum(line["type"] == "decoded" for line in app.lines("open-book"))
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator(".station").evaluate("(e) => e.scrollWidth - e.clientWidth") <= 1


@pytest.mark.parametrize(("lab", "lang"), [("chunked", "en"), ("batching", "zh")])
def test_runs_that_sit_at_the_same_time_are_drawn_and_open_in_the_exam_room(
    app: App, visit: Visit, lab: str, lang: str
) -> None:
    page = at(visit, app, lab, f"run=open-book&lang={lang}")
    page.route(f"**/api/labs/{lab}?*", brief)
    page.reload()
    page.wait_for_selector(".station[data-ready=true]", timeout=LONG)
    page.locator("[data-do=both]:enabled").click(timeout=LONG)
    page.wait_for_selector("[data-both=finished]", timeout=PATIENT)
    assert data(page, "[data-both]")["same"] == "true"
    lines: dict[str, list[dict[str, Any]]] = {
        name: app.lines(data(page, f"[data-sat={name}]")["run"]) for name in LABS[lab].runs()
    }
    if lab == "chunked":
        passes = {name: [one for one in told if one["type"] == "prefilled"] for name, told in lines.items()}
        assert len(passes["whole_b"]) == 1 and {one["stop"] - one["start"] for one in passes["chunked_b"][:-1]} == {64}
        b = say("chunked.people.B", lang)
        drawn = shown(
            page, "together", lambda one: len(lanes(one, "read").get(b, [])), len(passes["chunked_b"]),
            "[data-live=chunked]",
        )  # fmt: skip
        assert lanes(drawn, "wait")[b][0][0] > 0
        run = data(page, "[data-sat=chunked_b]")["run"]
    else:
        waits = [one for one in lines["alone_3"] if one["type"] == "queued" and one["ahead"]]
        assert [one["ahead"] for one in waits] == [2, 1], "it said how many were before it"
        together = [one["together"] for one in lines["continuous_1"] if one["type"] == "decoded"]
        assert max(together) > 1 and {
            one["together"] for name in ("alone_1", "alone_2", "alone_3") for one in lines[name] if "together" in one
        } == {1}
        run = data(page, "[data-sat=alone_3]")["run"]
    page.locator(f"[data-run='{run}'] a[data-to=exam_room]").click()
    page.wait_for_selector(f"[data-moment][data-run='{run}']", timeout=LONG, state="attached")
    if lab == "batching":
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("[data-moment][data-phase=queued]", timeout=LONG, state="attached")
        assert say("scene.head.queued", lang) in page.locator(".exam-scene").inner_text()
