"""Words in the reader's language."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from engine import words
from views import place


def say(key: str, **values: str | float) -> str:
    """The sentence of `area.key` in the reader's language, its gaps filled."""
    return words.say(key, place.lang(), **values)


def area(name: str) -> dict[str, Any]:
    """All words of an area in the reader's language, as its file holds them, for the browser."""
    return _file(name, place.lang())


@cache
def _file(name: str, lang: words.Lang) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((words.FOLDER / lang / f"{name}.json").read_text("utf-8"))
    return content
