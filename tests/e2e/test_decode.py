"""The decode station in a real browser: what stands and what is painted there are the trace's and the engine's own."""

from __future__ import annotations

import json
import struct
import urllib.request
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from engine.settings import Fork
from engine.trace import Decoded, codec
from engine.words import area_words, say
from tests.e2e.conftest import App
from tests.e2e.stations import LONG, begin, data, sit, stopped_early, too_long, until
from tests.e2e.stations import at as station
from tests.engine import tiny

Visit = Callable[..., Page]
CAT = {
    "prompt": "Anna's cat is called Luna. Her dog is called Max. What is the name of Anna's cat?",
    "max_new_tokens": 32,
}
STORY = {"prompt": "Tell me a very long story about a lighthouse.", "max_new_tokens": 512}
TURN, CHOICE, FORK = "[data-turn]", "[data-choice]", "[data-fork]"


def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in lines if event["type"] == kind]


def at(visit: Visit, app: App, run: str, query: str = "") -> Page:
    return station(visit, app, "decode", f"run={run}{query}")


def inked(page: Page) -> int:
    """Pixels of the scratch paper in the ink of decode."""
    found = page.locator(".stage canvas").evaluate(
        """(canvas) => {
          const probe = document.createElement('canvas').getContext('2d')
          probe.fillStyle = getComputedStyle(canvas).getPropertyValue('--decode')
          probe.fillRect(0, 0, 1, 1)
          const ink = [...probe.getImageData(0, 0, 1, 1).data]
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
          let count = 0
          for (let at = 0; at < data.length; at += 4) count += ink.every((one, i) => Math.abs(data[at + i] - one) < 3)
          return count
        }"""
    )
    return int(found)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_turn_goes_layer_by_layer_on_the_models_clock(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **CAT)
    lines = app.lines(run)
    chose, decoded = of(lines, "chose"), of(lines, "decoded")
    page = at(visit, app, run, f"&lang={lang}")
    assert data(page, "[data-state]")["state"] == "finished"
    page.locator("[data-pick='3']").click()
    page.wait_for_selector("canvas[data-reads=computed]")
    told = data(page, TURN)
    step, seconds = decoded[2], chose[3]["at"] - chose[2]["at"]
    assert (told["word"], told["phase"], told["position"]) == ("3", "in", str(step["position"]))
    assert float(told["seconds"]) == pytest.approx(seconds) and float(told["pass"]) == pytest.approx(step["seconds"])
    assert inked(page) == 0
    clocks, inks = [], []
    for layer in range(1, 31):
        page.locator("[data-do=layer]").click()
        clocks.append(float(data(page, TURN)["clock"]))
        inks.append(inked(page))
        assert float(data(page, ".stage canvas")["done"]) == pytest.approx(layer)
    assert [after - before for before, after in pairwise([0.0, *clocks])] == pytest.approx(step["layer_seconds"])
    assert inks[0] > 0 and all(after > before for before, after in pairwise(inks)), "every layer is painted"
    page.locator("[data-do=layer]").click()
    assert data(page, TURN)["phase"] == "choose" and float(data(page, TURN)["clock"]) == pytest.approx(step["seconds"])
    page.locator("[data-do=layer]").click()
    told = data(page, TURN)
    assert (told["phase"], int(told["token"])) == ("done", chose[3]["token"]["id"])
    assert float(told["clock"]) == pytest.approx(seconds)
    shown = page.locator(".logits li").evaluate_all("(all) => all.map((e) => [+e.dataset.id, +e.dataset.probability])")
    assert shown == [[one["id"], one["probability"]] for one in chose[3]["candidates"]]
    page.locator("[data-do=layer]").click()
    assert (data(page, TURN)["word"], data(page, TURN)["phase"]) == ("4", "in")
    assert f"at={chose[4]['at']}" in page.url


def test_playing_goes_from_word_to_word_and_pauses(app: App, visit: Visit) -> None:
    page = at(visit, app, sit(app, **CAT))
    page.locator("[data-choose=slower]").select_option(value="1")
    page.locator("[data-do=play]").click()
    until(page, TURN, "Number(d.word) >= 3")
    page.locator("[data-do=play]").click()
    stood = data(page, TURN)
    page.wait_for_timeout(700)
    assert data(page, TURN) == stood
    page.locator("[data-do=before]").first.click()
    assert int(data(page, TURN)["word"]) == int(stood["word"]) - 1
    page.locator("[data-pick='0']").click()
    assert data(page, TURN)["phase"] == "prefill"
    expect(page.locator(".figure")).to_be_hidden()


def test_where_the_word_looked_is_the_engines_row(app: App, visit: Visit) -> None:
    run = sit(app, **CAT)
    prompt = len(of(app.lines(run), "started")[0]["prompt"])
    page = at(visit, app, run, "&layer=16&head=3")
    page.locator("[data-pick='4']").click()
    row = prompt + 3
    until(page, "[data-looks]", f"d.row === '{row}' && d.weight")
    with urllib.request.urlopen(f"{app.address}/api/runs/{run}/attention?layer=16&head=3&row={row}") as reply:
        weights = [value / 65535 for value in struct.unpack(f"<{row + 1}H", reply.read())]
    told = data(page, "[data-looks]")
    best = max(range(1, row + 1), key=lambda column: weights[column])
    assert (told["column"], told["layer"], told["head"], told["source"]) == (str(best), "16", "3", "computed")
    assert float(told["weight"]) == pytest.approx(weights[best], abs=1e-6)
    chips = page.locator(".looks .chip").evaluate_all("(chips) => chips.map((chip) => chip.dataset.weight)")
    assert [float(weight) for weight in chips[: row + 1]] == pytest.approx(weights, abs=1e-4)
    page.locator("[data-choose=layer]").select_option(index=2)
    until(page, "[data-looks]", "d.layer === '2'")
    assert "layer=2" in page.url


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_stage_of_the_sampler_is_shown_as_the_engine_computes_it(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **CAT)
    page = at(visit, app, run, f"&lang={lang}")
    page.locator("[data-pick='2']").click()
    until(page, CHOICE, "d.word === '2'")
    assert data(page, CHOICE)["stages"] == "model greedy"
    assert data(page, CHOICE)["drawn"] == data(page, CHOICE)["token"]
    page.locator("[data-do=warm]").click()
    until(page, CHOICE, "d.stages.includes('min_p')")
    settings = "temperature=1.2&top_k=40&top_p=0.95&min_p=0.02&repetition_penalty=1.1"
    asked = app.ask(f"/api/runs/{run}/choice?step=2&{settings}")
    told = data(page, CHOICE)
    assert told["stages"].split() == [stage["name"] for stage in asked["stages"]]
    assert int(told["left"]) == asked["stages"][-1]["left"] and int(told["drawn"]) == asked["drawn"]
    rows = page.locator(".funnel tbody tr:not(.rest)").evaluate_all(
        "(rows) => rows.map((row) => [row.dataset.id, ...[...row.querySelectorAll('td')].map((e) => e.dataset.value)])"
    )
    rows = [[float(value) for value in row] for row in rows]
    values = zip(*(stage["probabilities"] for stage in asked["stages"]), strict=True)
    expected = [[one["id"], *values] for one, values in zip(asked["candidates"], values, strict=True)]
    assert [row[0] for row in rows] == [row[0] for row in expected]
    for row, wanted in zip(rows, expected, strict=True):
        assert row[1:] == pytest.approx(wanted[1:], abs=1e-9)
    widths = page.locator(".funnel tbody tr").first.locator("i").evaluate_all("(all) => all.map((e) => e.offsetWidth)")
    assert widths[0] > 0 and widths[1] != widths[0], "bars are drawn, and change from stage to stage"


def test_the_same_seed_draws_the_same_word_and_a_slider_asks_again(app: App, visit: Visit) -> None:
    run = sit(app, **CAT)
    page = at(visit, app, run)
    page.locator("[data-set=temperature]").evaluate("(e) => { e.value = 2; e.dispatchEvent(new Event('input')) }")
    drawn = []
    for _ in range(2):
        for seed in range(4):
            page.locator("[data-set=seed]").fill(str(seed))
            wanted = app.ask(f"/api/runs/{run}/choice?step=1&temperature=2&seed={seed}")["drawn"]
            until(page, CHOICE, f"d.stages === 'model temperature' && d.drawn === '{wanted}'")
            drawn.append(wanted)
    assert drawn[:4] == drawn[4:] and len(set(drawn)) > 1


def test_a_run_forks_at_a_candidate_without_reading_anything_again(app: App, visit: Visit) -> None:
    settings = {"prompt": "The orange fell off the table because", "mode": "raw", "max_new_tokens": 12}
    run = sit(app, **settings)
    lines = app.lines(run)
    started, chose = of(lines, "started")[0], of(lines, "chose")
    kept = 3
    other = next(one for one in chose[kept]["candidates"][1:] if one["text"].startswith(" "))
    page = at(visit, app, run)
    page.locator(f"[data-pick='{kept}']").click()
    until(page, CHOICE, f"d.word === '{kept}'")
    page.locator(f"[data-fork-to='{other['id']}']").click()
    until(page, FORK, "d.reason")
    told = data(page, FORK)
    assert (told["prefills"], told["kept"], told["parent"]) == ("0", str(kept), run)
    assert int(told["reused"]) == len(started["prompt"]) + kept
    fork = app.lines(told["run"])
    assert of(fork, "prefilled") == of(fork, "layer") == []
    assert [event["position"] for event in of(fork, "decoded")] == [
        int(told["reused"]) + number for number in range(int(told["passes"]))
    ], "one token a pass"
    ids = [int(token) for token in told["ids"].split()]
    before = "".join(one["token"]["text"] for one in chose[:kept])
    again = {"prompt": settings["prompt"] + before + other["text"], "mode": "raw", "max_new_tokens": 12 - kept - 1}
    fresh = app.lines(sit(app, **again))
    read = [token["id"] for token in of(fresh, "started")[0]["prompt"]]
    assert read == [token["id"] for token in started["prompt"]] + ids[: kept + 1]
    assert ids[kept + 1 :] == [event["token"]["id"] for event in of(fresh, "chose")]
    sides = [page.locator(f"[data-side={side}] .answer").inner_text() for side in ("was", "now")]
    begins = [side.lstrip().startswith(before.lstrip()) for side in sides]
    assert all(begins) and sides[0] != sides[1]
    page.locator("[data-do=open-fork]").click()
    page.wait_for_url(lambda url: f"run={told['run']}" in url)
    until(page, TURN, f"d.word === '{kept + 1}'")
    page.locator(f"[data-pick='{kept}']").click()
    assert data(page, TURN)["phase"] == "put"


def test_time_per_word_and_bytes_are_the_traces(app: App, visit: Visit) -> None:
    run = sit(app, **CAT)
    lines = app.lines(run)
    arrivals = [event["at"] for event in of(lines, "chose")]
    gaps = [after - before for before, after in pairwise(arrivals)]
    page = at(visit, app, run)
    told = data(page, "[data-times]")
    assert float(told["median"]) == pytest.approx(median(gaps))
    assert float(told["tpot"]) == pytest.approx(app.ask(f"/api/runs/{run}")["tpot"])
    assert float(told["p95"]) == sorted(gaps)[-(-95 * len(gaps) // 100) - 1]
    measured = "(all) => all.map((e) => [+e.dataset.gap, e.firstChild.offsetHeight])"
    bars = page.locator(".plot .bar").evaluate_all(measured)
    assert [gap for gap, _ in bars] == pytest.approx(gaps)
    most = max(range(len(bars)), key=lambda at: gaps[at])
    assert all(0 < height <= bars[most][1] for _, height in bars)
    page.locator(".plot .bar").nth(4).click()
    until(page, TURN, "d.word === '5'")
    facts, step = of(lines, "started")[0]["facts"], of(lines, "decoded")[4]
    notes = step["kv"]["length"] * 2 * facts["layers"] * facts["kv_heads"] * facts["head_size"] * facts["value_bytes"]
    share = data(page, "[data-share]")
    assert int(share["notes"]) == notes == step["kv"]["bytes"]
    assert float(share["share"]) == pytest.approx(notes / (notes + facts["weight_bytes"]))
    marks = page.locator(".dot.mark").evaluate_all("(all) => all.map((e) => [+e.dataset.at, +e.dataset.shareAt])")
    shares = dict(map(tuple, marks))
    assert [shares[128], shares[2048], shares[7900]] == pytest.approx([0.011, 0.15, 0.40], abs=0.005)


def test_the_fold_knows_cold_shared_put_and_taken_words(app: App, visit: Visit) -> None:
    parent = tiny.exam("llama", tiny.raw(max_new_tokens=5), id="parent")
    told = tiny.drive([parent, tiny.exam("llama", tiny.raw(max_new_tokens=3), id="beside")])
    fork = Fork("parent", 2, parent.told[2].candidates[1].id)
    child = tiny.sit("llama", tiny.raw(max_new_tokens=6, fork=fork), parent=parent).events
    drafted = tiny.sit("llama", tiny.raw("ab" * 20, max_new_tokens=40, draft=4)).events
    first = [parent.started(cold=True), *told["parent"]]
    lines = [[json.loads(codec.to_json(event)) for event in events] for events in (first, child, drafted)]
    page = at(visit, app, "open-book")
    folded = page.evaluate(
        """async (runs) => {
          const { loopOf } = await import('/stations/decode/loop.js')
          return runs.map((events) => {
            const loop = loopOf(events)
            const words = loop.words.map(({ from, cold, gap, step }) => [from, cold, gap !== null, step?.together ?? 0])
            return { words, prefills: loop.prefills, passes: loop.passes, tokens: loop.tokens.length }
          })
        }""",
        lines,
    )
    together = [event.together for event in first if isinstance(event, Decoded)]
    assert max(together) == 2
    assert folded[0]["words"] == [["prefill", False, False, 0]] + [
        ["loop", number == 0, True, count] for number, count in enumerate(together)
    ]
    assert folded[1]["words"][:4] == [
        ["taken", False, False, 0], ["taken", False, False, 0], ["put", False, False, 0], ["loop", False, True, 1],
    ]  # fmt: skip
    assert (folded[1]["prefills"], folded[1]["passes"]) == (0, 3)
    assert folded[1]["tokens"] == len(parent.ids) + 6
    accepted = [event.accepted for event in drafted if isinstance(event, Decoded)]
    ways = [way for count in accepted for way in ["loop"] + ["guessed"] * count]
    assert sum(accepted) and [word[0] for word in folded[2]["words"]] == ["prefill", *ways][: len(folded[2]["words"])]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_ending_can_be_caused(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, "open-book", f"&lang={lang}")
    for reason in ("length", "eos", "stop_string", "timeout", "out_of_memory"):
        page.locator(f"[data-do=end-{reason}]").click()
        until(page, f"[data-ending={reason}]", "d.reason")
        told = data(page, f"[data-ending={reason}]")
        assert told["reason"] == reason == of(app.lines(told["run"]), "finished")[0]["reason"]
        assert int(told["tokens"]) == len(of(app.lines(told["run"]), "chose"))
    assert data(page, "[data-ending=length]")["tokens"] == "4"
    bound = of(app.lines(data(page, "[data-ending=out_of_memory]")["run"]), "finished")[0]
    assert bound["code"] == "notes_bound" and dict(map(tuple, bound["values"]))["bytes"] == 2**20
    page.locator("[data-do=end-stopped]").click()
    expect(page.get_by_text(say("decode.endings.running", lang))).to_be_visible(timeout=LONG)
    page.locator("[data-do=halt]").click()
    until(page, "[data-ending=stopped]", "d.reason")
    assert data(page, "[data-ending=stopped]")["reason"] == "stopped"
    expect(page.locator("[data-do=end-stopped]")).to_be_enabled()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_recording_is_watched_and_says_what_needs_its_notes(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, "open-book", f"&lang={lang}")
    lines = app.lines("open-book")
    page.wait_for_selector("canvas[data-reads=recorded]")
    told, chose = data(page, TURN), of(lines, "chose")
    assert float(told["seconds"]) == pytest.approx(chose[1]["at"] - chose[0]["at"])
    expect(page.get_by_text(say("decode.sampling.gone", lang))).to_be_visible()
    shown = page.locator(".funnel tbody tr").evaluate_all(
        "(all) => all.map((e) => [+e.dataset.id, +e.dataset.probability])"
    )
    assert shown == [[one["id"], one["probability"]] for one in chose[1]["candidates"]]
    assert page.locator("[data-fork-to]").count() == page.locator("[data-set]").count() == 0
    page.locator("[data-do=again-sampling]").click()
    page.wait_for_url(lambda url: "run=" in url and "run=open-book" not in url)
    until(page, CHOICE, "d.drawn && d.drawn === d.token")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_runs_that_go_on_stop_or_fail_are_told_of(app: App, visit: Visit, lang: str) -> None:
    run = begin(app, **STORY)
    page = at(visit, app, run, f"&lang={lang}")
    until(page, "[data-state]", "d.state === 'running'")
    until(page, "[data-times]", "+d.n > 2")
    app.ask(f"/api/runs/{run}/stop", {})
    until(page, "[data-state]", "d.state === 'stopped'")
    until(page, CHOICE, "d.drawn")
    page = at(visit, app, stopped_early(app), f"&lang={lang}")
    until(page, "[data-state]", "d.state === 'stopped'")
    expect(page.get_by_text(say("decode.state.stopped_early", lang))).to_be_visible()
    expect(page.locator("[data-do=end-length]")).to_be_enabled()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_fork_that_cannot_be_is_a_sentence(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, sit(app, **CAT), f"&lang={lang}")
    until(page, CHOICE, "d.word === '1'")
    wrong: dict[str, Any] = {}

    def spoil(route: Route) -> None:
        asked = route.request.post_data_json
        route.continue_(post_data=json.dumps({**asked, "fork": {**asked["fork"], **wrong}}))

    page.route("**/api/runs", spoil)
    for change, code in (
        ({"run": "never_was_in_here"}, "fork_not_kept"), ({"token": 10**6}, "not_a_candidate"),
        ({"run": too_long(app)}, "fork_not_kept"), ({"kept": 99}, "no_word"),
    ):  # fmt: skip
        wrong.clear()
        wrong.update(change)
        page.locator("[data-fork-to]:enabled").first.click()
        until(page, FORK, f"d.code === '{code}'")
        assert area_words("errors", lang)[code].split("{")[0] in page.locator(FORK).inner_text()
    page.unroute("**/api/runs")
    page.locator("[data-fork-to]:enabled").first.click()
    until(page, FORK, "d.reason")
    assert data(page, FORK)["prefills"] == "0"


def test_a_moment_after_the_end_is_the_last_word_and_notes_let_go_are_a_sentence(app: App, visit: Visit) -> None:
    run = sit(app, **CAT)
    last = len(of(app.lines(run), "chose")) - 1
    page = visit("about:blank")
    error = {"code": "choices_not_kept", "values": {}, "message": say("errors.choices_not_kept")}
    gone = {"status": 404, "content_type": "application/json", "body": json.dumps({"error": error})}
    page.route("**/choice?*", lambda route: route.fulfill(**gone))
    page.goto(f"{app.address}/decode?run={run}&at=99999")
    until(page, TURN, f"d.word === '{last}'")
    expect(page.locator(".trouble[data-code=choices_not_kept]")).to_be_visible()
    page.unroute("**/choice?*")
    page.locator("[data-pick='1']").click()
    until(page, CHOICE, "d.word === '1'")
    expect(page.locator(".trouble")).to_be_hidden()
