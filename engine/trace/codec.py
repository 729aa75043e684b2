"""Events as JSON lines and back, validated by pydantic; bytes are URL-safe base64, every number is finite.

`schema()` is the published schema (`docs/trace.schema.json`), generated from the dataclasses themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, cast

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from engine import settings, trace

_CONFIG = ConfigDict(
    ser_json_bytes="base64",
    val_json_bytes="base64",
    extra="forbid",
    allow_inf_nan=False,
    use_attribute_docstrings=True,
    json_schema_serialization_defaults_required=True,  # every line written holds every field
)

# The dataclasses are standard library only; what pydantic needs to know of them is said here.
for _kind in (
    settings.Fork, settings.Keeping, settings.Settings, trace.Token, trace.Candidate, trace.KV, trace.Facts,
    trace.Queued, trace.Started, trace.Reused, trace.Layer, trace.Prefilled, trace.Chose, trace.Decoded, trace.Forgot,
    trace.Wrote, trace.Finished,
):  # fmt: skip
    _kind.__pydantic_config__ = _CONFIG  # type: ignore[union-attr]

_EVENT: TypeAdapter[trace.Event] = TypeAdapter(Annotated[trace.Event, Field(discriminator="type")])
_SETTINGS: TypeAdapter[settings.Settings] = TypeAdapter(settings.Settings)
_FACTS: TypeAdapter[trace.Facts] = TypeAdapter(trace.Facts)
_TOKENS: TypeAdapter[tuple[trace.Token, ...]] = TypeAdapter(tuple[trace.Token, ...])


def to_json(event: trace.Event) -> bytes:
    """One event as one line of JSON, without the newline."""
    return _EVENT.dump_json(event)


def from_json(line: bytes | str) -> trace.Event:
    """The event of one line. Raises pydantic's `ValidationError` when it is not one."""
    return _EVENT.validate_json(line, strict=True)


def settings_from(values: dict[str, Any]) -> settings.Settings:
    """Settings from plain JSON values, strictly typed ("64" is no number). Raises `ValidationError`."""
    return _SETTINGS.validate_json(json.dumps(values), strict=True)


def plain(value: settings.Settings | trace.Facts) -> dict[str, Any]:
    """Settings or facts as plain JSON values."""
    adapter = _SETTINGS if isinstance(value, settings.Settings) else _FACTS
    return cast(dict[str, Any], adapter.dump_python(value, mode="json"))  # type: ignore[arg-type]


def plain_tokens(tokens: Iterable[trace.Token]) -> list[dict[str, Any]]:
    """Tokens as plain JSON values, as an event's line holds them."""
    return cast(list[dict[str, Any]], _TOKENS.dump_python(tuple(tokens), mode="json"))


class _WithoutTitles(GenerateJsonSchema):
    """A field's title would only repeat its name."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one event line."""
    dialect = {"$schema": GenerateJsonSchema.schema_dialect, "title": "One line of events.jsonl"}
    return dialect | _EVENT.json_schema(mode="serialization", schema_generator=_WithoutTitles)
