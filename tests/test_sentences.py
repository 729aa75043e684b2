"""Every refusal has its sentence, in both languages, and gives the values that fill the sentence's gaps."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

import pytest

from engine.words import area_words

ROOT = Path(__file__).parent.parent
LAYERS = ("engine", "service", "views")
FILES = [ROOT / "app.py", *(file for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py")))]

MADE: dict[str, tuple[str, ...]] = {
    "lacking(device)": ("no_compiler", "no_python_headers", "no_triton", "not_compiled_here"),
    "feature": ("tap_alibi", "tap_both_ways", "tap_latent", "tap_recurrent", "tap_sinks", "tap_softcap"),
    "f'model_{status.state}'": ("model_absent", "model_fetching"),
    "{404: 'no_route', 405: 'wrong_method'}.get(error.status_code, 'not_json')": (
        "no_route",
        "wrong_method",
        "not_json",
    ),
}
"""Codes that are put together where they are used, and what they can become."""

HANDED_ON = {"code", "error.code", "event.code", "fields['code']", "trace.finished.code"}
"""Codes that come from a refusal made elsewhere."""


@dataclass(frozen=True)
class Use:
    """One place where something is refused: where, with which code, and which values it gives."""

    place: str
    code: str
    values: frozenset[str]


def uses(source: str, name: str = "") -> list[Use]:
    """What a file refuses. Raises `AssertionError` for a code this test cannot follow."""
    found = []
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        function = call.func.id if isinstance(call.func, ast.Name) else ""
        position = {"Refusal": 0, "_refusal": 1, "forget": 2, "finish": 3}.get(function)
        if position is None or len(call.args) <= position:
            continue
        values = {keyword.arg for keyword in call.keywords if keyword.arg} | (
            {"why"} if function == "_refusal" else set()
        )
        for code in codes(call.args[position]):
            found.append(Use(f"{name}:{call.lineno}", code, frozenset(values)))
    return found


def codes(argument: ast.expr) -> tuple[str, ...]:
    if isinstance(argument, ast.Constant):
        return (str(argument.value),)
    written = ast.unparse(argument)
    assert written in MADE or written in HANDED_ON, f"what code is {written}?"
    return MADE.get(written, ())


ALL = [use for file in FILES for use in uses(file.read_text("utf-8"), str(file.relative_to(ROOT)))]


def gaps(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("use", ALL, ids=lambda use: f"{use.place}-{use.code}")
def test_a_refusal_has_a_sentence_whose_gaps_it_fills(use: Use, lang: str) -> None:
    sentence = area_words("errors", lang).get(use.code)
    assert sentence, f"{use.place} refuses with {use.code}, which nobody can read"
    assert gaps(sentence) <= use.values


def test_no_sentence_is_left_that_nothing_says() -> None:
    assert sorted(area_words("errors", "en").keys() - {use.code for use in ALL}) == []


def test_this_test_sees_refusals() -> None:
    source = (
        'def f():\n    raise Refusal("a", x=1)\nfinish(run, "error", emit, "b", why="")\n_refusal(e, "c", model="")'
    )
    assert [(use.code, set(use.values)) for use in uses(source)] == [
        ("b", {"why"}),
        ("c", {"model", "why"}),
        ("a", {"x"}),
    ]
    assert len(ALL) > 60 and uses("finish(run, reason, emit)") == uses("Refusal(error.code)") == []
    with pytest.raises(AssertionError):
        uses("Refusal(something)")
