"""What a person asks for, and how the engine says no. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

MAX_PROMPT_CHARACTERS = 60_000
"""Bound on the text of one prompt, checked before tokenising. About 7 times the bundled model's context."""

MAX_NEW_TOKENS = 512
"""Bound on one answer's length in tokens."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One run's request. Plain values; everything that decides the answer is in here.

    Raises nothing by itself: `engine.text` and `engine.run` check the bounds, which depend on the model.
    """

    prompt: str
    model: str = ""
    """Name of a known model; empty means the default one."""
    mode: Literal["chat", "raw"] = "chat"
    """`chat` puts the prompt in the model's own chat template; `raw` gives it as it is."""
    control: Literal["text", "control"] = "text"
    """What control tokens typed in the prompt become: literal text, or the real control token."""
    max_new_tokens: int = 64
    temperature: float = 0.0
    """0 is greedy. Otherwise logits are divided by it before sampling."""
    top_k: int = 0
    """Keep the k likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the smallest set of tokens whose probabilities sum to at least this; 1 keeps all."""
    seed: int = 0
    stop: tuple[str, ...] = field(default=())
    """The answer ends before the first of these strings."""
    timeout: float = 120.0
    """Seconds since the start was pressed after which the run ends as `timeout`."""


class Refusal(Exception):
    """Something that will not be done, with a reason a person can read.

    `code` names a sentence in `assets/words/*/errors.json`; `values` fill its gaps. The sentence itself is
    made where it is shown, in the reader's language.
    """

    def __init__(self, code: str, **values: str | int | float) -> None:
        super().__init__(code, values)
        self.code = code
        self.values = values

    def __reduce__(self) -> tuple[object, ...]:
        return _refusal, (self.code, self.values)

    def __str__(self) -> str:
        return f"{self.code} {self.values}" if self.values else self.code


def _refusal(code: str, values: dict[str, str | int | float]) -> Refusal:
    return Refusal(code, **values)
