"""The well-known models' configs that are kept in `assets/configs`, each with where it came from. Standard library
only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.plan.fields import MAX_CONFIG_BYTES, parse
from engine.settings import Refusal

FOLDER = Path(__file__).parent.parent.parent / "assets" / "configs"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a kept config came from. `parameters` is what was published of the model (`published` says where), 0 where
    its origin states none."""

    title: str
    source: str
    version: str
    parameters: int = 0
    published: str = ""


@cache
def configs() -> dict[str, Origin]:
    """All kept configs by name, in the order of the index."""
    listed = json.loads((FOLDER / "index.json").read_text("utf-8"))
    return {name: Origin(**origin) for name, origin in listed.items()}


@cache
def kept(name: str) -> dict[str, Any]:
    """The config kept under a name. Raises `Refusal("unknown_config")`."""
    if name not in configs():
        raise Refusal("unknown_config", known=", ".join(configs()))
    return parse((FOLDER / f"{name}.json").read_bytes())


def from_disk(path: Path) -> dict[str, Any]:
    """The config in a file, or in a folder's `config.json`; nothing else of it is read, and never more than the bound.
    Raises `Refusal`: `config_unreadable`, and those of `fields.parse`."""
    file = path / "config.json" if path.is_dir() else path
    try:
        if not file.is_file():  # a pipe or a device would wait, or never end
            raise Refusal("config_unreadable", file=file.name)
        with file.open("rb") as stream:
            return parse(stream.read(MAX_CONFIG_BYTES + 1))
    except OSError:
        raise Refusal("config_unreadable", file=file.name) from None
