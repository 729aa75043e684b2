"""The frame and its pages without a browser: Streamlit's own test runner gives what the browser would be told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import service

FRAME = Path(__file__).parent.parent.parent / "views" / "frame.py"
Opened = Callable[..., AppTest]


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


def told(app: AppTest, component: str) -> dict[str, Any]:
    """What a component of the page was given."""
    protos = [element.proto for element in app.get("bidi_component")]
    (data,) = [json.loads(proto.json) for proto in protos if proto.component_name == component]
    assert isinstance(data, dict)
    return data
