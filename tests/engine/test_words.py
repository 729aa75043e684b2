"""Words: every area says the same things in both languages, with the same gaps."""

from __future__ import annotations

from string import Formatter

import pytest

from engine.words import FOLDER, area_words, say

AREAS = sorted({file.stem for lang in ("en", "zh") for file in (FOLDER / lang).glob("*.json")})


def gaps(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


@pytest.mark.parametrize("area", AREAS)
def test_both_languages_say_the_same_things(area: str) -> None:
    english, chinese = area_words(area, "en"), area_words(area, "zh")
    assert english.keys() == chinese.keys()
    for name, sentence in english.items():
        assert gaps(sentence) == gaps(chinese[name]), name
        assert "" not in gaps(sentence), name


def test_gaps_are_filled_and_a_strangers_braces_are_left_alone() -> None:
    assert say("errors.file_unreadable", file="{x}") == "The file {x} cannot be opened."
    assert "{x}" in say("errors.file_unreadable", "zh", file="{x}")


@pytest.mark.parametrize("key", ["errors.unheard_of", "nowhere.at_all", "errors"])
def test_what_has_no_words_is_a_mistake_of_ours(key: str) -> None:
    with pytest.raises(KeyError):
        say(key)


def test_a_missing_value_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        say("errors.file_unreadable")
