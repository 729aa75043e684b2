"""Chunked prefill and continuous batching in a real browser: figures are the API's, everybody is drawn on one clock,
the runs that sit at the same time open in the exam room, and who waits for a turn says so."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from engine.labs import LABS
from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, until
from tests.e2e.test_remedies import PATIENT, Visit, at, data, measured


def lanes(page: Page, scope: str = "") -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = page.locator(f"{scope} [data-who]").evaluate_all(
        "(all) => Object.fromEntries(all.map((e) => [e.dataset.who, {...e.dataset}]))"
    )
    return found


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
        both = lanes(page, "[data-part=idea]")
        assert int(both["A"]["words"]) == len(sitting["words"]) and float(both["B"]["arrived"]) == sitting["arrived"]
        assert page.locator("[data-part=idea] [data-who=B] .reads").count() == len(sitting["chunks"])
        for figure in ("stall", "ttft"):
            bar = data(page, f"[data-bar='{figure}-1024-{point['chunk']}']")
            assert float(bar["value"]) == point[figure]["middle"]
    end = float(data(page, "[data-desk]")["end"])
    for share in (0.0, 0.5, 1.0):
        moved(page, share)
        shown, now = lanes(page, "[data-part=idea]"), float(data(page, "[data-desk]")["at"])
        assert now == pytest.approx(share * end, rel=1e-6)
        assert (shown["B"]["state"] == "away") == (now < sitting["arrived"])
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
        assert float(data(page, f"[data-bar=rate-{one['way']}]")["value"]) == one["rate"]
        shown = lanes(page, "[data-part=idea]")
        for member in one["members"]:
            drawn = shown[member["name"]]
            assert float(drawn["arrived"]) == member["arrived"] and int(drawn["words"]) == len(member["words"])
            cell = page.locator(f"[data-cell={one['way']}-{member['name']}-ttft]").get_attribute("data-value")
            assert float(cell or "nan") == member["ttft"]
        moved(page, 0)
        page.locator("[data-do=step]").first.click()
        assert float(data(page, "[data-desk]")["at"]) == pytest.approx(one["turns"][0]["stop"])
    last = figures["batches"][-1]
    batch = data(page, "[data-batch]")
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
        b = lanes(page, "[data-live=chunked]")["B"]
        assert page.locator("[data-live=chunked] [data-who=B] .reads").count() == len(passes["chunked_b"])
        a = lanes(page, "[data-live=whole]")["A"]
        assert float(b["arrived"]) > 0 and float(a["arrived"]) == 0
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
