"""What was measured on a machine of the project's, shipped for pages of machines where nothing was measured yet.

Made by `python -m engine measure --record`. Kept are the results; curves follow from them as from any others.
Standard library only: the service reads it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.machine.results import fits_of

FOLDER = Path(__file__).parent.parent.parent / "assets" / "recordings" / "measures"
VERSION = 1
"""Goes up when results that were recorded before cannot be read any more: they then count as not there."""
QUIET = 0.5
"""Cores that others may keep busy during a piece; one with more is told in `disturbed`."""


def path(model: str) -> Path:
    """The file of what was recorded with a model."""
    return FOLDER / f"{model}.json"


def kept(model: str) -> dict[str, Any] | None:
    """The file as it is: `{"version", "model", "machine", "versions", "taken", "plan", "disturbed", "results"}`; None
    where there is none, or none that this version can read. A model that is somebody's folder has none."""
    if Path(model).name != model:
        return None
    try:
        file: dict[str, Any] = json.loads(path(model).read_text("utf-8"))
    except FileNotFoundError:
        return None
    return file if file["version"] == VERSION else None


def recorded(model: str) -> dict[str, Any] | None:
    """What `GET /api/measures` tells of it: `{"model", "machine", "versions", "taken", "results", "fits"}`, or None."""
    file = kept(model)
    if file is None:
        return None
    told = {key: file[key] for key in ("model", "machine", "versions", "taken", "results")}
    return {**told, "fits": fits_of(file["results"])}


def record(report: dict[str, Any]) -> Path:
    """Write the report of `engine.commands.measure` as the recording of its model: its file."""
    keys = ("model", "machine", "versions", "taken", "plan", "disturbed", "results")
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = path(report["model"])
    text = json.dumps({"version": VERSION, **{key: report[key] for key in keys}}, separators=(",", ":"))
    file.write_text(text + "\n", "utf-8")
    return file
