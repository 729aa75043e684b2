"""The scratch paper in a real browser: what stands and is painted there are the trace's and the engine's numbers."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from engine.trace import norm_of
from engine.words import say
from tests.e2e.conftest import App, free_port, home_of
from tests.e2e.stations import LONG, begin, data, sit, stopped_early, too_long, until
from tests.e2e.stations import at as station

Visit = Callable[..., Page]
CAT = {"prompt": "Anna's cat is called Luna. What is the name of Anna's cat?", "max_new_tokens": 12}
BYTES, NOTE, CELL, PROOF = "[data-bytes]", "[data-note]", "[data-cell]", "[data-proof]"


def at(visit: Visit, app: App, run: str, query: str = "") -> Page:
    return station(visit, app, "notes", f"run={run}{query}")


def numbers(app: App, run: str, layer: int, head: int, kind: str) -> np.ndarray[Any, Any]:
    """One KV head's K or V `(positions, head size)` as the engine tells it."""
    query = f"layer={layer}&head={head}&kind={kind}"
    with urllib.request.urlopen(f"{app.address}/api/runs/{run}/notes?{query}", timeout=30) as reply:
        size, told = int(reply.headers["X-Size"]), reply.read()
    scales = np.frombuffer(told, "<f4", size)
    return np.frombuffer(told, np.int8, offset=4 * size).reshape(-1, size) / np.float32(127) * scales


def norms(events: list[dict[str, Any]], layer: int, position: int) -> tuple[float, float]:
    """The norms of one note's K and V as the trace has them."""
    import base64

    for event in events:
        at = None
        if event["type"] == "layer" and event["index"] == layer and event["start"] <= position < event["stop"]:
            at = position - event["start"]
        elif event["type"] == "decoded" and event["position"] == position:
            at = layer
        if at is not None:
            keys, values = (base64.urlsafe_b64decode(event[name]) for name in ("key_norms", "value_norms"))
            return norm_of(keys[at]), norm_of(values[at])
    raise LookupError(position)


def kv_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"at": event["at"], **event["kv"]} for event in events if "kv" in event]


def pixel(page: Page, canvas: str, x: float, y: float) -> tuple[int, int, int]:
    """The colour at (x, y) CSS pixels of a canvas."""
    red, green, blue, _ = page.locator(canvas).evaluate(
        """(canvas, [x, y]) => {
          const ratio = canvas.width / parseFloat(canvas.style.width)
          return [...canvas.getContext('2d').getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1).data]
        }""",
        [x, y],
    )
    return red, green, blue


def colour(page: Page, name: str) -> tuple[int, int, int]:
    """A colour of the scene's palette."""
    red, green, blue, _ = page.locator("main.station").evaluate(
        """(root, name) => {
          const probe = document.createElement('canvas').getContext('2d')
          probe.fillStyle = getComputedStyle(root).getPropertyValue(name).trim()
          probe.fillRect(0, 0, 1, 1)
          return [...probe.getImageData(0, 0, 1, 1).data]
        }""",
        name,
    )
    return red, green, blue


def seen(page: Page, position: int, dimension: int) -> tuple[int, int, int]:
    """The colour in the middle of a number of the picture."""
    told = data(page, "[data-picture]")
    gutter, start, step, line, top = (float(told[name]) for name in ("gutter", "from", "step", "line", "top"))
    return pixel(page, "[data-picture]", gutter + (position - start + 0.5) * step, top + (dimension + 0.5) * line)


def marks(page: Page) -> int:
    """How many colours the overview has: ruled paper alone has a few."""
    found: int = page.locator("[data-overview]").evaluate(
        """(canvas) => {
          const { data } = canvas.getContext('2d').getImageData(50, 90, canvas.width - 50, canvas.height - 90)
          return new Set(new Uint32Array(data.buffer)).size
        }"""
    )
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_one_heads_numbers_are_the_engines_and_are_painted(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **CAT)
    page = at(visit, app, run, f"&lang={lang}&layer=7&head=5")
    page.wait_for_selector("[data-picture][data-drawn='7.1.key']")
    assert data(page, "[data-state]")["state"] == "finished"
    keys = numbers(app, run, 7, 1, "key")
    told = data(page, CELL)
    events = app.lines(run)
    prompt = next(event for event in events if event["type"] == "started")["prompt"]
    assert (told["source"], told["positions"], told["size"]) == ("measured", str(len(keys)), "64")
    assert (told["position"], told["id"]) == (str(len(prompt) - 1), str(prompt[-1]["id"]))
    assert float(told["value"]) == pytest.approx(keys[len(prompt) - 1, 0], rel=1e-4)
    assert float(told["limit"]) == pytest.approx(np.quantile(np.abs(keys), 0.95), rel=0.02)
    page.locator("[data-choose=value]").check(force=True)
    page.wait_for_selector("[data-picture][data-drawn='7.1.value']")
    values = numbers(app, run, 7, 1, "value")
    highest, lowest = (np.unravel_index(found, values.shape) for found in (values.argmax(), values.argmin()))
    assert seen(page, *map(int, highest)) == colour(page, "--prefill")
    assert seen(page, *map(int, lowest)) == colour(page, "--decode")
    page.locator("[data-picture]").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    told = data(page, CELL)
    assert (told["position"], told["dimension"]) == (str(len(prompt) - 2), "1")
    assert float(told["value"]) == pytest.approx(values[len(prompt) - 2, 1], rel=1e-4)


def test_another_layer_or_head_runs_neither_model_nor_page(app: App, visit: Visit) -> None:
    run = sit(app, **CAT)
    page = at(visit, app, run, "&layer=7&head=5")
    page.wait_for_selector("[data-picture][data-drawn='7.1.key']")
    page.wait_for_timeout(300)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("[data-choose=layer]").select_option(index=20)
    page.wait_for_selector("[data-picture][data-drawn='20.1.key']")
    page.locator("[data-kv-head='2']").click()
    page.wait_for_selector("[data-picture][data-drawn='20.2.key']")
    page.locator("[data-choose=own]").check()
    until(page, "[data-picture]", "d.own === 'true'")
    assert [url.split("/api/runs/")[1].split("?")[0] for url in asked] == [f"{run}/notes"] * 2
    assert "layer=20" in page.url and "head=6" in page.url
    keys = numbers(app, run, 20, 2, "key")
    dimension = int(np.abs(keys).max(0).argmin())  # the weakest one has full colour on a scale of its own
    position = int(keys[:, dimension].argmax())
    if keys[position, dimension] == np.abs(keys[:, dimension]).max():
        assert seen(page, position, dimension) == colour(page, "--prefill")


@pytest.mark.parametrize(("run", "lang"), [("open-book", "en"), ("chinese", "zh")])
def test_a_recording_has_an_overview_and_its_bytes_and_says_what_is_gone(
    app: App, visit: Visit, run: str, lang: str
) -> None:
    page = at(visit, app, run, f"&lang={lang}&layer=4")
    events = app.lines(run)
    last = kv_of(events)[-1]
    told = data(page, NOTE)
    position = int(told["position"])
    key, value = norms(events, 4, position)
    assert (float(told["key"]), float(told["value"])) == (key, value)
    assert (int(told["columns"]), told["first"], told["gone"]) == (last["length"], "0", "false")
    assert marks(page) > 400, "ruled paper alone has fewer than a hundred"
    bytes_ = data(page, BYTES)
    assert [int(bytes_[name]) for name in ("bytes", "allocated", "columns")] == [
        last["bytes"], last["allocated"], last["length"],
    ]  # fmt: skip
    assert bytes_["equal"] == "true" and page.locator(".tag.recorded").count() >= 1
    expect(page.locator("[data-trouble][data-code=notes_not_kept]")).to_contain_text(say("errors.notes_not_kept", lang))
    expect(page.locator("[data-do=again]")).to_be_visible()
    page.locator("[data-overview]").focus()
    for pressed in ("ArrowUp", "ArrowRight"):
        page.keyboard.press(pressed)
    told = data(page, NOTE)
    assert (told["layer"], told["position"]) == ("3", str(position + 1))
    assert (float(told["key"]), float(told["value"])) == norms(events, 3, position + 1)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_bytes_grow_with_the_moment_and_the_moment_is_the_address(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **CAT)
    moments = kv_of(app.lines(run))
    page = at(visit, app, run, f"&lang={lang}&layer=3")
    until(page, "[data-taken]", "d.used")
    taken = data(page, "[data-taken]")
    assert [int(taken[name]) for name in ("used", "allocated", "length")] == [
        moments[-1][name] for name in ("bytes", "allocated", "length")
    ]
    assert int(data(page, "[data-row=layer]")["measured"]) == 2 * 3 * 64 * 4 * moments[-1]["length"]
    slider = page.locator("[data-choose=moment]")
    for number, moment in enumerate(moments, 1):
        slider.fill(str(number))
        told = data(page, BYTES)
        assert [int(told[name]) for name in ("bytes", "allocated", "columns")] == [
            moment["bytes"], moment["allocated"], moment["length"],
        ]  # fmt: skip
        assert told["equal"] == "true"
        row = data(page, "[data-row=total]")
        assert int(row["measured"]) == int(row["computed"]) == 30 * 2 * 3 * 64 * 4 * moment["length"]
        if number > 1:
            assert data(page, "[data-row=column]")["measured"] == str(30 * 2 * 3 * 64 * 4)
        assert data(page, NOTE)["columns"] == str(moment["length"])
        assert f"at={moment['at']}" in page.url
    assert data(page, "[data-curve]")["curve"] == str(len(moments))
    full = marks(page)
    slider.fill("0")
    expect(page.get_by_text(say("notes.bytes.empty", lang))).to_be_visible()
    assert data(page, NOTE)["key"] == "" and marks(page) < full / 4
    page = at(visit, app, run, f"&lang={lang}&at={moments[1]['at']}")
    assert data(page, BYTES)["columns"] == str(moments[1]["length"])


def test_a_moment_inside_the_reading_has_the_layers_that_were_done(app: App, visit: Visit) -> None:
    layers = [event for event in app.lines("open-book") if event["type"] == "layer"]
    page = at(visit, app, "open-book", f"&at={layers[9]['at']}&layer=9")
    assert data(page, NOTE)["key"] != ""
    assert data(page, BYTES)["columns"] == "0"
    page.locator("[data-choose=layer]").select_option(index=10)
    until(page, NOTE, "d.layer === '10'")
    assert data(page, NOTE)["key"] == ""


@pytest.mark.parametrize(
    ("run", "kind", "heads", "kv_heads"), [("open-book", "grouped", 9, 3), ("chinese", "one", 4, 1)]
)
def test_who_shares_the_notes_is_drawn_from_the_runs_own_facts(
    app: App, visit: Visit, run: str, kind: str, heads: int, kv_heads: int
) -> None:
    page = at(visit, app, run)
    told = data(page, "[data-sharing]")
    assert (told["kind"], told["heads"], told["kvHeads"]) == (kind, str(heads), str(kv_heads))
    assert page.locator(".groups .query").count() == heads and page.locator("[data-kv-head]").count() == kv_heads
    facts = next(event for event in app.lines(run) if event["type"] == "started")["facts"]
    each = 2 * facts["layers"] * facts["head_size"] * facts["value_bytes"]
    assert {way: int(data(page, f"[data-way={way}]")["size"]) for way in ("own", "one")} == {
        "own": each * heads, "one": each,
    }  # fmt: skip
    page.locator("[data-choose=length]").fill("700")
    longer = data(page, "[data-longer]")
    length, sliding = int(longer["length"]), facts["layer_kinds"].count("sliding")
    kept = sum(min(length, facts["window"] - 1) if one == "sliding" else length for one in facts["layer_kinds"])
    assert (int(longer["kept"]), int(longer["sliding"])) == (each * kv_heads * kept // facts["layers"], sliding)
    firsts = page.locator(".layers-kept g[data-first]").evaluate_all("(all) => all.map((one) => +one.dataset.first)")
    assert firsts == ([length - 511 if one == "sliding" else 0 for one in facts["layer_kinds"]] if sliding else [])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_old_notes_are_proved_not_to_change(app: App, visit: Visit, lang: str) -> None:
    run = sit(app, **CAT)
    page = at(visit, app, run, f"&lang={lang}")
    page.locator("[data-do=prove]").click()
    page.wait_for_selector("[data-do=open-proof]:not([hidden])", timeout=LONG)
    told = data(page, PROOF)
    checks = app.ask(f"/api/runs/{told['run']}/columns")["checks"]
    prompt = len(next(event for event in app.lines(told["run"]) if event["type"] == "started")["prompt"])
    answer = len([event for event in app.lines(told["run"]) if event["type"] == "chose"])
    steps = list(range(int(told["lengths"].split()[0]), prompt + answer))
    assert prompt <= steps[0] < prompt + answer - 2, "watched from the reading on, or from an early step"
    assert told["lengths"].split() == [str(check["length"]) for check in checks]
    assert [int(length) for length in told["lengths"].split()] == [*steps, steps[-1]], "a check between all steps"
    assert (told["changed"], told["gaps"]) == ("0", "0")
    assert int(told["same"]) == sum(steps[:-1]) + steps[-1] > 100
    assert told["firsts"].replace(" ", "") == checks[0]["sums"] + "".join(after["sums"][-16:] for after in checks[1:-1])
    assert page.locator(".proof canvas").get_attribute("data-rows") == str(len(checks))
    page.locator("[data-do=check]").click()
    until(page, PROOF, f"d.checks === '{len(checks) + 1}'")
    box = page.locator(".proof canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 84 + 8, box["y"] + box["height"] - 5)
    until(page, "[data-sum]", "d.sum")
    assert data(page, "[data-sum]")["sum"] == checks[0]["sums"][:16]


def test_a_note_that_changed_would_be_seen(app: App, visit: Visit) -> None:
    """One digit of one sum is another on its way to the page: the proof does not hold, and it says so in red."""
    run = sit(app, **CAT)
    page = at(visit, app, run)

    def corrupt(route: Route) -> None:
        reply = route.fetch()
        told = reply.json()
        for number, check in enumerate(told["checks"]):
            if check["asked"] and (number or not route.request.url.endswith("from=0")):  # not the very first one
                sums = check["sums"]
                check["sums"] = sums[:40] + ("0" if sums[40] != "0" else "1") + sums[41:]
        route.fulfill(response=reply, body=json.dumps(told))

    page.route("**/columns?*", corrupt)
    page.locator("[data-do=prove]").click()
    page.wait_for_selector("[data-do=open-proof]:not([hidden])", timeout=LONG)
    page.locator("[data-do=check]").click()
    page.locator("[data-do=check]").click()
    until(page, PROOF, "d.changed !== '0'")
    expect(page.locator(f"{PROOF}.trouble")).to_be_visible()
    shape = page.locator(".proof canvas").evaluate("(canvas) => [canvas.width, canvas.height]")
    stop = colour(page, "--stop")
    red = page.locator(".proof canvas").evaluate(
        """(canvas, [red, green, blue]) => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
          const found = new Uint32Array(data.buffer)
          const wanted = new Uint32Array(Uint8Array.of(red, green, blue, 255).buffer)[0]
          return found.filter((colour) => colour === wanted).length
        }""",
        list(stop),
    )
    assert red > 20, shape


def test_a_paper_of_4096_tokens_is_seen_whole_and_from_near(app: App, visit: Visit) -> None:
    run = sit(app, prompt="The cat sat. " * 1023 + "The cat sat.", mode="raw", max_new_tokens=1)
    page = at(visit, app, run, "&layer=16")
    page.wait_for_selector("[data-picture][data-drawn='16.0.key']")
    told = data(page, CELL)
    assert told["positions"] == "4096" and int(told["bin"]) >= 2 and int(data(page, NOTE)["bin"]) >= 4
    assert data(page, "[data-picture]")["from"] == "0"
    for _ in range(12):
        page.locator("[data-do=nearer]").click()
    near = data(page, "[data-overview]")
    assert near["cells"] == "8" and near["from"] == str(4096 - 8)
    keys = numbers(app, run, 16, 0, "key")
    limit = float(told["limit"])
    dimension = int(np.abs(keys[4090]).argmax())
    assert abs(keys[4090, dimension]) > limit
    side = "--prefill" if keys[4090, dimension] > 0 else "--decode"
    assert seen(page, 4090, dimension) == colour(page, side)
    page.locator("[data-do=fit]").click()
    assert data(page, "[data-overview]")["cells"] == "4096"
    page.locator("[data-do=prove]").click()
    page.wait_for_selector("[data-do=open-proof]:not([hidden])", timeout=LONG)
    assert int(data(page, PROOF)["columns"]) < 200, "a paper this long is proved with a short one"


def test_another_paper_is_really_sat_and_followed(app: App, visit: Visit) -> None:
    page = at(visit, app, "open-book")
    before = int(data(page, BYTES)["bytes"])
    page.locator("[data-paper=closed-book]").click()
    page.wait_for_url(lambda url: "run=" in url and "run=open-book" not in url)
    until(page, "[data-state]", "d.state === 'finished'")
    until(page, "[data-taken]", "d.used")
    run = page.url.split("run=")[1].split("&")[0]
    after = int(data(page, BYTES)["bytes"])
    assert after == kv_of(app.lines(run))[-1]["bytes"] < before


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_layer_or_head_that_is_not_there_is_a_sentence(app: App, visit: Visit, lang: str) -> None:
    page = at(visit, app, sit(app, **CAT), f"&lang={lang}&layer=999")
    expect(page.locator(".trouble[data-code=no_layer]")).to_be_visible()
    page.goto(page.url.replace("layer=999", "layer=3&head=99"))
    trouble = page.locator(".trouble[data-code=no_head]")
    expect(trouble).to_be_visible()
    page.locator("[data-choose=layer]").select_option(index=16)
    expect(trouble).to_be_hidden()
    page.wait_for_selector("[data-picture][data-drawn^='16.']")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_runs_that_go_on_stop_or_fail_are_told_of(app: App, visit: Visit, lang: str) -> None:
    run = begin(app, prompt="Tell me a very long story about a lighthouse.", max_new_tokens=512)
    page = at(visit, app, run, f"&lang={lang}")
    until(page, "[data-state]", "d.state === 'running'")
    expect(page.get_by_text(say("notes.state.running", lang))).to_be_visible()
    until(page, BYTES, "d.columns > 45")
    app.ask(f"/api/runs/{run}/stop", {})
    until(page, "[data-state]", "d.state === 'stopped'")
    until(page, "[data-taken]", "d.used")
    assert int(data(page, "[data-taken]")["used"]) == kv_of(app.lines(run))[-1]["bytes"]
    page = at(visit, app, stopped_early(app), f"&lang={lang}")
    until(page, "[data-state]", "d.state === 'stopped'")
    expect(page.get_by_text(say("notes.state.stopped_early", lang))).to_be_visible()
    page = at(visit, app, too_long(app), f"&lang={lang}")
    until(page, "[data-state]", "d.state === 'failed'")
    assert "8191" in page.locator("[data-state]").inner_text()


@pytest.fixture(scope="module")
def sliding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The app with a tiny random Gemma 3: two of its three layers see eight positions."""
    from tests.engine import tiny

    folder = tmp_path_factory.mktemp("gemma")
    tiny.network("gemma3").save_pretrained(folder)
    tiny.tokenizer().save_pretrained(folder)
    home = home_of(tmp_path_factory.mktemp("home") / "sliding")
    app = App(home, free_port(), {"OPEN_BOOK_EXAM_DTYPE": "float32", "OPEN_BOOK_EXAM_MODEL": str(folder)})
    app.start()
    yield app
    app.stop()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_sliding_layers_are_drawn_forgetting(sliding: App, visit: Visit, lang: str) -> None:
    run = sit(sliding, prompt="Anna's cat is called Luna. Her dog.", mode="raw", max_new_tokens=8)
    page = at(visit, sliding, run, f"&lang={lang}&layer=0")
    page.wait_for_selector("[data-picture][data-drawn='0.0.key']")
    until(page, "[data-taken]", "d.used")
    length = kv_of(sliding.lines(run))[-1]["length"]
    first = length - 7
    assert data(page, NOTE)["first"] == data(page, CELL)["first"] == str(first)
    assert data(page, NOTE)["gone"] == str(int(data(page, NOTE)["position"]) < first).lower()
    told, taken = data(page, BYTES), data(page, "[data-taken]")
    each = 2 * 2 * 16 * 4
    assert told["equal"] == "true" and int(told["bytes"]) == each * (length + 2 * 7) == int(taken["used"])
    assert int(taken["held"]) == 3 * each * length
    assert data(page, "[data-row=layer]")["measured"] == str(each * 7)
    edge = data(page, "[data-picture]")
    x = float(edge["gutter"]) + (first - float(edge["from"])) * float(edge["step"])
    stop = colour(page, "--stop")
    torn = {pixel(page, "[data-picture]", x + dx / 2, y) for dx in range(-5, 6) for y in range(100, 140)}
    assert stop in torn, "the window's edge is torn"
    page.locator("[data-choose=layer]").select_option(index=1)
    page.wait_for_selector("[data-picture][data-drawn='1.0.key']")
    assert data(page, NOTE)["first"] == data(page, CELL)["first"] == "0"
    assert data(page, "[data-row=layer]")["measured"] == str(each * length)
    page.locator("[data-choose=moment]").fill("1")
    prompt = kv_of(sliding.lines(run))[0]["length"]
    page.locator("[data-choose=layer]").select_option(index=0)
    until(page, NOTE, f"d.layer === '0' && d.first === '{prompt - 7}'")
    assert data(page, BYTES)["equal"] == "true"
