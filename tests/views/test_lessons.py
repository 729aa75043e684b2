"""The exams to choose from are ones the service takes, with words in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from engine.trace import codec
from service.bounds import check
from views.lessons import examples


def everything(lang: str) -> list[dict[str, Any]]:
    told = examples(lang)  # type: ignore[arg-type]
    return [*told, *(variant for example in told for variant in example["variants"])]


def test_every_example_can_be_submitted() -> None:
    for example in everything("en"):
        check(codec.settings_from({**example["settings"], "stop": tuple(example["settings"].get("stop", ()))}))


def test_ids_are_unique() -> None:
    ids = [example["id"] for example in everything("en")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_examples_made_for_a_language_come_first(lang: str) -> None:
    own = [lang in example["languages"] for example in examples(lang)]  # type: ignore[arg-type]
    assert own[0] and own == sorted(own, reverse=True)


def test_the_long_paper_holds_its_answer_in_the_middle() -> None:
    (paper,) = [example for example in everything("en") if example["id"] == "long-paper"]
    prompt = paper["settings"]["prompt"]
    (answer,) = paper["right"]
    place = (prompt.index(answer) + prompt.rindex(answer)) / 2 / len(prompt)
    assert 0.3 < place < 0.7


def test_closing_the_book_takes_the_passage_away_and_nothing_else() -> None:
    """The scene recognises an open book by this (assets/scene/actions.js)."""
    for example in examples("en"):
        if variants := example["variants"]:
            closed, changed = variants
            assert closed["settings"]["prompt"] in example["settings"]["prompt"]
            assert closed["settings"]["prompt"] in changed["settings"]["prompt"]
            assert not closed["right"]
            assert changed["right"][0] in changed["settings"]["prompt"]
