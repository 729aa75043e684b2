"""Which of the page's scripts are checked for types, and that those which are not become fewer.

`python start.py test` runs the check itself (`tests/scripts/tsconfig.json`). A script is checked when it begins with
`// @ts-check`; `unchecked.txt` names all others.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.scripts.event_types import SCHEMA, declarations

ASSETS = Path(__file__).parents[2] / "assets"
UNCHECKED = (Path(__file__).parent / "unchecked.txt").read_text("utf-8").splitlines()
MOST = 99
"""So many were unchecked when this was written last. It may be made smaller."""

LOOPHOLE = re.compile(r"@ts-(ignore|nocheck|expect-error)|\{any\b|: any\b|<any\b|\bany\[\]|\bany>")


def scripts() -> dict[str, str]:
    return {file.relative_to(ASSETS).as_posix(): file.read_text("utf-8") for file in sorted(ASSETS.glob("**/*.js"))}


def test_a_script_is_checked_or_named_as_unchecked() -> None:
    assert [name for name, text in scripts().items() if not text.startswith("// @ts-check\n")] == UNCHECKED


def test_unchecked_scripts_become_fewer() -> None:
    assert len(UNCHECKED) == MOST, "lower MOST, or write types in what is new"


def test_types_are_real() -> None:
    """Nothing is excused from the check, and no type is left open."""
    assert [name for name, text in scripts().items() if LOOPHOLE.search(text)] == []


def test_the_events_types_are_the_schemas() -> None:
    """`python -m tests.scripts.event_types > assets/scene/trace/events.d.ts` after a change."""
    written = (ASSETS / "scene" / "trace" / "events.d.ts").read_text("utf-8")
    assert written == declarations(json.loads(SCHEMA.read_text("utf-8")))
