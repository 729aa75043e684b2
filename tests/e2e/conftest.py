"""A real browser on the real app: `streamlit run app.py` with the bundled model in fp32, in a home of its own.

Nothing is skipped in silence: weights that are not there are fetched, and what cannot be had fails with a sentence.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect, sync_playwright

from engine import weights
from engine.settings import Refusal
from tests.e2e.evidence import pytest_runtest_makereport, witness_of

__all__ = ["pytest_runtest_makereport"]

ROOT = Path(__file__).parent.parent.parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge", "microsoft-edge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
QUIET = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync",
         "--disable-component-update")  # fmt: skip
LONG = 60_000
"""Milliseconds that a page may take for anything on a busy machine; Playwright's own five seconds are too few there."""
expect.set_options(timeout=LONG)
STORAGE = "cookies,local_storage,session_storage,indexeddb,service_workers"
PATIENCE = 240.0
"""Seconds the model may take to be ready on a slow machine. Only a failure waits so long."""


def chromium() -> str | None:
    """An installed browser of Chromium's kind; None means the one Playwright itself has downloaded."""
    if asked := os.environ.get("OPEN_BOOK_EXAM_BROWSER"):
        return asked
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in (*found, *PLACES) if path and Path(path).exists()), None)


@dataclass
class App:
    """The app as a person starts it. `stop` and `start` again keep its home and its port."""

    home: Path
    port: int
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.home / "app.log"

    def start(self, ready: bool = True) -> None:
        """Start it and `wait`."""
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        environment = {**os.environ, "OPEN_BOOK_EXAM_HOME": str(self.home), **self.environment}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        self.wait(ready)

    def wait(self, ready: bool = True) -> None:
        """Until the model is ready, or until the service answers."""
        assert self.process is not None
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            health = self.health()
            if health and (not ready or health["engine"] == "ready"):
                return
            if self.process.poll() is not None or (ready and health and health["engine"] == "failed"):
                break
            time.sleep(0.25)
        self.stop()
        pytest.fail(f"the app did not get ready; its log ends:\n{self.log.read_text(errors='replace')[-3000:]}")

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def health(self) -> dict[str, Any] | None:
        try:
            return self.ask("/api/health")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """GET, or POST with a body: what the service answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as reply:
            answer = json.load(reply)
            assert isinstance(answer, dict)
            return answer

    def lines(self, run: str) -> list[dict[str, Any]]:
        """A finished run's events, from its trace file."""
        from engine.trace import codec
        from engine.trace import file as tracefile

        with urllib.request.urlopen(f"{self.address}/api/runs/{run}/trace", timeout=30) as reply:
            trace = tracefile.read(reply.read()).trace
        return [json.loads(codec.to_json(event)) for event in trace.events]


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def prepared() -> Path:
    """Where the bundled model's weights lie; fetched and prepared if they do not."""
    if not weights.folder(weights.DEFAULT).is_dir():
        try:
            weights.fetch(weights.DEFAULT, lambda fraction, what: None)
        except Refusal as refusal:
            pytest.fail(f"the bundled model's weights are not here and could not be fetched: {refusal}", pytrace=False)
    return weights.home()


def home_of(folder: Path) -> Path:
    """A home of its own, which shares the models: the person's own runs are not touched."""
    folder.mkdir(exist_ok=True)
    for part in ("models", "downloads"):
        there = prepared() / part
        if not there.is_dir():
            continue
        try:
            (folder / part).symlink_to(there, target_is_directory=True)
        except OSError:  # Windows wants a right for links
            shutil.copytree(there, folder / part)
    return folder


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    app = App(home_of(tmp_path_factory.mktemp("home") / "exam"), free_port(), {"OPEN_BOOK_EXAM_DTYPE": "float32"})
    app.start()
    yield app
    app.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    arguments = [*QUIET, *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        except Error as error:
            pytest.fail(
                f"no browser: install Chromium or Chrome, or run `playwright install chromium`.\n{error}", False
            )
        yield browser
        browser.close()


class People:
    """Browser contexts, used again by the next test: what they have loaded once they need not load and compile again.

    Cookies and storage are emptied before, so whoever opens a page is new; two visits of one test are two people.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._known: dict[str, list[BrowserContext]] = {}

    def page(self, number: int, address: str, **options: Any) -> Page:
        """An empty page of the `number`th such person."""
        alike = self._known.setdefault(json.dumps(options, sort_keys=True), [])
        if number == len(alike):
            alike.append(self._browser.new_context(**options))
            alike[number].set_default_timeout(LONG)
        page = alike[number].new_page()
        origin = {"origin": "/".join(address.split("/")[:3]), "storageTypes": STORAGE}
        storage = alike[number].new_cdp_session(page)
        storage.send("Storage.clearDataForOrigin", origin)
        storage.detach()
        return page


@pytest.fixture(scope="session")
def people(browser: Browser) -> People:
    return People(browser)


@pytest.fixture
def visit(app: App, people: People, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """`visit(address, width=1280, height=720, locale="en-US")` opens a page as a new person would.

    At the end no page may have logged an error, thrown one, or asked another host for anything.
    """
    complaints: list[str] = []
    witness = witness_of(request.node)
    opened: Counter[str] = Counter()

    def visit(address: str, width: int = 1280, height: int = 720, **options: Any) -> Page:
        options = {"locale": "en-US", **options}
        origin = address if address.startswith("http") else app.address
        page = people.page(opened[repr(options)], origin, **options)
        opened[repr(options)] += 1
        page.set_viewport_size({"width": width, "height": height})
        witness.watch(page)
        page.on("pageerror", lambda error: complaints.append(f"{error}"))
        page.on("console", lambda told: complaints.append(told.text) if told.type == "error" and ours(told) else None)
        page.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: complaints.append(request.url) if not local(request.url) else None)
        page.goto(address)
        return page

    yield visit
    left = witness.leave(request.node.nodeid) if complaints else None
    for page, _ in witness.pages:
        page.close()
    assert not complaints, f"{complaints}; pages as they were: {left}"


def ours(told: ConsoleMessage) -> bool:
    """Whether an error in the console is a fault of ours. Two kinds are only the browser's note of an answer: refusals
    of the service, which a page tells in words; and Streamlit's, which at a deep link looks for its server below it."""
    url, refused = told.location["url"], re.search(r"status of (404|409|413|422|503) ", told.text)
    return "/_stcore/" not in url and not (refused and "/api/" in url)


def local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "blob:", "data:"))
