"""Disaggregation in a real browser: figures are the API's, sliders ask anew, a seed brings the same people, and what is
drawn at a moment is what the simulation did then."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import figure, until
from tests.e2e.test_remedies import at, data, measured

Visit = Callable[..., Page]
PIECES = ["read/16", "read/64", "read/192", *(f"step/{batch}/{context}" for batch in (1, 2) for context in (16, 704))]
WAYS = ("colocated", "chunked", "split")


def asked(app: App, **query: Any) -> dict[str, Any]:
    return app.ask(f"/api/labs/disaggregation/simulate?{urlencode(query)}")


def costs(app: App) -> dict[str, Any]:
    """Figures, measured by whichever test comes first."""
    figures: dict[str, Any] = app.ask("/api/labs/disaggregation")["figures"]
    return figures if figures["simulated"] else measured(app, "disaggregation", *PIECES)["figures"]


def ready(page: Page, app: App, **query: Any) -> dict[str, Any]:
    """Once the page shows what is asked for: the API's answer, compared with the page's table and rules."""
    told = asked(app, **query)
    wanted = " && ".join(f"d.{name} === {json.dumps(str(value))}" for name, value in told["asked"].items()
                         if name in ("seed", "split", "mix"))  # fmt: skip
    number = f"Number(d.load) === {told['asked']['load']} && Number(d.bandwidth) === {told['asked']['bandwidth']}"
    until(page, "[data-simulation]", f"d.state === 'ready' && d.loads === 'ready' && {wanted} && {number}")
    assert float(data(page, "[data-simulation]")["rate"]) == told["rate"]
    shown: dict[str, str] = page.locator("[data-cell]").evaluate_all(
        "(all) => Object.fromEntries(all.map((e) => [e.dataset.cell, e.dataset.value]))"
    )
    for way in WAYS:
        summary = told["arrangements"][way]
        for what in ("ttft", "tpot", "pause"):
            for each, value in summary[what].items():
                assert float(shown[f"{way}-{what}-{each}"]) == value
        assert float(shown[f"{way}-words"]) == summary["words"] and float(shown[f"{way}-link"]) == summary["link"]
    assert data(page, "[data-rules]")["seed"] == str(told["asked"]["seed"])
    return told


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_figures_are_the_apis_and_the_sliders_ask_anew(app: App, visit: Visit, lang: str) -> None:
    figures = costs(app)
    page = at(visit, app, "disaggregation", f"run=open-book&lang={lang}")
    usual = ready(page, app)
    assert usual["arrangements"] == figures["simulated"]["arrangements"]
    assert page.locator("[data-simulation] .tag.simulated").inner_text() == say("scene.provenance.simulated", lang)
    expect(page.locator("[data-part=both] button")).to_have_count(1)
    expect(page.locator("[data-part=both] button")).to_be_hidden()
    assert int(data(page, "[data-costs]")["most"]) == figures["costs"]["most"]
    until(page, "[data-lab]", "d.figures === 'own'")
    curve = figure(page, "disaggregation-load-pause")["split"]
    for load, pause, told in zip(curve["x"], curve["y"], figures["loads"], strict=True):
        assert (load, pause) == pytest.approx((told["load"], sorted(told["split"]["pause"]["p90"])[1]))
    bars = figure(page, "disaggregation-ratios")
    for mix in figures["ratios"]:
        for way, found in mix["ways"].items():
            drawn = dict(zip(bars[way]["customdata"], bars[way]["y"], strict=True))
            assert drawn[mix["mix"]] == found["capacity"]
    points = figure(page, "disaggregation-reads")["point"]
    assert points["y"] == [one["seconds"]["middle"] for one in figures["reads"]]
    for name in ("ttft", "tpot", "pause"):
        assert figure(page, f"disaggregation-{name}")["split"]["y"][-1] == 1
    for mix in figures["ratios"]:
        for way, found in mix["ways"].items():
            assert float(data(page, f"[data-ratio='{mix['mix']}-{way}']")["value"]) == found["capacity"]
    page.locator("[data-do=another]").click()
    other = ready(page, app, seed=2)
    assert other["arrangements"] != usual["arrangements"]
    page.locator("[data-do=load]").fill("90")
    page.locator("[data-do=bandwidth]").fill("0")
    page.locator("[data-do=split]").select_option("1+3")
    page.locator("[data-do=mix]").select_option("stories")
    slow = ready(page, app, seed=2, load=0.9, bandwidth=1e7, split="1+3", mix="stories")
    link = parse_qs(urlsplit(page.url).query)
    chosen = {"seed": "2", "load": "0.9", "bandwidth": "10000000", "split": "1+3", "mix": "stories"}
    assert link.items() >= {name: [value] for name, value in chosen.items()}.items()
    assert page.locator("[data-arrangement=split] [data-machine]").count() == 5 == slow["machines"] + 1
    for name, value in {"load": "70", "bandwidth": "3"}.items():
        page.locator(f"[data-do={name}]").fill(value)
    page.locator("[data-do=split]").select_option("1+1")
    page.locator("[data-do=mix]").select_option("questions")
    page.locator("[data-do=seed]").fill("1")
    page.locator("[data-do=seed]").press("Enter")
    assert ready(page, app, seed=1)["arrangements"] == usual["arrangements"], "the same seed brings the same people"
    assert not parse_qs(urlsplit(page.url).query).keys() & chosen.keys(), "the usual need not be said"


def test_a_link_shows_the_same_simulation(app: App, visit: Visit) -> None:
    costs(app)
    page = at(
        visit, app, "disaggregation", "run=open-book&lang=en&load=0.9&bandwidth=1e9&split=3%2B1&mix=passages&seed=7"
    )
    ready(page, app, load=0.9, bandwidth=1e9, split="3+1", mix="passages", seed=7)
    page.locator("[data-do=seed]").fill("8")
    page.locator("[data-do=seed]").press("Enter")
    ready(page, app, load=0.9, bandwidth=1e9, split="3+1", mix="passages", seed=8)
    page.reload()
    ready(page, app, load=0.9, bandwidth=1e9, split="3+1", mix="passages", seed=8)
    page.goto(
        f"{app.address}/disaggregation?run=open-book&lang=en&load=40&bandwidth=5&split=9%2B9&mix=toString&seed=-1"
    )
    ready(page, app)


def test_what_is_drawn_at_a_moment_is_what_the_simulation_did(app: App, visit: Visit) -> None:
    told = costs(app)["simulated"]
    page = at(visit, app, "disaggregation", "run=open-book&lang=en", width=390, height=844)
    until(page, "[data-stage]", "d.at > 0")
    assert page.locator(".station").evaluate("(e) => e.scrollWidth - e.clientWidth") <= 1
    seen = set()
    for place in (0, 180, 350, 500, 650, 990):
        page.locator("[data-stage] [data-do=scrub]").fill(str(place))
        moment = float(data(page, "[data-stage]")["at"])
        assert moment == pytest.approx(place / 1000 * float(data(page, "[data-stage]")["until"]), abs=1e-6)
        for way in ("colocated", "split"):
            picture = told["arrangements"][way]["picture"]
            for machine in picture["machines"]:
                drawn = data(page, f"[data-arrangement={way}] [data-machine={machine['name']}]")
                reads = [person + 1 for start, stop, person, _ in machine["reads"] if start <= moment < stop]
                assert drawn["reads"] == (str(reads[0]) if reads else "")
                people = picture["people"]
                writes = [one for one in people if one["writer"] == machine["name"]
                          and (one["landed"] or one["first"]) <= moment < one["last"]]  # fmt: skip
                assert int(drawn["writes"]) == len(writes)
                assert int(drawn["rests"]) == (len(writes) if reads else 0)
                waits = [
                    one for one in people if one["reader"] == machine["name"] and one["at"] <= moment < one["began"]
                ]
                assert int(drawn["waits"]) == len(waits)
                seen |= {bool(reads), bool(writes) and "writes"}
                if way == "split":
                    assert not (reads and writes), "a machine that reads does not write"
    assert seen == {True, False, "writes"}, "the moments show something"
    person = int(data(page, "[data-stage]")["person"]) - 1
    one = told["arrangements"]["split"]["picture"]["people"][person]
    note = data(page, "[data-arrangement=split] [data-told]")
    assert float(note["ttft"]) == pytest.approx(one["words"][0] - one["at"])
    lanes = figure(page, "disaggregation-lanes", "[data-arrangement=split]")
    apart = told["arrangements"]["split"]["picture"]
    reads = zip(lanes["read"]["base"], lanes["read"]["customdata"], strict=True)
    assert [at for at, (lane, _) in reads if lane != "person"] == [
        start for machine in apart["machines"] for start, *_ in machine["reads"]
    ]
    assert lanes["word"]["x"] == one["words"]
    before = float(data(page, "[data-stage]")["at"])
    page.locator("[data-stage] [data-do=scrub]").fill("100")
    page.locator("[data-stage] [data-do=play]").click()
    expect(page.locator("[data-stage] [data-do=play]")).to_have_text(say("disaggregation.stage.pause", "en"))
    until(page, "[data-stage]", f"Number(d.at) > {before / 8}")
