"""The trace's events as the page's scripts see them: `docs/trace.schema.json` written down as TypeScript.

python -m tests.scripts.event_types > assets/scene/trace/events.d.ts
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).parents[2] / "docs" / "trace.schema.json"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def declarations(schema: dict[str, Any]) -> str:
    """An interface for every definition, and `TraceEvent`, which is any of the events."""
    events = [kind(one) for one in schema["oneOf"]]
    parts = [
        "/** The events of a run, from docs/trace.schema.json by `python -m tests.scripts.event_types`. */",
        "export type TraceEvent =" + "".join(f"\n  | {name}" for name in events),
        *(interface(name, one) for name, one in schema["$defs"].items()),
    ]
    return "\n\n".join(parts) + "\n"


def interface(name: str, definition: dict[str, Any]) -> str:
    lines = [*comment(definition, ""), f"export interface {name} {{"]
    for field, one in definition["properties"].items():
        optional = "" if field in definition["required"] else "?"
        lines += [*comment(one, "  "), f"  {field}{optional}: {kind(one)}"]
    return "\n".join([*lines, "}"])


def comment(one: dict[str, Any], indent: str) -> Iterator[str]:
    """The description, which may have several lines."""
    text = re.sub(r"\n+", f"\n{indent} * ", one.get("description", ""))
    if "\n" in text:
        yield f"{indent}/**\n{indent} * {text}\n{indent} */"
    elif text:
        yield f"{indent}/** {text} */"


def kind(one: dict[str, Any]) -> str:
    """The type that a schema stands for."""
    if "$ref" in one:
        return str(one["$ref"].rpartition("/")[2])
    if "const" in one:
        return f"'{one['const']}'"
    if "enum" in one:
        return " | ".join(f"'{value}'" for value in one["enum"])
    if "anyOf" in one:
        return " | ".join(kind(choice) for choice in one["anyOf"])
    if "prefixItems" in one:
        return f"[{', '.join(kind(item) for item in one['prefixItems'])}]"
    if one["type"] == "array":
        item = kind(one["items"])
        return f"({item})[]" if " | " in item else f"{item}[]"
    return PLAIN[one["type"]]


if __name__ == "__main__":
    print(declarations(json.loads(SCHEMA.read_text("utf-8"))), end="")
