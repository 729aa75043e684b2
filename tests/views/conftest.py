"""The frame and its pages without a browser: Streamlit's own test runner gives what the browser would be told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import service
from tests.views.told import At, Opened

FRAME = Path(__file__).parent.parent.parent / "views" / "frame.py"


@pytest.fixture(autouse=True)
def no_service() -> Iterator[None]:
    """Each test says itself which service there is."""
    service._current.clear()
    yield
    service._current.clear()


@pytest.fixture
def opened() -> Opened:
    """Open an address: `opened(lang="zh", run="open-book")`."""

    def opened(**query: str) -> AppTest:
        app = AppTest.from_file(str(FRAME), default_timeout=30)
        for name, value in query.items():
            app.query_params[name] = value
        return app.run()

    return opened


@pytest.fixture
def at(opened: Opened) -> At:
    """Open a page by its name: `at("tokenise", lang="zh")`."""

    def at(name: str, **query: str) -> AppTest:
        app = opened(**query)
        app.switch_page(f"../pages/{name}.py")
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return at
