"""Operator fusion and the whole table in a real browser: what is drawn is what was counted, both runs play, and the
button measures what is missing."""

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
from tests.e2e.stations import LONG, PATIENT, at, data, figure, fits_a_phone, measured, sit, until

Visit = Callable[..., Page]
PAPER = {"prompt": "Anna's cat is called Luna. What is the name of Anna's cat?", "max_new_tokens": 8}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_one_layers_operations_are_drawn_as_they_were_counted(app: App, visit: Visit, lang: str) -> None:
    told = measured(app, "fusion", "layer/1", "layer/128", "decode/128", "ids")
    page = at(visit, app, "fusion", f"run={sit(app, **PAPER)}&lang={lang}")
    until(page, "[data-lab]", "d.measured === '4'")
    figures = told["figures"]
    for layer in figures["layer"]:
        page.locator(f"button[data-rows='{layer['rows']}']").click()
        until(page, "[data-operations]", f"d.rows === '{layer['rows']}'")
        path = [(way, place) for way in layer["ways"] for place in range(len(layer["ways"][way]["steps"]))]
        assert int(data(page, "[data-operations]")["of"]) == len(path)
        for name, way in layer["ways"].items():
            lane = data(page, f"[data-lane={name}]")
            assert [int(lane[key]) for key in ("kernels", "calls", "steps", "memory")] == [
                way["kernels"], way["calls"], len(way["steps"]), way["memory"],
            ]  # fmt: skip
            boxes = page.locator(f"[data-lane={name}] [data-operation]")
            drawn = boxes.evaluate_all("(all) => all.map((e) => +e.dataset.bytes)")
            assert drawn == [step["weights"] + step["reads"] + step["writes"] for step in way["steps"]]
            calls = page.locator(f"[data-lane={name}] [data-call]")
            assert calls.count() == way["calls"]
            for cell in ("calls", "kernels", "memory", "weights", "allocated", "time", "difference"):
                shown = page.locator(f"[data-row='{layer['rows']}-{name}'] [data-cell={cell}]").get_attribute(
                    "data-value"
                )
                assert float(shown or "nan") == way[cell]
            bars = figure(page, "fusion-layer")[name]
            place = [rows for rows, _, _ in bars["customdata"]].index(layer["rows"])
            assert bars["x"][place] == way["seconds"]["middle"]
            assert bars["customdata"][place][2] == way["seconds"]["high"]
    assert data(page, "[data-lane=fused] [data-call]")["call"] == "6", "the norm is one call"
    page.locator("[data-operations] [data-do=scrub]").fill(str(len(path)))
    page.locator("[data-operations] [data-do=back]").click()
    moment = data(page, "[data-operations]")
    assert (int(moment["step"]), moment["way"]) == (len(path) - 1, path[-2][0])
    assert page.locator("[data-operations] .operation.now").count() == 1
    page.locator("[data-operations] [data-do=play]").click()
    until(page, "[data-operations]", "d.step === d.of")
    expect(page.locator("[data-operations] [data-do=play]")).to_have_text(say("fusion.operations.play", lang))
    (decode,) = figures["decode"]
    for side in ("apart", "fused"):
        bars = figure(page, "fusion-decode")[side]
        assert bars["x"] == [decode[side]["seconds"]["middle"]] and f"{decode[side]['calls']:,}" in bars["name"]
    assert int(data(page, "[data-problem]")["calls"]) == decode["apart"]["calls"] > decode["fused"]["calls"]
    assert figures["ids"]["same"] and data(page, "[data-ids]")["same"] == "true"
    piece = next(piece for piece in told["plan"] if piece.get("kind") == "compiled")
    assert data(page, "[data-compile]")["compile"] == (piece["lacking"] or "none")


def test_both_runs_of_fusion_are_ordinary_ones(app: App, visit: Visit) -> None:
    page = at(visit, app, "fusion", "run=open-book")
    page.locator("[data-do=both]:enabled").click(timeout=LONG)
    page.wait_for_selector("[data-both=finished]", timeout=PATIENT)
    assert data(page, "[data-both]")["same"] == "true"
    for name, settings in LABS["fusion"].runs().items():
        started = next(line for line in app.lines(data(page, f"[data-sat={name}]")["run"]) if line["type"] == "started")
        assert started["settings"]["fused"] == settings.fused
    fits_a_phone(page)
    fused = data(page, "[data-sat=fused]")["run"]
    page.locator("[data-to=exam_room]").last.click()
    page.wait_for_selector(f"[data-moment][data-run='{fused}']", timeout=LONG, state="attached")


def test_without_a_compiler_the_page_says_what_to_do(app: App, visit: Visit) -> None:
    def lacking(route: Route) -> None:
        reply = route.fetch()
        told = reply.json()
        for piece in told["plan"]:
            if piece["kind"] == "compiled":
                piece |= {"lacking": "no_compiler", "compiler": "some-compiler"}
        told["results"] = {name: one for name, one in told["results"].items() if not name.startswith("compiled")}
        route.fulfill(response=reply, json=told)

    page = visit("about:blank")
    page.route("**/api/labs/fusion?*", lacking)
    page.goto(f"{app.address}/fusion?lang=en&run=open-book")
    until(page, "[data-compile]", "d.compile === 'no_compiler'")
    sentence = say("errors.no_compiler", "en", compiler="some-compiler")
    assert page.locator("[data-compile]").inner_text().startswith(sentence)


KEPT = {"fusion": ["ids"], "groups": ["cache", "nothing/here"], "paged": ["room/capital/16"]}
"""What is left of the labs' plans here, so that measuring all of it takes seconds. One piece is nowhere to be had."""


def few(page: Page) -> None:
    """Let the page see few pieces, none of them measured before it came; what it measures is really measured."""
    seen: set[str] = set()

    def shorter(route: Route) -> None:
        reply = route.fetch()
        told = reply.json()
        if "plan" in told:
            plan = {piece["piece"]: piece for piece in told["plan"]}
            told["plan"] = [plan.get(name, {"piece": name}) for name in KEPT.get(told["name"], [])]
            told["results"] = {} if told["name"] not in seen else told["results"]
            seen.add(told["name"])
        route.fulfill(response=reply, json=told)

    page.route("**/api/labs/*", shorter)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_one_button_measures_what_is_missing(app: App, visit: Visit, lang: str) -> None:
    end = time.monotonic() + LONG / 1000
    while app.ask("/api/health")["active"]:
        assert time.monotonic() < end, "a run does not end"
        time.sleep(0.2)
    page = visit("about:blank")
    few(page)
    page.goto(f"{app.address}/remedies?lang={lang}")
    until(page, ".remedies", "d.missing === '4'")
    busy: list[Any] = []

    def others(route: Route) -> None:
        """Somebody's run goes on when the second piece is asked for; the next time it takes its time."""
        busy.append(route.request.post_data_json["piece"])
        if len(busy) == 2:
            code = "others_at_work"
            error = {"code": code, "values": {}, "message": say(f"errors.{code}", lang)}
            route.fulfill(status=503, json={"error": error})
        elif len(busy) != 3:
            route.continue_()

    page.route("**/api/measures", others)
    page.locator("[data-do=all]").click()
    page.wait_for_selector("[data-measure=all][data-state=failed]", timeout=PATIENT)
    assert say("errors.others_at_work", lang) in page.locator("[data-measure=all]").inner_text()
    assert data(page, ".remedies")["missing"] == "3", "the first is kept"
    page.locator("[data-do=all]").click()
    page.wait_for_selector("[data-remedy=groups].now", timeout=LONG)
    page.locator("[data-do=all-stop]").click()
    expect(page.locator("[data-measure=all]")).to_have_text(say("remedies.all.stopped", lang, n=0, of=3))
    page.locator("[data-do=all]").click()
    page.wait_for_selector("[data-measure=all][data-state=finished]", timeout=PATIENT)
    assert busy == ["ids", "cache", "cache", "cache", "nothing/here", "room/capital/16"], (
        "in the table's order, and on from there"
    )
    refused = page.locator("[data-remedy=groups] [data-refused='nothing/here']").inner_text()
    assert say("errors.no_piece", lang, piece="nothing/here", lab="groups") in refused
    expect(page.locator("[data-measure=all]")).to_have_text(say("remedies.all.passed", lang, n=2, of=3, refused=1))
    expect(page.locator("[data-do=all]")).to_be_disabled()
    labs = {lab["name"]: lab for lab in app.ask("/api/labs")["labs"]}
    for name in LABS:
        row = data(page, f"[data-remedy={name}]")
        gained, shipped = labs[name]["gained"], labs[name]["recorded"]
        assert row["source"] == ("measured" if gained else "recorded" if shipped and shipped["gained"] else "none")
        assert json.loads(row["values"]) == (gained or (shipped or {}).get("gained"))
        tags = page.locator(f"[data-remedy={name}] .tag")
        kind = {"measured": "simulated" if name == "disaggregation" else "measured", "recorded": "recorded"}
        assert tags.count() == (row["source"] != "none")
        if row["source"] != "none":
            expect(tags).to_have_class(f"tag {kind[row['source']]} mini")


def test_without_a_model_the_table_tells_what_was_recorded(app: App, visit: Visit) -> None:
    """And says why nothing can be measured."""
    why = say("errors.model_not_ready", "en", model="it")
    error = {"code": "model_not_ready", "values": {"model": "it"}, "message": why}
    page = visit("about:blank")
    page.route("**/api/labs", lambda route: route.fulfill(status=503, json={"error": error}))
    page.goto(f"{app.address}/remedies?lang=en")
    recorded = {lab["name"]: lab["recorded"] for lab in app.ask("/api/labs")["labs"]}
    until(page, "[data-remedy=prefix]", "d.source === 'recorded'")
    for name, shipped in recorded.items():
        row = data(page, f"[data-remedy={name}]")
        assert (row["gained"], json.loads(row["values"])) == ("false", shipped and shipped["gained"])
    expect(page.locator("[data-told]")).to_have_text(why)
    expect(page.locator("[data-do=all]")).to_be_disabled()
