"""A remedy's page: `assets/stations/NAME/NAME.js` draws it in the shape of `assets/stations/lab/lab.js`."""

from __future__ import annotations

from functools import cache
from typing import Any

from engine.labs import LABS
from engine.labs.base import Stage
from engine.labs.recorded import gained_elsewhere
from views import site, station
from views.words import area


def show(name: str) -> None:
    """Mount the remedy's page."""
    station.show(name, told())


def told() -> dict[str, Any]:
    """What such a page is told beside its own words: every lab's, and the addresses of the pages there are."""
    return {"paths": {entry.name: site.path(entry.name) for entry in site.ENTRIES}, "common": area("lab")}


REMEDIES: dict[str, Stage] = {
    "flash": "prefill", "fusion": "both", "groups": "decode", "smaller_notes": "decode", "forgetting": "decode",
    "paged": "both", "prefix": "prefill", "chunked": "prefill", "batching": "decode", "speculative": "decode",
    "disaggregation": "both",
}  # fmt: skip
"""All that the entry page tells of, in its order, with the stage each acts on; their labs know it better."""


@cache
def remedies() -> list[dict[str, Any]]:
    """The entry page's rows: `path` is empty while a remedy has no page; `recorded` is what was recorded of it, as in
    `GET /api/labs`, so that the table is whole before anything is asked."""
    paths = {entry.name: site.path(entry.name) for entry in site.ENTRIES}
    return [
        {
            "name": name, "stage": LABS[name].stage if name in LABS else stage, "path": paths.get(name, ""),
            "recorded": gained_elsewhere(LABS[name]) if name in LABS else None,
        }
        for name, stage in REMEDIES.items()
    ]  # fmt: skip
