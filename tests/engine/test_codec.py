"""Events as JSON lines: round trips, strictness, and the published schema."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from pydantic import ValidationError

from engine.settings import Settings
from engine.trace import Event, Layer, Trace, Wrote, codec
from tests.engine.traces import FACTS, run, traces

SCHEMA = Path(__file__).parents[2] / "docs" / "trace.schema.json"


@given(traces())
def test_every_event_comes_back_as_it_was(trace: Trace) -> None:
    for event in trace.events:
        line = codec.to_json(event)
        assert b"\n" not in line
        assert codec.from_json(line) == event


def test_bytes_are_url_safe_base64() -> None:
    line = json.loads(codec.to_json(Layer(0.0, 0, 0, 2, 0.0, b"\xff\xff", b"\xfb\xf0")))
    assert (line["key_norms"], line["value_norms"]) == ("__8=", "-_A=")
    assert base64.urlsafe_b64decode(line["key_norms"]) == b"\xff\xff"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "null",
        '{"at": 0.5, "text": "x"}',
        '{"at": 0.5, "text": "x", "type": "spoke"}',
        '{"at": "0.5", "text": "x", "type": "wrote"}',
        '{"at": 0.5, "text": 1, "type": "wrote"}',
        '{"at": 0.5, "text": "x", "type": "wrote", "more": 1}',
        '{"at": NaN, "text": "x", "type": "wrote"}',
        '{"at": 1e999, "text": "x", "type": "wrote"}',
        '{"at": 0.5, "text": "\\ud800", "type": "wrote"}',
        '{"at": 0.5, "ahead": 1.5, "type": "queued"}',
        '{"at": 0.5, "ahead": true, "type": "queued"}',
        '{"at": 0.5, "reason": "bored", "type": "finished"}',
        "[" * 100_000,
    ],
)
def test_what_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        codec.from_json(line)


def test_settings_from_plain_values() -> None:
    values = {"prompt": "Hi!", "stop": ["\n"], "temperature": 1}
    assert codec.settings_from(values) == Settings("Hi!", stop=("\n",), temperature=1.0)
    assert codec.settings_from(codec.plain(Settings("Hi!", stop=("a", "b")))) == Settings("Hi!", stop=("a", "b"))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"prompt": 1},
        {"prompt": "x", "seed": "1"},
        {"prompt": "x", "max_new_tokens": True},
        {"prompt": "x", "temperature": float("nan")},
        {"prompt": "x", "mode": "poem"},
        {"prompt": "x", "stop": "ab"},
        {"prompt": "x", "unknown": 1},
        {"prompt": "\ud800"},
    ],
)
def test_settings_are_strict(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        codec.settings_from(values)


def test_facts_as_plain_values() -> None:
    plain = codec.plain(FACTS)
    assert json.loads(json.dumps(plain)) == plain
    assert plain["layer_kinds"] == ["full", "sliding"]


def test_the_published_schema_is_current() -> None:
    """`python -m engine schema > docs/trace.schema.json` after a change."""
    assert json.loads(SCHEMA.read_text("utf-8")) == codec.schema()


def test_the_schema_names_every_event_and_every_field() -> None:
    schema = codec.schema()
    assert {entry["$ref"].split("/")[-1] for entry in schema["oneOf"]} == {kind.__name__ for kind in get_args(Event)}
    for event in run([0.5, 0.75]).events:
        fields = json.loads(codec.to_json(event)).keys()
        definition = schema["$defs"][type(event).__name__]
        assert fields == definition["properties"].keys() == set(definition["required"])


def test_text_is_written_as_it_is() -> None:
    assert "开卷 👩‍🔬".encode() in codec.to_json(Wrote(0.0, "开卷 👩‍🔬"))
