"""Two runs side by side in a real browser: both on one clock, and the numbers between them are the two traces' own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from statistics import median
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect

from engine.trace import Trace, summary
from engine.trace import file as tracefile
from engine.words import area_words, say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, at, begin, data, over, redrawn, until

Visit = Callable[..., Page]
RECORDINGS = Path(__file__).parents[2] / "assets" / "recordings"
SHORT = {"prompt": "What is the capital of France?", "max_new_tokens": 8}
LENGTHY = {"prompt": "Count to a thousand.", "max_new_tokens": 512, "temperature": 1.5}


def recorded(name: str) -> Trace:
    return tracefile.read((RECORDINGS / f"{name}.trace").read_bytes()).trace


def compare(visit: Visit, app: App, run: str, beside: str, query: str = "") -> Page:
    return at(visit, app, "compare", f"run={run}&beside={beside}{query}")


def moments(page: Page) -> list[dict[str, str]]:
    found: list[dict[str, str]] = page.locator("[data-moment]").evaluate_all(
        "(all) => all.map((e) => ({...e.dataset}))"
    )
    return found


def values(page: Page, row: str) -> list[str]:
    cells: list[str] = page.locator(f"tr[data-row={row}] td[data-value]").evaluate_all(
        "(cells) => cells.map((cell) => cell.dataset.value)"
    )
    return cells


def said(page: Page, name: str) -> str:
    return page.locator(f"[data-said={name}]").inner_text()


def inked(page: Page) -> list[list[int]]:
    """For each scene, how many pixels of its notes and of its timeline are painted."""
    found: list[list[int]] = page.locator(".exam-scene[data-layout=part]").evaluate_all(
        """(scenes) => scenes.map((scene) => ['.grid canvas:nth-child(2)', '.time canvas'].map((name) => {
          const canvas = scene.querySelector(name)
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
          return data.filter((_, i) => i % 4 === 3).reduce((sum, alpha) => sum + (alpha > 0), 0)
        }))"""
    )
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("beside", ["closed-book", "long-paper", "chinese"])
def test_the_numbers_are_the_two_traces_own(app: App, visit: Visit, beside: str, lang: str) -> None:
    page = compare(visit, app, "open-book", beside, f"&lang={lang}&at=0.5")
    page.wait_for_selector("[data-said=wait]")
    both = [summary.summary(recorded(name)) for name in ("open-book", beside)]
    for row, of in {
        "ttft": lambda one: one.ttft_s,
        "tpot": lambda one: one.tpot_s,
        "itl": lambda one: median(one.itl_s),
        "prompt": lambda one: one.prompt_tokens,
        "answer": lambda one: len(one.output_ids),
        "notes": lambda one: one.kv_bytes,
    }.items():
        assert [float(value) for value in values(page, row)] == pytest.approx([of(one) for one in both]), row
    assert values(page, "answer_text") == [one.output_text for one in both]
    assert page.locator("tr[data-row=ttft] .tag.recorded").count() == 2
    assert page.locator("tr[data-row=note] .tag.computed").count() == 2
    wait = sorted((one.ttft_s or 0 for one in both), reverse=True)
    if wait[0] / wait[1] >= 1.1:
        factor = wait[0] / wait[1]
        assert f"{factor:.1f}" in said(page, "wait") or f"{factor:.0f}" in said(page, "wait")
    right = page.locator("[data-said=right]").all_inner_texts()
    assert len(right) == (1 if beside == "closed-book" else 2), "a closed book has no right answer"
    name = say("compare.names.open-book", lang)  # type: ignore[arg-type]
    told = say("compare.say.right", lang, one=name)  # type: ignore[arg-type]
    assert right[0] == told[0].upper() + told[1:]
    assert bool(page.locator("[data-caution=model]").count()) == (beside == "chinese")


def test_both_scenes_are_drawn_and_in_step(app: App, visit: Visit) -> None:
    ends = [recorded(name).events[-1].at for name in ("open-book", "long-paper")]
    page = compare(visit, app, "open-book", "long-paper", "&at=0.25")
    for key, expected in (("End", max(ends)), ("Home", 0.0)):
        page.keyboard.press(key)
        redrawn(page)
        assert float(data(page, "[data-clock]")["at"]) == pytest.approx(expected)
    assert inked(page)[0][0] == inked(page)[1][0] == 0, "nothing has been written before the start"
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    redrawn(page)
    at = float(data(page, "[data-clock]")["at"])
    assert at > 0 and [float(one["at"]) for one in moments(page)] == [at, at]
    page.keyboard.press(" ")
    until(page, "[data-clock]", "Number(d.at) > 1")
    page.keyboard.press(" ")
    redrawn(page)
    at = float(data(page, "[data-clock]")["at"])
    assert [float(one["at"]) for one in moments(page)] == [min(at, end) for end in ends]
    page.keyboard.press("End")
    redrawn(page)
    assert [float(one["at"]) for one in moments(page)] == ends
    assert [one["text"] for one in moments(page)] == [
        recorded(name).output_text for name in ("open-book", "long-paper")
    ]
    notes, times = zip(*inked(page), strict=True)
    assert min(notes) > 1000 and min(times) > 1000, "a canvas is blank"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_line_below_a_headline_is_cut(app: App, visit: Visit, lang: str) -> None:
    """Every sentence the scene may say there, with numbers of four digits in its gaps."""
    page = compare(visit, app, "open-book", "closed-book", f"&at=0&lang={lang}")
    below = re.compile(r"head\.\w+_(sub|look|rest|together)")
    lines = [re.sub(r"\{\w+\}", "1,234 ms" if name.startswith("head.end") else "1,234", text)
             for name, text in area_words("scene", lang).items() if below.fullmatch(name)]  # fmt: skip
    assert len(lines) > 20
    cut = """(line, texts) => texts.filter((text) => {
      line.textContent = text
      return line.scrollHeight > line.clientHeight + 2 || line.scrollWidth > line.clientWidth
    })"""
    line = page.locator(".say p").first
    assert line.evaluate(cut, lines) == []
    assert line.evaluate(cut, ["a word " * 60]), "what is too long is seen"


def test_either_timeline_moves_both(app: App, visit: Visit) -> None:
    page = compare(visit, app, "open-book", "closed-book", "&at=0")
    line = page.locator(".time").nth(1)
    box = line.bounding_box()
    assert box
    line.click(position={"x": box["width"] / 2, "y": 40})
    redrawn(page)
    end = max(recorded(name).events[-1].at for name in ("open-book", "closed-book"))
    assert float(data(page, "[data-clock]")["at"]) == pytest.approx(end / 2, rel=0.02)
    assert moments(page)[0]["at"] == moments(page)[1]["at"] == data(page, "[data-clock]")["at"]


def test_the_place_keeps_both_runs(app: App, visit: Visit) -> None:
    page = compare(visit, app, "open-book", "closed-book", "&at=0.3")

    def query() -> dict[str, list[str]]:
        return parse_qs(urlparse(page.url).query)

    page.locator("[data-side=B] .which select").select_option("long-paper")
    page.wait_for_function("() => location.search.includes('beside=long-paper')")
    expect(page.locator("[data-moment]").nth(1)).to_have_attribute("data-run", "long-paper")
    assert query()["run"] == ["open-book"]
    page.keyboard.press("End")
    page.wait_for_function("() => location.search.includes('at=3.')")
    page.locator("summary", has_text=say("frame.stations", "en")).first.click()
    page.get_by_role("link", name=say("prefill.title", "en"), exact=True).first.click()
    page.wait_for_url("**/prefill?**")
    assert (query()["run"], query()["beside"]) == (["open-book"], ["long-paper"])
    page.wait_for_selector(".station[data-ready=true]", timeout=LONG)
    page.locator("summary", has_text=say("frame.stations", "en")).first.click()
    page.get_by_role("link", name=say("compare.title", "en"), exact=True).first.click()
    page.wait_for_url("**/compare?**")
    page.wait_for_selector(".compare [data-said=wait]", timeout=LONG)
    assert [one["run"] for one in moments(page)] == ["open-book", "long-paper"]
    page.locator("[data-preset=book]").click()
    page.wait_for_function("() => location.search.includes('beside=closed-book')")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_a_second_run_one_is_found(app: App, visit: Visit, lang: str) -> None:
    page = visit(f"{app.address}/compare?lang={lang}")
    page.wait_for_selector(".station[data-ready=true]", timeout=LONG)
    runs = [one["run"] for one in moments(page)]
    assert all(runs) and runs[0] != runs[1]
    page.wait_for_selector("[data-said=wait]")


def test_the_same_exam_once_more(app: App, visit: Visit) -> None:
    first = over(app, begin(app, **SHORT))
    page = compare(visit, app, first, "open-book")
    page.locator("[data-again=same]").click()
    page.wait_for_function("() => !location.search.includes('beside=open-book')")
    page.wait_for_selector("[data-said=text]", timeout=LONG)
    told = moments(page)
    assert told[0]["run"] == first and told[1]["run"] not in (first, "open-book")
    assert said(page, "text") == say("compare.say.text_same", "en")
    assert page.locator("tr[data-row=ttft] .tag.measured").count() == 2
    picked = page.locator("[data-side=B] .which option:checked")
    expect(picked).to_have_text(SHORT["prompt"])
    for row, name in (("ttft", "ttft"), ("tpot", "tpot")):
        asked = [app.ask(f"/api/runs/{one['run']}")[name] for one in told]
        assert [float(value) for value in values(page, row)] == pytest.approx(asked), row
    assert page.locator("tr[data-row^=set_]").count() == 0
    page.locator("[data-again=warm]").click()
    page.wait_for_selector("tr[data-row=set_temperature]", timeout=LONG)
    assert values(page, "set_temperature") == ["0.0", "1.0"] or values(page, "set_temperature") == ["0", "1"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_running_a_stopped_a_failed_and_a_short_run(app: App, visit: Visit, lang: str) -> None:
    lengthy = begin(app, **LENGTHY)
    page = compare(visit, app, "open-book", lengthy, f"&lang={lang}")
    page.wait_for_selector("[data-said=waiting]")
    assert values(page, "tpot")[1] == ""
    app.ask(f"/api/runs/{lengthy}/stop", {})
    page.wait_for_selector("[data-said=broken]", timeout=LONG)
    assert page.locator("[data-said=waiting]").count() == 0
    failed = over(app, begin(app, prompt="word " * 9000, mode="raw", max_new_tokens=1))
    page.goto(f"{app.address}/compare?run=open-book&beside={failed}&lang={lang}")
    page.wait_for_selector("[data-said]", timeout=LONG)
    assert values(page, "ttft")[1] == values(page, "notes")[1] == ""
    one = over(app, begin(app, prompt="One word.", max_new_tokens=1))
    page.goto(f"{app.address}/compare?run=open-book&beside={one}&lang={lang}")
    page.wait_for_selector("[data-said=each]", timeout=LONG)
    assert values(page, "tpot")[1] == values(page, "itl")[1] == ""
    none = page.locator("tr[data-row=tpot] td").nth(1).inner_text()
    assert none == say("compare.table.none", lang)  # type: ignore[arg-type]
