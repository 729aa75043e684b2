"""Speculative decoding in a real browser: the page's rule is the engine's, its figures are the API's, and guesses are
pencil, ink or struck out in the exam room."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from engine.labs.lessons import paper
from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.room import Room
from tests.e2e.stations import LONG, at, data, figure, measured, redrawn, sit, until

Visit = Callable[..., Page]
CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "fixtures" / "lookup.json").read_text("utf-8"))
POEM = paper("speculative", "copy").prompt
MOST = 8
REHEARSED = """async ([cases, prompt, answer, most, limit]) => {
  const { lookUp, rehearse } = await import('/stations/speculative/lookup.js')
  return [cases.map(({ text, most }) => lookUp(text, most).ids), rehearse(prompt, answer, most, limit).map(({ ids, accepted }) => ({ ids, accepted }))]
}"""  # noqa: E501


def copied(app: App, draft: int) -> list[dict[str, Any]]:
    """The poem copied with so many guesses: what happened."""
    return app.lines(run_of(app, draft))


def run_of(app: App, draft: int) -> str:
    return sit(app, prompt=POEM, max_new_tokens=40, draft=draft)


def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == kind]


def passes(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps after prefill: the ids guessed, and how many were accepted."""
    return [
        {"ids": [one["id"] for one in step["drafts"]], "accepted": step["accepted"]} for step in of(lines, "decoded")
    ]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_this_runs_guesses_are_the_engines(app: App, visit: Visit, lang: str) -> None:
    """On a run without guesses the page tells those it would have made; the engine really made them on another."""
    plain, drafted = copied(app, 0), copied(app, MOST)
    ids = [word["token"]["id"] for word in of(plain, "chose")]
    assert ids == [word["token"]["id"] for word in of(drafted, "chose")], "the same answer"
    steps = passes(drafted)
    accepted, offered = sum(each["accepted"] for each in steps), sum(len(each["ids"]) for each in steps)
    assert 0 < accepted < offered, "the poem has guesses of both kinds"
    page = at(visit, app, "speculative", f"run={run_of(app, 0)}&lang={lang}")
    until(page, "[data-drafts]", "d.step")
    prompt = [token["id"] for token in of(plain, "started")[0]["prompt"]]
    rule, rehearsed = page.evaluate(REHEARSED, [CASES, prompt, ids, MOST, 40])
    assert rule == [case["draft"] for case in CASES]
    assert rehearsed == steps
    own = data(page, "[data-own]")
    assert [int(own[key]) for key in ("steps", "accepted", "offered", "words")] == [
        len(steps), accepted, offered, len(ids),
    ]  # fmt: skip
    problem = data(page, "[data-problem]")
    assert (int(problem["words"]), int(problem["passes"])) == (len(ids), len(ids) - 1)
    page.locator(".drafts").press("Home")
    until(page, "[data-drafts]", "d.step === '1'")
    number, written = 0, 1
    for _ in range(int(data(page, "[data-drafts]")["of"])):
        told = data(page, "[data-drafts]")
        step = steps[int(told["pass"]) - 1]
        assert (int(told["offered"]), int(told["read"])) == (len(step["ids"]), 1 + len(step["ids"]))
        if told["what"] in ("judged", "plain"):
            number, written = number + 1, written + 1 + step["accepted"]
            struck = page.locator(".answer-sheet .struck").count()
            same_end = written == len(ids) and step["ids"][step["accepted"] :][:1] == ids[-1:]
            assert struck == max(0, len(step["ids"]) - step["accepted"] - same_end)
        else:
            assert page.locator(".answer-sheet .pencil").count() == len(step["ids"])
        assert int(told["words"]) == written
        page.locator("[data-do=step]").click()
    assert (number, written) == (len(steps), len(ids))
    page.locator(".drafts").press("ArrowLeft")
    until(page, "[data-drafts]", f"d.step === String({data(page, '[data-drafts]')['of']} - 1)")
    assert page.locator(".station").evaluate("(e) => e.scrollWidth - e.clientWidth") <= 1
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, ".station", "d.layout === 'phone'")
    assert page.locator(".station").evaluate("(e) => e.scrollWidth - e.clientWidth") <= 1


def test_figures_are_the_apis(app: App, visit: Visit) -> None:
    figures = measured(app, "speculative", "answer/copy/8", "passes", "smaller")["figures"]
    (answer,) = [one for one in figures["answers"] if (one["paper"], one["draft"]) == ("copy", 8)]
    page = at(visit, app, "speculative", "run=open-book&lang=en")
    until(page, "[data-lab]", "d.figures === 'own'")
    row = page.locator("[data-row=copy-8]")
    for cell in ("tokens", "steps", "per_step", "offered", "accepted", "rate"):
        assert float(row.locator(f"[data-cell={cell}]").get_attribute("data-value") or "") == answer[cell]
    assert data(page, "[data-row=copy-8] [data-reads]")["reads"] == " ".join(map(str, answer["reads"]))
    for side in ("plain", "drafted"):
        bars = figure(page, "speculative-words")[side]
        drawn = dict(zip(bars["customdata"], bars["y"], strict=True))
        assert drawn["copy/8"] == pytest.approx(1000 * answer[side]["middle"])
    bars = figure(page, "speculative-passes")["pass"]
    assert dict(zip(bars["customdata"], bars["y"], strict=True)) == pytest.approx(
        {str(one["rows"]): 1000 * one["middle"] for one in figures["passes"]["rows"]}
    )
    pays = figure(page, "speculative-pays")
    place = pays["answer"]["customdata"].index(["copy", 8, ""])
    assert (pays["answer"]["x"][place], pays["answer"]["y"][place]) == (answer["each"], answer["ratio"])
    for k, value in figures["passes"]["needed"].items():
        assert float(data(page, f"[data-needed] [data-k='{k}']")["value"]) == value
    assert float(data(page, "[data-expected=copy-8]")["value"]) == answer["expected"]
    smaller = data(page, "[data-smaller]")
    assert smaller["name"] == figures["smaller"]["name"] == ""
    assert smaller["looked"] == " ".join(f"{one['name']}:{one['why']}" for one in figures["smaller"]["looked"])
    expect(page.locator("[data-smaller]")).to_contain_text(say("speculative.smaller.none", "en"))
    same = data(page, "[data-same][data-of]")
    assert int(same["same"]) == int(same["of"]) == figures["same"]["of"] == figures["same"]["same"]
    page.locator("[data-source=copy]").click()
    assert data(page, "[data-drafts]")["source"] == "copy"


def shown(page: Page) -> tuple[int, int, int]:
    """On the answer sheet: words from guesses in ink, guesses in pencil, guesses struck through."""
    ink = page.locator(".written.drafted").evaluate_all(
        "(all) => all.filter((e) => e.style.visibility === 'visible').length"
    )
    return int(ink), page.locator(".guesses .pencil").count(), page.locator(".guesses .struck").count()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_guesses_are_pencil_ink_or_struck_out_in_the_exam_room(app: App, visit: Visit, lang: str) -> None:
    run = run_of(app, MOST)
    lines = app.lines(run)
    steps = of(lines, "decoded")
    some = next(k for k, step in enumerate(steps) if 0 < step["accepted"] < len(step["drafts"]))
    step = steps[some]
    page = visit(f"{app.address}/?run={run}&at=0&lang={lang}")
    room = Room(page)
    room.until(f"m.events === '{len(lines)}'")
    page.keyboard.press("Home")
    page.locator(".say h1").wait_for()

    def forward(condition: str) -> Any:
        for _ in range(200):
            moment = room.moment
            if eval(condition, {"m": moment.data}):
                return moment
            page.keyboard.press("ArrowRight")
            redrawn(page)
        raise AssertionError(condition)

    moment = forward(f"m['guess'] == 'read' and m['passes'] == '{some}'")
    assert int(moment.query) == step["read"] == 1 + len(step["drafts"])
    assert moment.drafts == " ".join(str(one["id"]) for one in step["drafts"]) and moment.right == ""
    assert shown(page)[1:] == (len(step["drafts"]), 0)
    assert say("scene.head.guess", lang) == room.headline
    moment = forward(f"m['guess'] == 'judged' and m['passes'] == '{some + 1}'")
    written = int(moment.chosen)
    for _ in range(step["accepted"]):
        page.keyboard.press("ArrowRight")
        redrawn(page)
    moment = room.moment
    assert int(moment.chosen) == written + step["accepted"] and int(moment.right) == step["accepted"]
    ink, pencil, struck = shown(page)
    assert (pencil, struck) == (0, len(step["drafts"]) - step["accepted"])
    assert ink == sum(one["accepted"] for one in steps[: some + 1]) == int(moment.accepted)
    assert room.headline == say("scene.head.guess_some", lang)
    expect(page.locator(".say p").first).to_contain_text(str(step["read"]))
    page.keyboard.press("End")
    moment = room.until("m.reason")
    assert (int(moment.passes), int(moment.offered), int(moment.accepted)) == (
        len(steps), sum(len(one["drafts"]) for one in steps), sum(one["accepted"] for one in steps),
    )  # fmt: skip
    assert moment.guess == "" and shown(page)[1:] == (0, 0)
    page.keyboard.press("Home")
    room.until("m.chosen === '0'")
    assert shown(page) == (0, 0, 0), "nothing is left when one goes back"


def test_they_play_beside_a_run_without_guesses(app: App, visit: Visit) -> None:
    page = visit(f"{app.address}/compare?run={run_of(app, 0)}&beside={run_of(app, MOST)}&lang=en")
    page.wait_for_function(
        """() => {
          const deep = (root) => [...root.querySelectorAll('*')].flatMap((e) => [e, ...(e.shadowRoot ? deep(e.shadowRoot) : [])])
          const words = deep(document).filter((e) => e.matches('.written.drafted'))
          return words.length > 5
        }""",  # noqa: E501
        timeout=LONG,
    )
    accepted = sum(step["accepted"] for step in of(copied(app, MOST), "decoded"))
    assert page.locator(".written.drafted").count() <= accepted


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_model_that_nobody_knows_cannot_guess_and_a_sentence_says_so(app: App, lang: str) -> None:
    body = json.dumps({"prompt": "Hello", "draft": 4, "draft_model": "nobody"}).encode()
    headers = {"Content-Type": "application/json", "Accept-Language": lang}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{app.address}/api/runs", body, headers), timeout=30)
    error = json.load(refused.value)["error"]
    assert error["code"] == "unknown_model" and error["message"] == say("errors.unknown_model", lang, **error["values"])
    assert "nobody" in error["message"]
