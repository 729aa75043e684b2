"""The last station in a real browser: what is held back, what is seen, and what haste would have shown."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, fits_a_phone, too_long, until

Visit = Callable[..., Page]


def opened(page: Page) -> Page:
    page.wait_for_selector("[data-ready=true]", timeout=LONG)
    return page


def data(page: Page) -> dict[str, str]:
    found: dict[str, str] = page.locator("[data-answer]").evaluate("(e) => ({...e.dataset})")
    return found


def expected(events: list[dict[str, Any]]) -> list[dict[str, str]]:
    """What should stand at every step, by Python's own incremental decoder and the engine's `wrote` events."""
    decoder, naive, steps = codecs.getincrementaldecoder("utf-8")("replace"), "", []
    whole = ""
    for event in events:
        if event["type"] == "chose":
            token = event["token"]
            read = b"" if token["special"] else base64.urlsafe_b64decode(token["bytes"])
            whole += decoder.decode(read)
            naive += read.decode("utf-8", "replace")
            steps.append({"held": decoder.getstate()[0].hex(" ").upper(), "naive": naive, "text": whole})
    return steps


@pytest.mark.parametrize(("lang", "name"), [("en", "emoji"), ("zh", "chinese"), ("en", "cut")])
def test_every_step_is_what_was_held_and_seen(app: App, visit: Visit, lang: str, name: str) -> None:
    page = opened(visit(f"{app.address}/detokenise?lang={lang}"))
    page.locator(f"[data-try={name}]").click()
    page.wait_for_url("**/detokenise?*run=*")
    run = page.url.split("run=")[1].split("&")[0]
    until(page, "[data-answer]", f"d.run === '{run}' && d.over === 'true'")
    events = app.lines(run)
    steps = expected(events)
    final = "".join(event["text"] for event in events if event["type"] == "wrote")
    assert sum(bool(step["held"]) for step in steps) > 3, "characters come in pieces, or nothing is shown here"
    assert data(page)["text"] == final
    page.locator(".station section.sheet").first.press("Home")
    for number, step in enumerate(steps):
        until(page, "[data-answer]", f"d.step === '{number}'")
        seen = data(page)
        assert (seen["held"], seen["text"], seen["naive"]) == (step["held"], step["text"], step["naive"]), number
        assert page.locator(".tape .held").count() == len(step["held"].split())
        assert page.locator(".seen:not(.naive)").inner_text().replace("▒", "").strip() == step["text"].strip()
        assert "\ufffd" not in seen["text"]
        page.locator(".station section.sheet").first.press("ArrowRight")
    assert data(page)["naive"].count("\ufffd") == int(data(page)["broken"]) > 3
    if name == "cut":
        until(page, "[data-answer]", f"d.step === '{len(steps)}'")
        assert steps[-1]["held"] and data(page)["end"] == "\ufffd" and data(page)["text"] == final
        assert page.locator(".seen:not(.naive)").inner_text().strip() == final.strip()


def test_a_moment_of_the_address_is_where_it_begins_and_steps_are_remembered(app: App, visit: Visit) -> None:
    chose = [event for event in app.lines("open-book") if event["type"] == "chose"]
    page = opened(visit(f"{app.address}/detokenise?run=open-book&at={chose[3]['at'] + 1e-4}"))
    until(page, "[data-answer]", "d.step === '3'")
    page.locator("[data-do=forward]").click()
    until(page, "[data-answer]", "d.step === '4'")
    page.wait_for_url(f"**at={chose[4]['at']:.6f}*")
    assert data(page)["ids"] == " ".join(str(event["token"]["id"]) for event in chose)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_that_goes_on_is_followed_and_one_that_was_stopped_is_told(app: App, visit: Visit, lang: str) -> None:
    body = {"prompt": "Tell me a very long story about a lighthouse.", "max_new_tokens": 512, "keep": True}
    run = app.ask("/api/runs", body)["id"]
    page = opened(visit(f"{app.address}/detokenise?run={run}&lang={lang}"))
    until(page, "[data-answer]", "Number(d.steps) > 3 && d.over === 'false'")
    app.ask(f"/api/runs/{run}/stop", {})
    until(page, "[data-answer]", "d.over === 'true'")
    chose = [event for event in app.lines(run) if event["type"] == "chose"]
    assert int(data(page)["steps"]) == len(chose) < 512
    assert data(page)["text"] == app.ask(f"/api/runs/{run}")["output_text"]


@pytest.mark.parametrize(("lang", "said"), [("en", "ended before its first word"), ("zh", "第一个词之前就结束")])
def test_a_run_that_failed_is_a_sentence(app: App, visit: Visit, lang: str, said: str) -> None:
    page = opened(visit(f"{app.address}/detokenise?run={too_long(app)}&lang={lang}"))
    until(page, "[data-answer]", "d.over === 'true'")
    expect(page.get_by_text(said)).to_be_visible()
    assert data(page)["steps"] == "0"
    page.locator("[data-do=forward]").click()
    expect(page.get_by_text(said)).to_be_visible()


def test_a_model_that_is_not_ready_is_a_sentence_and_the_page_goes_on(app: App, visit: Visit) -> None:
    page = opened(visit(f"{app.address}/detokenise"))
    refusal = {"error": {"code": "model_fetching", "values": {"model": "SmolLM2"}, "message": ""}}
    page.route("**/api/runs", lambda route: route.fulfill(status=503, json=refusal))
    page.locator("[data-try=emoji]").click()
    expect(page.get_by_role("alert")).to_have_text(say("errors.model_fetching", "en", model="SmolLM2"))
    page.locator("[data-do=back]").click()
    until(page, "[data-answer]", f"d.step === '{int(data(page)['steps']) - 2}'")
    assert app.ask("/api/runs/open-book")["output_text"].startswith(data(page)["text"])


def test_it_fits_the_window(app: App, visit: Visit) -> None:
    page = opened(visit(f"{app.address}/detokenise?lang=zh"))
    expect(page.get_by_role("heading", name="还原文本", exact=True)).to_be_visible()
    assert page.locator("[data-testid=stMain]").evaluate("(e) => e.scrollWidth") <= 1280
    fits_a_phone(page, "[data-testid=stMain]")
