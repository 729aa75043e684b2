"""The prefill station in a real browser: what stands and what is painted there are the engine's own weights."""

from __future__ import annotations

import struct
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from engine.words import say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, begin, data, figure, over, sit, stopped_early, too_long, until
from tests.e2e.stations import at as station
from views import lessons

Visit = Callable[..., Page]
ORANGE = {"prompt": "The orange fell off the table because it was too round.", "mode": "raw", "max_new_tokens": 8}
TOLD = "[data-attention]"
BITS = 1 / 255


def row_of(app: App, run: str, layer: int, head: int, row: int) -> list[float]:
    """One attention row as the engine computes it."""
    query = f"layer={layer}&head={head}&row={row}"
    with urllib.request.urlopen(f"{app.address}/api/runs/{run}/attention?{query}", timeout=30) as reply:
        return [value / 65535 for value in struct.unpack(f"<{row + 1}H", reply.read())]


def at(visit: Visit, app: App, run: str, query: str = "") -> Page:
    return station(visit, app, "prefill", f"run={run}{query}")


def drawn(page: Page, layer: int, head: int | str) -> None:
    page.wait_for_selector(f"canvas[data-drawn='{layer}.{head}']", timeout=LONG)


def painted(page: Page, row: int, column: int) -> float:
    """The weight that the colour in the middle of a cell stands for, on the ramp from `--low` to `--high`."""
    found = page.locator("canvas[data-drawn]").evaluate(
        """(canvas, [row, column]) => {
          const told = canvas.closest('.explorer').querySelector('[data-attention]').dataset
          const pixels = (element) => element.getContext('2d').getImageData(0, 0, 1, 1).data
          const style = getComputedStyle(canvas)
          const colour = (name) => {
            const probe = document.createElement('canvas')
            probe.getContext('2d').fillStyle = style.getPropertyValue(name)
            probe.getContext('2d').fillRect(0, 0, 1, 1)
            return [...pixels(probe)]
          }
          const margin = Number(canvas.dataset.margin)
          const step = (canvas.width - margin) / Number(told.cells)
          const at = (position, from) => margin + Math.floor((position + 0.5 - Number(from)) * step)
          const [low, high] = [colour('--low'), colour('--high')]
          const found = canvas.getContext('2d').getImageData(at(column, told.x), at(row, told.y), 1, 1).data
          return (found[2] - low[2]) / (high[2] - low[2])
        }""",
        [row, column],
    )
    return float(found)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_head_that_joins_it_and_the_orange_is_found_and_drawn(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **ORANGE)
    page = at(visit, app, run, f"&lang={lang}")
    drawn(page, 16, 3)
    assert data(page, "[data-state]")["state"] == "finished"
    told, weights = data(page, TOLD), row_of(app, run, 16, 3, 7)
    assert (told["row"], told["column"], told["source"], told["first"]) == ("7", "1", "computed", "0")
    assert float(told["weight"]) == pytest.approx(weights[1], abs=BITS)
    assert weights[1] == pytest.approx(0.73, abs=0.01)
    for column in (2, 4, 6):
        assert painted(page, 7, column) == pytest.approx(weights[column], abs=3 * BITS), column
    page.wait_for_selector("[data-pair][data-row='7']")
    best = page.locator(".pair .ranking button").first
    assert (best.get_attribute("data-layer"), best.get_attribute("data-head")) == ("16", "3")
    assert float(best.get_attribute("data-weight") or 0) == pytest.approx(weights[1], abs=1e-3)
    second = page.locator(".pair .ranking button").nth(1)
    second.click()
    drawn(page, 13, 8)
    assert float(data(page, TOLD)["weight"]) == pytest.approx(row_of(app, run, 13, 8, 7)[1], abs=BITS)
    assert "layer=13" in page.url and "head=8" in page.url


def test_two_words_are_chosen_by_clicking_them(app: App, visit: Visit) -> None:
    run = sit(app, **ORANGE)
    page = at(visit, app, run)
    drawn(page, 16, 3)
    page.locator("[data-position='11']").click()
    page.locator("[data-position='3']").click()
    page.wait_for_selector("[data-pair][data-row='11'][data-column='3']")
    asked = app.ask(f"/api/runs/{run}/heads?row=11&column=3")["heads"]
    best = page.locator(".pair .ranking button").first
    assert [int(best.get_attribute(f"data-{name}") or -1) for name in ("layer", "head")] == [
        asked[0]["layer"], asked[0]["head"],
    ]  # fmt: skip
    page.wait_for_selector("[data-position='3']:not([data-weight=''])")
    weights = row_of(app, run, 16, 3, 11)
    chips = page.locator(".chip").evaluate_all("(chips) => chips.map((chip) => chip.dataset.weight)")
    assert [float(weight) for weight in chips[:12]] == pytest.approx(weights, abs=1e-4)
    assert set(chips[12:]) == {""}, "nobody looks ahead"


def test_another_head_runs_neither_model_nor_page(app: App, visit: Visit) -> None:
    run = sit(app, **ORANGE)
    sent: list[str] = []
    asked: list[str] = []
    page = visit("about:blank")
    page.on("websocket", lambda socket: socket.on("framesent", lambda _: sent.append(socket.url)))
    page.goto(f"{app.address}/prefill?run={run}")
    drawn(page, 16, 3)
    page.wait_for_timeout(500)
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    sent.clear()
    page.locator("[data-choose=layer]").select_option(index=2)
    drawn(page, 2, 3)
    page.locator("[data-choose=head]").select_option(value="mean")
    drawn(page, 2, "mean")
    page.locator("[data-choose=stretch]").check()
    expect(page.get_by_text(say("prefill.map.stretched")).first).to_be_visible()
    page.locator("[data-choose=hide_sink]").uncheck()
    assert sent == []
    assert {url.split("/")[-1].split("?")[0] for url in asked} == {"map", "attention"}
    assert data(page, TOLD)["stretch"] == "true" and data(page, TOLD)["sink"] == "true"


def test_stretching_divides_a_row_by_its_largest_weight(app: App, visit: Visit) -> None:
    run = sit(app, **ORANGE)
    page = at(visit, app, run, "&layer=5&head=0")
    drawn(page, 5, 0)
    weights = row_of(app, run, 5, 0, 10)
    plain = painted(page, 10, 5)
    page.locator("[data-choose=stretch]").check()
    until(page, TOLD, "d.stretch === 'true'")
    assert plain == pytest.approx(weights[5], abs=3 * BITS)
    assert painted(page, 10, 5) == pytest.approx(weights[5] / max(weights[1:]), abs=0.06)


def test_repeated_words_have_rows_and_numbers_of_their_own(app: App, visit: Visit) -> None:
    run = sit(app, prompt="the cat the", mode="raw", max_new_tokens=1)
    page = at(visit, app, run)
    until(page, TOLD, "d.rows")
    told = data(page, TOLD)
    assert (told["rows"], told["columns"], told["ticks"]) == ("3", "3", "1 2 3")
    assert [page.locator(f"[data-position='{place}']").inner_text() for place in range(3)] == ["the", "cat", "the"]


def test_a_paper_of_4096_tokens_is_seen_whole_and_from_near(app: App, visit: Visit) -> None:
    run = sit(app, prompt="The cat sat. " * 1023 + "The cat sat.", mode="raw", max_new_tokens=1)
    page = at(visit, app, run, "&layer=16&head=3")
    drawn(page, 16, 3)
    told = data(page, TOLD)
    assert (told["rows"], told["columns"], told["cells"]) == ("4096", "4096", "4096")
    for _ in range(10):
        page.locator("[data-do=nearer]").click()
    near = data(page, TOLD)
    assert float(near["cells"]) == 6
    row = int(float(near["y"])) + 3
    weights = row_of(app, run, 16, 3, row)
    columns = [column for column in range(int(float(near["x"])) + 1, int(float(near["x"])) + 5) if column <= row]
    assert columns, "the middle of the map lies on its diagonal"
    for column in columns:
        assert painted(page, row, column) == pytest.approx(weights[column], abs=3 * BITS)
    page.locator("[data-do=fit]").click()
    assert data(page, TOLD)["cells"] == "4096"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_experiment_really_runs_both_papers(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, sit(app, **ORANGE), f"&lang={lang}")
    for name in ("round", "tilted"):
        page.locator(f"[data-do={name}]").click()
        page.wait_for_selector(f"[data-side={name}] [data-answer]", timeout=LONG)
        assert "orange" in (page.locator(f"[data-side={name}] [data-answer]").get_attribute("data-answer") or "")
    page.wait_for_selector("[data-verdict][data-same]", timeout=LONG)
    verdict = data(page, "[data-verdict]")
    assert int(verdict["same"]) == 34
    assert float(verdict["difference"]) <= BITS
    looks = page.locator("[data-look=orange]").evaluate_all("(all) => all.map((e) => Number(e.dataset.weight))")
    assert looks == pytest.approx([0.67, 0.67], abs=0.01)


def test_the_first_words_candidates_and_what_the_layers_would_have_said(app: App, visit: Visit) -> None:
    run = sit(app, **ORANGE)
    page = at(visit, app, run)
    chose = next(event for event in app.lines(run) if event["type"] == "chose")
    shown = page.locator(".candidates li").evaluate_all(
        "(all) => all.map((e) => [+e.dataset.id, +e.dataset.probability])"
    )
    assert shown == [[one["id"], one["probability"]] for one in chose["candidates"]]
    page.locator("[data-do=lens]").click()
    page.wait_for_selector("[data-lens='30']", timeout=LONG)
    rows = page.locator(".layers tbody tr").evaluate_all("(all) => all.map((e) => [+e.dataset.top, +e.dataset.rank])")
    layers = app.ask(f"/api/runs/{run}/logit-lens")["layers"]
    assert rows == [[layer["top"][0]["id"], layer["rank"]] for layer in layers]
    assert rows[-1] == [chose["token"]["id"], 0]


def test_all_heads_in_small_are_drawn_and_lead_to_the_large_one(app: App, visit: Visit) -> None:
    page = at(visit, app, sit(app, **ORANGE))
    page.locator("[data-do=small]").click()
    page.wait_for_selector("[data-small='30']", timeout=LONG)
    pictures = page.locator("[data-small] canvas")
    assert pictures.count() == 270
    colours = pictures.evaluate_all(
        """(all) => all.map((e) => {
          const { data } = e.getContext('2d').getImageData(0, 0, e.width, e.height)
          return new Set(new Uint32Array(data.buffer)).size
        })"""
    )
    assert min(colours) >= 3, "no picture is blank"
    page.locator("[data-small] [data-layer='4'][data-head='7']").click()
    drawn(page, 4, 7)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_recording_shows_what_it_holds_and_says_what_it_does_not(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, "open-book", f"&lang={lang}&layer=16&head=3")
    drawn(page, 16, 3)
    told = data(page, TOLD)
    started = next(event for event in app.lines("open-book") if event["type"] == "started")
    first = len(started["prompt"]) - 1
    assert (told["source"], told["first"], told["row"]) == ("recorded", str(first), str(first))
    page.locator("[data-position='5']").click()
    page.locator("[data-position='3']").click()
    page.wait_for_selector("[data-pair][data-code=row_not_recorded]")
    page.locator("[data-do=small]").click()
    expect(page.get_by_text(say("errors.not_kept", lang)).first).to_be_visible()
    page.locator("[data-do=lens]").click()
    expect(page.get_by_text(say("errors.layers_not_kept", lang)).first).to_be_visible()
    page.locator("[data-choose=layer]").select_option(index=3)
    drawn(page, 3, 3)
    page.locator("[data-do=again]").click()
    page.wait_for_url(lambda url: "run=" in url and "run=open-book" not in url)
    until(page, TOLD, "d.source === 'computed'")
    assert data(page, TOLD)["first"] == "0"


def test_a_layer_or_head_that_is_not_there_is_a_sentence(app: App, visit: Visit) -> None:
    page = at(visit, app, sit(app, **ORANGE), "&layer=999")
    expect(page.locator(".trouble[data-code=no_layer]")).to_be_visible()
    page.goto(page.url.replace("layer=999", "layer=3&head=99"))
    trouble = page.locator(".trouble[data-code=no_head]")
    expect(trouble).to_be_visible()
    page.locator("[data-choose=layer]").select_option(index=16)
    page.locator("[data-choose=head]").select_option(index=4)
    drawn(page, 16, 3)
    expect(trouble).to_be_hidden()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_runs_that_go_on_stop_or_fail_are_told_of(app: App, visit: Visit, lang: str) -> None:
    run = begin(app, prompt="Tell me a very long story about a lighthouse.", max_new_tokens=512)
    page = at(visit, app, run, f"&lang={lang}")
    until(page, "[data-state]", "d.state === 'running'")
    expect(page.get_by_text(say("prefill.state.running", lang))).to_be_visible()
    app.ask(f"/api/runs/{run}/stop", {})
    until(page, "[data-state]", "d.state === 'stopped'")
    until(page, TOLD, "d.source === 'computed'")
    page = at(visit, app, stopped_early(app), f"&lang={lang}")
    until(page, "[data-state]", "d.state === 'stopped'")
    expect(page.get_by_text(say("prefill.state.stopped_early", lang))).to_be_visible()
    page = at(visit, app, too_long(app), f"&lang={lang}")
    until(page, "[data-state]", "d.state === 'failed'")
    assert "8191" in page.locator("[data-state]").inner_text()


ANNA = {
    "prompt": "Anna's cat is called Luna. Her dog is called Max. What is the name of Anna's cat?",
    "max_new_tokens": 16,
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_heads_are_switched_off_and_the_paper_sat_again(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **ANNA)
    page = at(visit, app, run, f"&lang={lang}&layer=23&head=1")
    page.wait_for_selector("[data-do=off-go]", timeout=LONG)
    assert page.locator("[data-do=off-go]").is_disabled(), "no head is off yet"
    page.locator("[data-do=off-shown]").click()
    page.locator("[data-do=off-random]").click()
    off = {tuple(map(int, head.split("."))) for head in data(page, "[data-off]")["off"].split()}
    assert (23, 1) in off and len(off) == 6
    page.locator("[data-do=off-go]").click()
    page.wait_for_selector("[data-part=off] [data-side=off]", timeout=LONG)
    sides = [data(page, f"[data-part=off] [data-side={name}]")["run"] for name in ("all", "off")]
    assert sides[0] == run
    told = [app.lines(one) for one in sides]
    started = next(event for event in told[1] if event["type"] == "started")
    assert {tuple(head) for head in started["settings"]["heads_off"]} == off
    answers = page.locator("[data-part=off] [data-answer]").evaluate_all("(all) => all.map((e) => e.dataset.answer)")
    assert answers == [app.ask(f"/api/runs/{one}")["output_text"] for one in sides]
    ids = [[event["token"]["id"] for event in one if event["type"] == "chose"] for one in told]
    assert data(page, "[data-changed]")["changed"] == str(ids[0] != ids[1]).lower()
    page.locator("[data-do=off-compare]").click()
    page.wait_for_url("**/compare?**")
    page.wait_for_selector("tr[data-row=set_heads_off]", timeout=LONG)
    assert f"run={run}" in page.url and f"beside={sides[1]}" in page.url


def test_a_recorded_paper_is_first_sat_here_with_all_heads(app: App, visit: Visit) -> None:
    page = at(visit, app, "open-book", "&layer=0&head=0")
    page.locator("[data-do=off-shown]").click()
    page.locator("[data-do=off-go]").click()
    page.wait_for_selector("[data-part=off] [data-side=off]", timeout=LONG)
    plain = data(page, "[data-part=off] [data-side=all]")["run"]
    started = next(event for event in app.lines(plain) if event["type"] == "started")
    assert plain != "open-book" and started["settings"]["heads_off"] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_wait_for_a_paper_of_any_length_is_really_measured(app: App, visit: Visit, lang: str) -> None:
    run = over(app, begin(app, **ANNA))  # of its own: nothing of it has been measured yet
    replies: list[Any] = []
    page = at(visit, app, run, f"&lang={lang}")
    page.on("response", lambda reply: replies.append(reply) if "/beginning?" in reply.url else None)
    page.locator("[data-do=length]").click()
    until(page, "[data-length]", "d.length === '4'")
    expect(page.locator("tr[data-tokens]")).to_have_count(4)
    points = [reply.json() for reply in replies if reply.ok]
    rows = page.locator("tr[data-tokens]").evaluate_all("(rows) => rows.map((row) => ({...row.dataset}))")
    assert [int(row["tokens"]) for row in rows] == [point["tokens"] for point in points] == [8, 16, 32, 52]
    assert [float(row["middle"]) for row in rows] == pytest.approx([point["middle"] for point in points])
    for point in points:
        assert point["source"] == "measured" and min(point["seconds"]) > 0
        assert point["flops"] > 2 * 100e6 * point["tokens"], "each token goes through a hundred million weights"
    assert [float(row["curve"]) for row in rows] == pytest.approx(curve(points), rel=1e-6)
    until(page, "[data-figure=lengths]", "d.points === '5'")  # four lengths and the run's own
    drawn = figure(page, "lengths")
    assert drawn["point"]["x"] == [8, 16, 32, 52]
    assert drawn["point"]["y"] == pytest.approx([1000 * point["middle"] for point in points])
    assert len(drawn["own"]["x"]) == 1 and drawn["curve"]["x"][0] == pytest.approx(8)


def curve(points: list[dict[str, Any]]) -> list[float]:
    """Seconds = fixed + slope x FLOPs by least squares of relative differences, with nothing less than nothing."""
    import numpy as np

    seconds, flops = (np.array([float(point[name]) for point in points]) for name in ("middle", "flops"))
    (fixed, slope), *_ = np.linalg.lstsq(np.stack([1 / seconds, flops / seconds], 1), np.ones(len(points)), rcond=None)
    if fixed < 0:
        fixed, slope = 0.0, float((flops / seconds).sum() / ((flops / seconds) ** 2).sum())
    return list(fixed + slope * flops)


def test_measuring_can_be_stopped_and_a_recording_says_why_it_cannot_be_measured(app: App, visit: Visit) -> None:
    long = next(one for one in lessons.examples("en") if one["id"] == "long-paper")["settings"]
    run = sit(app, **{**long, "max_new_tokens": 1})
    page = at(visit, app, run)
    page.locator("[data-do=length]").click()
    page.locator("[data-do=length-stop]").click()
    expect(page.locator("[data-do=length]")).to_be_enabled(timeout=LONG)
    assert int(data(page, "[data-length]")["length"]) < 7
    page = at(visit, app, "open-book")
    page.locator("[data-do=length]").click()
    expect(page.get_by_text(say("errors.not_kept", "en"))).to_be_visible()
