"""What a failing browser test leaves behind: of every page it had open a picture, the address and the console's lines.

They lie in `.exam/failed/`, a folder for each test, made anew when it fails again; the report names it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, Error, Page

FOLDER = Path(__file__).parent.parent.parent / ".exam" / "failed"


class Witness:
    """Listens to the pages of one test from their beginning."""

    def __init__(self) -> None:
        self.pages: list[tuple[Page, list[str]]] = []

    def watch(self, page: Page) -> None:
        lines: list[str] = []
        page.on("console", lambda told: lines.append(line_of(told)))
        page.on("pageerror", lambda error: lines.append(f"thrown: {error}"))
        page.on("requestfailed", lambda request: lines.append(f"failed: {request.url} {request.failure}"))
        self.pages.append((page, lines))

    def leave(self, test: str) -> Path | None:
        """Write down what each page shows and said; the folder, or None where no page was opened."""
        if not self.pages:
            return None
        folder = FOLDER / re.sub(r"[^\w.-]+", "-", test).strip("-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number, (page, lines) in enumerate(self.pages, 1):
            try:
                page.screenshot(path=folder / f"page-{number}.png", timeout=10_000)
            except Error as error:  # a page that was closed, or hangs, has no picture
                lines = [*lines, f"no picture: {error}"]
            (folder / f"page-{number}.txt").write_text("\n".join([page.url, *lines]) + "\n", "utf-8")
        return folder


def line_of(told: ConsoleMessage) -> str:
    place = told.location
    return f"{told.type}: {told.text} ({place['url']}:{place['lineNumber']})"


WITNESS = pytest.StashKey[Witness]()


def witness_of(item: pytest.Item) -> Witness:
    """The test's own; there from its first page to its last."""
    return item.stash.setdefault(WITNESS, Witness())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Pages are still open when a test, or the making of its fixtures, has failed."""
    report = yield
    if report.failed and report.when != "teardown" and (folder := witness_of(item).leave(item.nodeid)):
        report.sections.append(("Pages as they were", str(folder)))
    return report
