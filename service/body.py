"""A request's body, read strictly."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from engine.settings import Refusal
from service.bounds import check_text

_T = TypeVar("_T")


def parse(body: bytes, adapter: TypeAdapter[_T]) -> _T:
    """What a body says. Raises `Refusal`: `not_json`, `lone_surrogate` or `bad_field`."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal("not_json") from None
    for value in values.values() if isinstance(values, dict) else ():
        if isinstance(value, str):
            check_text(value)
    try:
        return adapter.validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise bad_field(error.errors()[0]["loc"]) from None


def bad_field(place: tuple[int | str, ...]) -> Refusal:
    return Refusal("bad_field", field=".".join(str(part) for part in place)[:100] or "body")
