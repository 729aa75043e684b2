"""The order of the tests: what is quick first, the real browser last, there in one language each.

Playwright's synchronous interface keeps an event loop running in the thread of the tests for as long as its browser is
open; tests with loops of their own must be over by then.

A slow machine is no fault: hypothesis sets no time limit per example.

Browser tests that are the same in both languages are run in one of them, every other one in Chinese, to save a fifth of
the time. `OPEN_BOOK_EXAM_LANGUAGES=both` runs them all. That words are there in both is tested without a browser.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_in_browser)
    if os.environ.get("OPEN_BOOK_EXAM_LANGUAGES") == "both":
        return
    left_out = _other_language([item for item in items if _in_browser(item)])
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _in_browser(item: pytest.Item) -> bool:
    return "e2e" in item.path.parts


def _other_language(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of tests that differ in their language alone, those that are left out."""
    groups: dict[Any, list[pytest.Item]] = {}
    for item in items:
        values = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        if values.pop("lang", None) in ("en", "zh"):
            name = getattr(item, "originalname", item.name)
            groups.setdefault((item.path, name, repr(sorted(values.items()))), []).append(item)
    pairs = [group for group in groups.values() if len(group) > 1]
    return [item for number, group in enumerate(pairs) for item in group if item is not group[number % 2]]
