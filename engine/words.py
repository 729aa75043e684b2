"""Every sentence a person reads, by key and language, from `assets/words/{en,zh}/*.json`. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

Lang = Literal["en", "zh"]

FOLDER = Path(__file__).parent.parent / "assets" / "words"


def say(key: str, lang: str = "en", **values: str | float) -> str:
    """The sentence of `area.key` (or `area.group.key`) with its `{gaps}` filled. Raises `KeyError` for an unknown
    key, language or gap: a test asks for all of them, so no page ever does."""
    area, _, name = key.partition(".")
    return area_words(area, lang)[name].format_map(values)


@cache
def area_words(area: str, lang: str) -> dict[str, str]:
    """All sentences of one area: `group.key` in groups, `key.0` in lists. Raises `KeyError` for an unknown one."""
    file = FOLDER / lang / f"{area}.json"
    if not file.is_file():
        raise KeyError(f"{lang}/{area}")
    return dict(_flat(json.loads(file.read_text("utf-8"))))


def _flat(words: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(words, str):
        yield name, words
        return
    for key, value in words.items() if isinstance(words, dict) else enumerate(words):
        yield from _flat(value, f"{name}.{key}" if name else str(key))
