"""The papers that labs are measured on: `assets/lessons/NAME.json`. No torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.settings import Keeping, Settings

if TYPE_CHECKING:
    from engine.model import LanguageModel

_FOLDER = Path(__file__).parent.parent.parent / "assets" / "lessons"


@dataclass(frozen=True, slots=True)
class Paper:
    """One exam whose answer must hold one of `right`; `fact` stands in the prompt word for word."""

    name: str
    prompt: str
    right: tuple[str, ...]
    fact: str
    max_new_tokens: int

    def settings(self, keeping: Keeping | None = None, model: LanguageModel | None = None) -> Settings:
        """The exam; a model without a chat template gets the paper as it is."""
        raw = model is not None and not model.text.has_template
        return Settings(
            self.prompt, mode="raw" if raw else "chat", max_new_tokens=self.max_new_tokens, keeping=keeping or Keeping()
        )


@cache
def papers(lab: str) -> tuple[Paper, ...]:
    """In the order of the file: `{"text": put before every question, "papers": [{"name", "prompt", "right", "fact",
    "max_new_tokens"}, …]}`."""
    lesson = json.loads((_FOLDER / f"{lab}.json").read_text("utf-8"))
    return tuple(
        Paper(one["name"], lesson["text"] + one["prompt"], tuple(one["right"]), one["fact"], one["max_new_tokens"])
        for one in lesson["papers"]
    )


def paper(lab: str, name: str) -> Paper:
    return next(one for one in papers(lab) if one.name == name)
