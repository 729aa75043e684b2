"""The order of the tests: what is quick first, the real browser last.

Playwright's synchronous interface keeps an event loop running in the thread of the tests for as long as its browser is
open; tests with loops of their own must be over by then.
"""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "e2e" in item.path.parts)
