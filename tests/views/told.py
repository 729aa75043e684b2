"""What the browser would be told, and what there is to ask of its words."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from string import Formatter
from typing import Any

from streamlit.testing.v1 import AppTest

Opened = Callable[..., AppTest]
At = Callable[..., AppTest]


@dataclass
class Knows:
    """Stands for `views.desk.knows`: one run is known."""

    run: str

    def __call__(self, run: str) -> bool:
        return run == self.run


def told(app: AppTest, component: str) -> dict[str, Any]:
    """What a component of the page was given."""
    protos = [element.proto for element in app.get("bidi_component")]
    (data,) = [json.loads(proto.json) for proto in protos if proto.component_name == component]
    assert isinstance(data, dict)
    return data


def leaves(words: Any, path: str = "") -> dict[str, str]:
    """Every sentence of nested words by its path."""
    if isinstance(words, str):
        return {path: words}
    named = enumerate(words) if isinstance(words, list) else words.items()
    return {key: text for name, inner in named for key, text in leaves(inner, f"{path}.{name}").items()}


def gaps(text: str) -> set[str]:
    return {gap for _, gap, _, _ in Formatter().parse(text) if gap}


def same_words(one: Any, other: Any) -> bool:
    """Whether two languages have the same sentences with the same gaps, and none of them is empty."""
    first, second = leaves(one), leaves(other)
    assert first.keys() == second.keys()
    assert {key: gaps(text) for key, text in first.items()} == {key: gaps(text) for key, text in second.items()}
    return all(first.values()) and all(second.values())
