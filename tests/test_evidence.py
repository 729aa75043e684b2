"""What a failing browser test leaves, with a page that is none: no browser is needed to see that nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import evidence

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from playwright.sync_api import Error
from tests.e2e.evidence import pytest_runtest_makereport, witness_of

class Told:
    type, text, location = "warning", "it blinked", {"url": "/scene/scene.js", "lineNumber": 7}

class Page:
    def __init__(self, url):
        self.url = url
    def on(self, event, hear):
        if event == "console":
            hear(Told)
        if event == "pageerror":
            hear(ValueError("no such layer"))
    def screenshot(self, path, timeout):
        if self.url.endswith("closed"):
            raise Error("the page is closed")
        path.write_bytes(b"a picture")

@pytest.fixture
def pages(request):
    for url in ("http://127.0.0.1/prefill?run=1", "http://127.0.0.1/closed"):
        witness_of(request.node).watch(Page(url))

@pytest.fixture
def never(pages):
    raise LookupError
"""
TESTS = """
def test_passes(pages): pass
def test_fails(pages): assert 0
def test_never_begins(never): pass
def test_has_no_page(): assert 0
"""


def test_a_failing_test_leaves_its_pages_and_says_where(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "FOLDER", tmp_path / "failed")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it=TESTS)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=2, errors=1)
    left = {folder.name: folder for folder in (tmp_path / "failed").iterdir()}
    assert set(left) == {"test_it.py-test_fails", "test_it.py-test_never_begins"}
    for folder in left.values():
        result.stdout.fnmatch_lines([str(folder)])
        assert sorted(path.name for path in folder.iterdir()) == ["page-1.png", "page-1.txt", "page-2.txt"]
        assert (folder / "page-1.txt").read_text("utf-8").splitlines() == [
            "http://127.0.0.1/prefill?run=1",
            "warning: it blinked (/scene/scene.js:7)",
            "thrown: no such layer",
        ]
        assert (folder / "page-2.txt").read_text("utf-8").endswith("no picture: the page is closed\n")
