"""The papers that labs read: one of the exam room's own, and texts of a given length whose words do not matter."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.settings import Refusal, Settings

if TYPE_CHECKING:
    from engine.model import LanguageModel

_EXAMPLES = Path(__file__).parent.parent.parent / "assets" / "lessons" / "examples.json"
_TEXT = "The orange fell off the table because it was too round, and nobody in the room had seen it roll. "


def example(name: str) -> Settings:
    """The exam of this name among those the exam room offers."""
    listed = json.loads(_EXAMPLES.read_text("utf-8"))["examples"]
    return Settings(**next(one["settings"] for one in listed if one["id"] == name))


def of_length(model: LanguageModel, tokens: int, settings: Settings | None = None) -> Settings:
    """A raw prompt of exactly `tokens` tokens, cut where a token of a longer text ends, and one word as its answer.

    Raises `Refusal("too_many_tokens")` where the model has no room for it.
    """
    settings = settings or Settings("x", mode="raw", max_new_tokens=1)
    if tokens >= model.facts.context:
        raise Refusal("too_many_tokens", tokens=tokens, bound=model.facts.context - 1)
    text = _TEXT * (tokens // 8 + 2)
    long = model.text.prompt(replace(settings, prompt=text))
    stop = long.tokens[tokens - 1].stop - (len(long.text) - len(text))  # a mark of the model's may stand before it
    for end in range(stop, stop + 40):  # a cut inside a word is tokenised anew, and may come out shorter
        cut = replace(settings, prompt=text[:end])
        if len(model.text.prompt(cut).tokens) == tokens:
            return cut
    raise Refusal("too_many_tokens", tokens=tokens, bound=model.facts.context - 1)
