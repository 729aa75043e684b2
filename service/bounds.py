"""What a run may ask for. Every bound is checked before anything is queued, and is in the words of its refusal."""

from __future__ import annotations

import math
import re

from engine.settings import MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS, Refusal, Settings

MAX_BODY = 2**20
"""Bytes of a request's body: room for the longest prompt with every character escaped."""

MAX_STOPS = 8
MAX_STOP_CHARACTERS = 100
MAX_MODEL_CHARACTERS = 500
"""A model may be a folder's path."""
MAX_OWNER_CHARACTERS = 64

RANGES: dict[str, tuple[float, float]] = {
    "max_new_tokens": (1, MAX_NEW_TOKENS),
    "temperature": (0, 5),
    "top_k": (0, 1000),
    "top_p": (0.01, 1),
    "seed": (0, 2**32 - 1),
    "timeout": (1, 600),
}
"""Least and most of every number in `Settings`, both allowed. Logits divided by 5 are all but even already."""

_OWNER = re.compile(rf"[A-Za-z0-9_-]{{0,{MAX_OWNER_CHARACTERS}}}")


def check(settings: Settings) -> None:
    """Raises `Refusal`: `empty_prompt`, `prompt_too_long`, `lone_surrogate`, `out_of_range`, `too_many_stops`,
    `stop_length` or `name_too_long`."""
    characters = len(settings.prompt)
    if characters > MAX_PROMPT_CHARACTERS:
        raise Refusal("prompt_too_long", characters=characters, bound=MAX_PROMPT_CHARACTERS)
    if not settings.prompt.strip():
        raise Refusal("empty_prompt")
    for text in (settings.prompt, settings.model, *settings.stop):
        check_text(text)
    for field, (least, most) in RANGES.items():
        value = getattr(settings, field)
        if not (math.isfinite(value) and least <= value <= most):
            raise Refusal("out_of_range", field=field, least=least, most=most)
    if len(settings.stop) > MAX_STOPS:
        raise Refusal("too_many_stops", bound=MAX_STOPS)
    if any(not 1 <= len(stop) <= MAX_STOP_CHARACTERS for stop in settings.stop):
        raise Refusal("stop_length", bound=MAX_STOP_CHARACTERS)
    if len(settings.model) > MAX_MODEL_CHARACTERS:
        raise Refusal("name_too_long", field="model", bound=MAX_MODEL_CHARACTERS)


def check_owner(owner: str) -> None:
    """Raises `Refusal("bad_owner")` unless it is made of letters, digits, `-` and `_`, and short."""
    if not _OWNER.fullmatch(owner):
        raise Refusal("bad_owner", bound=MAX_OWNER_CHARACTERS)


def check_text(text: str) -> None:
    """Raises `Refusal("lone_surrogate")` for text with half a character: no tokenizer and no file can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal("lone_surrogate") from None
