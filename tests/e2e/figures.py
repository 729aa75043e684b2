"""The page's figures in a real browser, printed as JSON: `python -m tests.e2e.figures`.

No test, since times are no assertions. `start_s`: from the command to the recording playing and to the model being
ready. `frames_ms`: between animation frames while the recording plays, and the browser's count of tasks over 50 ms.
`delay_ms`: from a token being chosen to its being on the page; an upper bound, as the way of the POST is counted in.
`tpot_ratio`: time per word with one page watching ÷ with nobody, in turns. `idle_cpu`: CPU seconds per second of app,
engine and browser while nothing moves (Linux only).
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from engine.trace import tpot
from tests.e2e.conftest import QUIET, App, chromium, free_port, home_of
from tests.e2e.room import Room

ROUNDS = 5
PROMPT = "Tell me a story about Anna, her cat Luna and her dog Max."
ASKED: dict[str, Any] = {"prompt": PROMPT, "max_new_tokens": 48, "temperature": 0.7}

_CLOCK = """
const fetched = window.fetch
window.fetch = (address, options) => {
  if (options?.method === 'POST' && /api\\/runs$/.test(address)) window.posted = performance.now()
  return fetched(address, options)
}
window.gaps = []
window.tasks = []
new PerformanceObserver((list) => list.getEntries().forEach((each) => window.tasks.push(each.duration)))
  .observe({entryTypes: ['longtask']})
window.beat = (last) => requestAnimationFrame((now) => {
  if (last) window.gaps.push(now - last)
  if (window.beating) window.beat(now)
})
"""
_SHOWN = """(moment) => {
  window.shown = []
  new MutationObserver(() => {
    while (window.shown.length < Number(moment.dataset.chosen)) window.shown.push(performance.now() - window.posted)
    if (moment.dataset.chosen === '0') window.shown = []
  }).observe(moment, {attributes: true})
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        app = App(home_of(Path(folder) / "home"), free_port(), {"OPEN_BOOK_EXAM_DTYPE": "float32"})
        app.start()  # so that files and byte code are warm
        app.stop()
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", *QUIET])
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.add_init_script(_CLOCK)
        try:
            figures: dict[str, Any] = {"start_s": start(app, page), "frames_ms": frames(page)}
            figures |= watched(app, Room(page), page)
            figures |= {"idle_cpu": idle(page), "load_average": round(os.getloadavg()[0], 2)}
        finally:
            browser.close()
            app.stop()
    print(json.dumps(figures, indent=1))


def start(app: App, page: Page) -> dict[str, float]:
    begin = time.monotonic()
    app.start(ready=False)
    page.goto(app.address)
    Room(page).until("Number(m.at) > 0")
    playing = time.monotonic() - begin
    app.wait()
    return {"recording_plays": round(playing, 2), "model_ready": round(time.monotonic() - begin, 2)}


def frames(page: Page) -> dict[str, float]:
    """Eight seconds of the recording, played again from its beginning."""
    page.reload()
    Room(page).until("Number(m.at) > 0")
    page.evaluate("window.gaps = []; window.tasks = []; window.beating = true; window.beat(0)")
    time.sleep(8)
    gaps = sorted(page.evaluate("window.beating = false, window.gaps"))
    named = {"median": gaps[len(gaps) // 2], "p99": gaps[int(len(gaps) * 0.99)], "longest": gaps[-1]}
    return {**{name: round(gap, 1) for name, gap in named.items()}, "tasks_over_50": page.evaluate("tasks.length")}


def watched(app: App, room: Room, page: Page) -> dict[str, Any]:
    """Runs in turns with the page watching and with nobody; the first of each is not counted."""
    times: dict[str, list[float]] = {"watched": [], "alone": []}
    delays: list[float] = []
    lost = 0
    for seed in range(ROUNDS + 1):
        if seed == 0:
            page.locator("[data-moment]").evaluate(_SHOWN)
        room.ask(**ASKED, seed=seed, wait=False)
        over(app, room.moment.run)  # waiting in the page would make it draw sixty frames a second
        arrivals = chosen(app.lines(room.moment.run))
        shown = [each / 1000 for each in page.evaluate("window.shown")]
        alone = app.ask("/api/runs", {**ASKED, "seed": seed, "keep": True})["id"]
        over(app, alone)
        if seed:
            delays += [there - at for there, at in zip(shown, arrivals, strict=False)]
            lost += len(arrivals) - len(shown)
            times["watched"].append(1000 * (tpot(arrivals) or 0))
            times["alone"].append(1000 * (tpot(chosen(app.lines(alone))) or 0))
    delays.sort()
    medians = {name: statistics.median(each) for name, each in times.items()}
    return {
        "delay_ms": {"median": round(1000 * delays[len(delays) // 2]), "p95": round(1000 * delays[-len(delays) // 20])},
        "words_never_shown": lost,
        "tpot_ms": {name: [round(time_, 1) for time_ in each] for name, each in times.items()},
        "tpot_ratio": round(medians["watched"] / medians["alone"], 3),
    }


def over(app: App, run: str) -> None:
    while app.ask(f"/api/runs/{run}")["state"] != "finished":
        time.sleep(0.5)
    time.sleep(1)


def chosen(events: list[dict[str, Any]]) -> list[float]:
    return [event["at"] for event in events if event["type"] == "chose"]


def idle(page: Page) -> float:
    """CPU seconds per second of every process this one has started, over ten still seconds."""
    page.keyboard.press("End")
    time.sleep(3)
    before = _ticks()
    time.sleep(10)
    return round((_ticks() - before) / os.sysconf("SC_CLK_TCK") / 10, 4)


def _ticks() -> int:
    """Ticks of CPU of all descendants of this process."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)], ticks[int(folder.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks[pid] for pid in ours - {os.getpid()})


if __name__ == "__main__":
    main()
