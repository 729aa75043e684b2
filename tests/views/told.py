"""What the browser would be told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from streamlit.testing.v1 import AppTest

Opened = Callable[..., AppTest]


def told(app: AppTest, component: str) -> dict[str, Any]:
    """What a component of the page was given."""
    protos = [element.proto for element in app.get("bidi_component")]
    (data,) = [json.loads(proto.json) for proto in protos if proto.component_name == component]
    assert isinstance(data, dict)
    return data
