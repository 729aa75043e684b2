"""What a request may ask for beside its run's settings, whose bounds are `engine.settings.check`'s."""

from __future__ import annotations

import re

from engine.settings import RANGES, Refusal, check, check_text

__all__ = ["MAX_BODY", "RANGES", "check", "check_owner", "check_text"]

MAX_BODY = 2**20
"""Bytes of a request's body: room for the longest prompt with every character escaped."""

MAX_OWNER_CHARACTERS = 64

_OWNER = re.compile(rf"[A-Za-z0-9_-]{{0,{MAX_OWNER_CHARACTERS}}}")


def check_owner(owner: str) -> None:
    """Raises `Refusal("bad_owner")` unless it is made of letters, digits, `-` and `_`, and short."""
    if not _OWNER.fullmatch(owner):
        raise Refusal("bad_owner", bound=MAX_OWNER_CHARACTERS)
