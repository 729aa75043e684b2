"""The page's own modules: what a page mounts is there, and so is everything a module asks for beside itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from views import site

ASSETS = Path(__file__).parents[2] / "assets"
MODULES = sorted(ASSETS.glob("**/*.js"))
ASKED = re.compile(
    r"""^(?:import|\}|export)\b.*?\bfrom '(\.[^']+)'|^import '(\.[^']+)'|'([\w./]+\.(?:css|json))'""", re.M
)
"""A module that is imported, or a style or data file that is named."""


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.relative_to(ASSETS).as_posix())
def test_what_a_module_asks_for_is_there(module: Path) -> None:
    asked = ["".join(found) for found in ASKED.findall(module.read_text("utf-8"))]
    fonts = {"faces.json"}  # asked for beside the fonts, not beside the module
    assert [path for path in asked if path not in fonts and not (module.parent / path).is_file()] == []


def test_every_station_has_a_folder_with_its_module() -> None:
    """But the two pages that are no stations."""
    names = {entry.name for entry in site.ENTRIES} - {"exam_room", "memory"}
    assert {name for name in names if not (ASSETS / "stations" / name / f"{name}.js").is_file()} == set()


def test_no_folder_is_too_long_to_walk_through() -> None:
    folders = {module.parent for module in MODULES}
    assert {folder.name for folder in folders if sum(one.is_file() for one in folder.iterdir()) > 20} == set()
