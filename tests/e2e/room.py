"""The exam room as a test sees it: what it does with its hands, and the scene's own text equivalent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page, WebSocket

LONG = 60_000
"""Milliseconds a whole exam may take on a slow machine. Only a failure waits so long."""

_WATCH = """(moment) => {
  window.seen = []
  const look = () => window.seen.push({...moment.dataset})
  new MutationObserver(look).observe(moment, {attributes: true})
  look()
}"""


@dataclass(frozen=True)
class Moment:
    """The scene's text equivalent at one frame (`[data-moment]`), as it stands in the page."""

    data: dict[str, str]

    def __getattr__(self, name: str) -> str:
        return self.data[name]

    @property
    def columns(self) -> int:
        return int(self.data["columns"])

    @property
    def prompt(self) -> int:
        return int(self.data["prompt"])

    @property
    def chosen(self) -> int:
        return int(self.data["chosen"])

    @property
    def layers(self) -> int:
        return int(self.data["layers"])

    @property
    def at(self) -> float:
        return float(self.data["at"])


class Room:
    """One person's page. What came over a run's WebSocket is kept."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._frames: dict[str, list[str]] = {}
        page.on("websocket", self._listen)
        page.wait_for_selector("[data-ready=true]", timeout=LONG)

    def _listen(self, socket: WebSocket) -> None:
        if found := re.search(r"/api/runs/([^/]+)/events", socket.url):
            frames = self._frames.setdefault(found[1], [])
            socket.on("framereceived", lambda frame: frames.append(str(frame)))

    @property
    def frames(self) -> list[str]:
        """Of the run on the desk, in order."""
        return self._frames.get(self.moment.run, [])

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for frame in self.frames for line in frame.split("\n") if line]

    @property
    def moment(self) -> Moment:
        return Moment(self._moment.evaluate("(moment) => ({...moment.dataset})"))

    @property
    def _moment(self) -> Locator:
        return self.page.locator("[data-moment]")

    @property
    def headline(self) -> str:
        return self.page.locator("h1").inner_text()

    def button(self, action: str) -> Locator:
        return self.page.locator(f"[data-action={action}]")

    def until(self, condition: str, timeout: float = LONG) -> Moment:
        """Wait until a condition on the moment's data (`m`) holds; the moment at which it did."""
        self.page.wait_for_function(
            f"""() => {{
              const deep = (root) => root.querySelector('[data-moment]')
                ?? [...root.querySelectorAll('*')].map((e) => e.shadowRoot && deep(e.shadowRoot)).find(Boolean)
              const m = deep(document)?.dataset
              return m && ({condition})
            }}""",
            timeout=timeout,
        )
        return self.moment

    def ask(self, prompt: str | None = None, example: str | None = None, wait: bool = True, **options: object) -> None:
        """Fill in the paper and press start. With `wait`, until the exam is over. Every frame from now on is kept."""
        before = self.fill_in(prompt, example, **options)
        self.hand_in()
        self.until(f"m.run !== {json.dumps(before)}")
        if wait:
            self.until("m.reason")

    def fill_in(self, prompt: str | None = None, example: str | None = None, **options: object) -> str:
        """All that is done before start is pressed; the run that is on the desk until then."""
        before = self.moment.run
        if self.page.locator("form.compose").is_hidden():
            self.button("new").click()
        if example:
            self.page.locator(f"[data-example={example}]").click()
        if prompt is not None:
            self.page.locator("textarea[name=prompt]").fill(prompt)
        if options:
            self.page.locator("form.compose details").evaluate("(details) => { details.open = true }")
            for name, value in options.items():
                field = self.page.locator(f"form.compose [name={name}]")
                _ = field.select_option(str(value)) if name in ("mode", "model") else field.fill(str(value))
        return before

    def hand_in(self) -> None:
        """Press start."""
        self._moment.evaluate(_WATCH)
        self.page.locator("form.compose button[type=submit]").click()

    def seen(self) -> list[Moment]:
        """Every frame's moment since start was pressed."""
        return [Moment(data) for data in self.page.evaluate("window.seen")]
