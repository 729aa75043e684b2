"""The exams to choose from: `assets/lessons/examples.json`, with titles and hints from the words.

An example: `id`, `languages` it is first offered in, `settings` (`engine.settings.Settings`), `right` (strings of which
a right answer holds one; empty where there is no right answer), and where it applies `recording` (a shipped run of the
same settings), `lens` (layer and head worth looking through, counted from 0), `look` (two words that head joins), and
`variants` (the same question asked otherwise).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

from engine.words import Lang, area_words

_FILE = Path(__file__).parent.parent / "assets" / "lessons" / "examples.json"


@cache
def examples(lang: Lang) -> list[dict[str, Any]]:
    """All examples with their words, those made for `lang` first."""
    words = area_words("examples", lang)
    told = [_tell(example, words) for example in json.loads(_FILE.read_text("utf-8"))["examples"]]
    return sorted(told, key=lambda example: lang not in example["languages"])


@cache
def texts() -> list[dict[str, str]]:
    """Texts to cut into tokens: `id` (its title is in the words of the page) and `text`."""
    return cast("list[dict[str, str]]", json.loads((_FILE.parent / "texts.json").read_text("utf-8"))["texts"])


@cache
def papers() -> dict[str, dict[str, Any]]:
    """The settings of the two papers that differ in one late word (`assets/lessons/prefill.json`)."""
    return cast("dict[str, dict[str, Any]]", json.loads((_FILE.parent / "prefill.json").read_text("utf-8")))


@cache
def endings() -> dict[str, dict[str, Any]]:
    """Settings that end each in a way of its own, by the reason (`assets/lessons/endings.json`)."""
    return cast("dict[str, dict[str, Any]]", json.loads((_FILE.parent / "endings.json").read_text("utf-8")))


def recording(lang: Lang) -> str:
    """The run that plays before anybody asks for one."""
    return next(str(example["recording"]) for example in examples(lang) if "recording" in example)


def _tell(example: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    variants = [_tell(variant, words) for variant in example.get("variants", [])]
    return {
        **example,
        "title": words[f"{example['id']}.title"],
        "hint": words[f"{example['id']}.hint"],
        "variants": variants,
    }
