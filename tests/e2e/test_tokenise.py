"""The first station in a real browser: every chip is the tokenizer's own token, and no text is lost or run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from engine import weights
from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import GEMMA, LONG, Cut, fits_a_phone, tokenizer, until
from views import lessons

Visit = Callable[..., Page]
TEXTS = [
    "👩‍🔬",
    "今天天气如何？",
    "a<b<c $5 and $6 **x**",
    "line\n\ttab" + " " * 15 + "end",
    "nul\0nul e\u0301 \u200d\ufeff",
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
    "שלום \u202eעולם\u202c",
]


@pytest.fixture
def page(app: App, visit: Visit) -> Page:
    return opened(visit(f"{app.address}/tokenise"))


def opened(page: Page, address: str = "") -> Page:
    if address:
        page.goto(address)
    page.wait_for_selector("[data-ready=true]", timeout=LONG)
    return page


def write(page: Page, text: str, **choices: str) -> None:
    for name, value in choices.items():
        page.locator(f"input[name={name}][value={value}]").evaluate("(input) => input.click()")
    box = page.locator("textarea[name=text]")
    box.evaluate("(box, text) => { box.value = text; box.dispatchEvent(new Event('input')) }", text)


def test_every_chip_is_the_tokenizers_own_token(page: Page) -> None:
    cut = Cut(page)
    for text in TEXTS:
        write(page, text, mode="raw")
        cut.until(text)
        library = tokenizer()(text, add_special_tokens=False, return_offsets_mapping=True)
        assert [token["id"] for token in cut.own] == library["input_ids"]
        assert [(token["start"], token["stop"]) for token in cut.own] == library["offset_mapping"]
        assert bytes.fromhex("".join(token["bytes"] for token in cut.own)) == text.encode()
        assert cut.data["round"] == "equal" and float(cut.data["seconds"]) > 0
        chips = cut.sheet.locator(".piece")
        assert chips.locator("i").all_inner_texts() == [str(index) for index in library["input_ids"]]
        assert cut.sheet.locator("script, img, strong, a").count() == 0 and page.evaluate("window.hacked") is None


def test_tokens_of_one_character_are_held_together_and_odd_signs_are_seen(page: Page) -> None:
    write(page, "👩‍🔬 orange", mode="raw")
    cut = Cut(page)
    cut.until("👩‍🔬 orange")
    groups: dict[int, list[dict[str, Any]]] = {}
    for token in cut.own:
        groups.setdefault(token["group"], []).append(token)
    spans = [(group[0]["start"], max(token["stop"] for token in group), len(group) > 1) for group in groups.values()]
    assert spans == [(0, 1, True), (1, 2, True), (2, 3, True), (3, 10, False)]
    several = cut.sheet.locator(".bundle.several")
    assert several.count() == 3
    assert [bundle.locator(".piece").count() for bundle in several.all()] == [
        len(group) for group in groups.values() if len(group) > 1
    ]
    write(page, "a<b  $5 **x**\n" + " " * 15 + "y", mode="raw")
    cut.until("a<b  $5 **x**\n" + " " * 15 + "y")
    shown = "".join(cut.sheet.locator(".piece b").all_inner_texts())
    assert shown == "a<b··$5·**x**↵" + "·" * 15 + "y"


def test_the_templates_marks_are_where_it_put_them(page: Page) -> None:
    write(page, "Luna?", mode="chat")
    cut = Cut(page)
    cut.until("Luna?")
    library = tokenizer().apply_chat_template(
        [{"role": "user", "content": "Luna?"}], add_generation_prompt=True, return_dict=True
    )
    assert [token["id"] for token in cut.tokens] == library["input_ids"]
    begin = tokenizer().convert_tokens_to_ids("<|im_start|>")
    assert [token["special"] for token in cut.tokens if token["id"] == begin] == [True] * 3
    assert (
        cut.sheet.locator(".pieces.before .special").count() + cut.sheet.locator(".pieces.after .special").count() == 5
    )
    assert cut.sheet.locator(".pieces.own .piece").count() == len(cut.own)


def test_a_typed_control_token_is_flagged_and_the_choice_is_seen(page: Page) -> None:
    text = "x <|im_end|> y"
    seen = {}
    for control in ("text", "control"):
        write(page, text, mode="raw", control=control)
        real = "true" if control == "control" else "false"
        held = "d.tokens && JSON.parse(d.tokens)"
        until(page, "[data-cut=first]", f"({held})[0].bytes === '78' && ({held}).some((t) => t.special) === {real}")
        seen[control] = [token["id"] for token in Cut(page).own]
        expect(page.locator(".hint[data-flagged='1']")).to_be_visible()
        expect(Cut(page).sheet.locator(".flagged")).to_have_count(1)
    end = tokenizer().convert_tokens_to_ids("<|im_end|>")
    assert end in seen["control"] and end not in seen["text"]
    assert seen["control"] == tokenizer()(text, add_special_tokens=False)["input_ids"]


def test_another_tokenizer_on_the_same_text(page: Page) -> None:
    page.locator("[data-sample=weather]").click()
    Cut(page).until("今天天气")
    assert len(Cut(page).own) == 9
    if weights.present(GEMMA):
        until(page, "[data-apart]", "d.apart === '9 2'")
        other = Cut(page, "other")
        assert [token["id"] for token in other.own] == tokenizer(GEMMA)("今天天气", add_special_tokens=False)[
            "input_ids"
        ]
        assert other.data["source"] == "measured"
    else:
        expect(page.locator(f".hint[data-model='{GEMMA}']")).to_be_visible()


def test_a_tokenizer_that_is_not_here_shows_what_was_recorded(app: App, visit: Visit) -> None:
    page = visit("about:blank")
    models = app.ask("/api/models")
    for model in models["models"]:
        model["present"] = model["default"]
    page.route("**/api/models", lambda route: route.fulfill(json=models))
    opened(page, f"{app.address}/tokenise")
    expect(page.locator(f".hint[data-model='{GEMMA}']")).to_contain_text("238")
    other = Cut(page, "other")
    (started,) = [event for event in app.lines("chinese") if event["type"] == "started"]
    assert [token["id"] for token in other.tokens] == [token["id"] for token in started["prompt"]]
    assert (other.data["source"], other.data["model"]) == ("recorded", GEMMA)
    assert float(other.data["seconds"]) == started["tokenise_seconds"]
    write(page, "still here")
    Cut(page).until("still here")


def test_tokens_per_word_are_counted_for_every_tokenizer_that_is_here(page: Page) -> None:
    rows = json.loads(page.locator("[data-rates]").get_attribute("data-rates") or "[]")
    assert [row["id"] for row in rows] == ["english", "chinese", "numbers", "code", "emoji"]
    here = [weights.DEFAULT, *([GEMMA] if weights.present(GEMMA) else [])]
    texts = {one["id"]: one["text"] for one in lessons.texts()}
    for row in rows:
        assert row["counts"] == [
            len(tokenizer(model)(texts[row["id"]], add_special_tokens=False)["input_ids"]) for model in here
        ]
    assert rows[0]["words"] == 12 and rows[4]["characters"] == 7


def test_the_vocabulary_is_searched(page: Page) -> None:
    page.locator("input[name=query]").fill("cat")
    until(page, "[data-hits]", "JSON.parse(d.hits).length === 50")
    hits = json.loads(page.locator("[data-hits]").get_attribute("data-hits") or "[]")
    assert {hit["id"] for hit in hits[:2]} == set(tokenizer().convert_tokens_to_ids(["cat", "Ġcat"]))
    assert all(b"cat" in bytes.fromhex(hit["bytes"]) for hit in hits)
    page.locator("input[name=query]").fill("there is no such piece")
    until(page, "[data-hits]", "d.hits === '[]'")


def test_what_cannot_be_cut_is_a_sentence_and_the_page_goes_on(page: Page) -> None:
    box = page.locator("textarea[name=text]")
    for text, code, said in (
        ("x" * 100_000, "text_too_long", "20000|20,000"), ("a\ud800b", "lone_surrogate", "half a character"),
    ):  # fmt: skip
        box.evaluate(
            "(box, text) => { box.value = JSON.parse(text); box.dispatchEvent(new Event('input')) }", json.dumps(text)
        )
        trouble = page.locator(f".refusal[data-code={code}]").first
        expect(trouble).to_be_visible()
        expect(trouble).to_have_text(re.compile(said))
        assert Cut(page).tokens == []
        write(page, f"fine again after {code}")
        Cut(page).until(f"fine again after {code}")
        expect(trouble).to_be_hidden()
    write(page, "", mode="chat")  # an empty box says what is left
    until(page, "[data-cut=first]", "d.own === '0 0'")
    expect(page.get_by_text("Nothing is written")).to_be_visible()
    assert Cut(page).tokens, "the format's own tokens"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_engine_that_is_not_there_is_a_sentence_and_the_page_goes_on(app: App, visit: Visit, lang: str) -> None:
    page = visit("about:blank")
    refusal = {"error": {"code": "engine_failed", "values": {}, "message": ""}}
    page.route("**/api/tokenise", lambda route: route.fulfill(status=503, json=refusal))
    opened(page, f"{app.address}/tokenise?lang={lang}")
    expect(page.locator(".refusal[data-code=engine_failed]").first).to_have_text(say("errors.engine_failed", lang))
    page.unroute("**/api/tokenise")
    write(page, "back again")
    Cut(page).until("back again")
    page.route("**/api/tokenise", lambda route: None)  # a model that is busy answers late
    write(page, "not cut yet")
    expect(page.locator(".cut[data-stale] .count-line").first).to_have_text(say("tokenise.stale", lang))
    page.unroute("**/api/tokenise")
    write(page, "cut at last")
    Cut(page).until("cut at last")
    expect(page.locator(".cut[data-stale]")).to_have_count(0)


@pytest.mark.parametrize(("lang", "title"), [("en", "Tokenise"), ("zh", "分词")])
def test_it_fits_the_window_in_both_languages(app: App, visit: Visit, lang: str, title: str) -> None:
    page = opened(visit(f"{app.address}/tokenise?lang={lang}"))
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    assert page.locator("[data-testid=stMain]").evaluate("(e) => e.scrollWidth") <= 1280
    fits_a_phone(page, "[data-testid=stMain]")


def test_run_and_moment_stay_when_the_page_changes(app: App, visit: Visit) -> None:
    page = opened(visit(f"{app.address}/tokenise?run=open-book&at=0.5&lang=en"))
    assert page.locator("textarea[name=text]").input_value() == app.ask("/api/runs/open-book")["prompt"]
    page.locator("nav summary").first.click()
    page.locator("nav a", has_text="Detokenise").click()
    page.wait_for_url("**/detokenise?*run=open-book*")
    assert "at=0.5" in page.url and "lang=en" in page.url
    page.wait_for_selector("[data-answer][data-run=open-book]")
    expect(page.locator("nav summary[aria-current]")).to_have_text(say("frame.stations"))


def test_another_run_can_be_chosen(app: App, page: Page) -> None:
    page.locator("select[data-do=run]").select_option("closed-book")
    page.wait_for_url("**/tokenise?*run=closed-book*")
    until(page, "[data-ready]", "d.ready")
    prompt = app.ask("/api/runs/closed-book")["prompt"]
    expect(page.locator("textarea[name=text]")).to_have_value(prompt, timeout=LONG)
    Cut(page).until(prompt)
