"""What labs found on a machine of the project's, shipped for pages where nothing was measured or nothing can be.

Made by `python -m engine lab NAME --record`. Kept are the results; figures follow from them as from any others.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.labs.base import Lab

FOLDER = Path(__file__).parent.parent.parent / "assets" / "recordings" / "labs"


def path(name: str) -> Path:
    """The file of a lab's recorded results."""
    return FOLDER / f"{name}.json"


def recorded(lab: Lab) -> dict[str, Any] | None:
    """`{"name", "stage", "model", "machine", "taken", "plan", "results", "figures", "runs"}`, or None where there is no
    recording, or one that this version of the lab cannot read any more."""
    try:
        kept = json.loads(path(lab.name).read_text("utf-8"))
    except FileNotFoundError:
        return None
    if kept["version"] != lab.version:
        return None
    told = {key: kept[key] for key in ("model", "machine", "taken", "plan", "results")}
    runs = {key: asdict(settings) for key, settings in lab.runs().items()}
    return {"name": lab.name, "stage": lab.stage, **told, "figures": lab.figures(kept["results"]), "runs": runs}


def gained_elsewhere(lab: Lab) -> dict[str, Any] | None:
    """What a table says of a recording: `{"model", "machine", "taken", "gained"}`, or None where there is none."""
    shipped = recorded(lab)
    if shipped is None:
        return None
    return {**{key: shipped[key] for key in ("model", "machine", "taken")}, "gained": shipped["figures"].get("gained")}


def record(lab: Lab, report: dict[str, Any]) -> Path:
    """Write the report of `engine.commands.lab` as the lab's recording: its file."""
    kept = {key: report[key] for key in ("lab", "model", "machine", "taken", "plan", "results")}
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"version": lab.version, **kept}, ensure_ascii=False, separators=(",", ":"))
    path(lab.name).write_text(text + "\n", "utf-8")
    return path(lab.name)
