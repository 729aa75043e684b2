"""What the decode station is told besides: runs that end each in a way of its own."""

from __future__ import annotations

from typing import get_args

import pytest

from engine.settings import Settings, check
from engine.trace import Reason
from engine.words import area_words
from views import lessons


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_ending_but_a_failure_can_be_caused_and_is_told(lang: str) -> None:
    words = area_words("decode", lang)
    reasons = set(get_args(Reason))
    assert set(lessons.endings()) == reasons - {"error"}
    for reason in reasons:
        assert words[f"ended.{reason}"]
        if reason != "error":
            assert words[f"ending.{reason}"] and words[f"how.{reason}"]


def test_the_settings_of_endings_are_such_as_the_engine_takes() -> None:
    for reason, given in lessons.endings().items():
        settings = Settings(**{**given, "stop": tuple(given.get("stop", ()))})
        check(settings)
        assert bool(settings.memory) == (reason == "out_of_memory") and bool(settings.stop) == (reason == "stop_string")
