"""What a chart is: a frame made from what was measured or computed, and a figure made from the frame alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import pandas as pd
import plotly.graph_objects as go

from engine.disaggregation.told import Asked
from engine.jobs import machine
from engine.trace import Facts, Trace
from views.figures.style import Theme

USUAL = Asked()
"""What is simulated where nobody asks for anything else."""
Need = Literal["measures", "run", "beside", "lab"]
Source = Literal["measured", "recorded", "simulated", ""]


class Words(Protocol):
    """The sentence of `key` in `assets/words/*/figures.json`, in one language, its gaps filled."""

    def __call__(self, key: str, **values: str | float) -> str: ...


@dataclass(frozen=True, slots=True)
class Given:
    """What frames are made from. `measures`: as `GET /api/measures`, None where no model is loaded; `trace` and `costs`
    (as `GET /api/runs/{id}/costs`): of the run asked for, `recorded` where it is a shipped one; `beside`: the same of
    another; `tokens`: a length asked for, 0 for none; `rows`: what a page has measured itself and nobody keeps; `lab`:
    as `GET /api/labs/NAME`, with its `source`: measured or recorded; `pick`: which part of that, in the chart's own
    terms; `asked`: what is simulated."""

    measures: Mapping[str, Any] | None = None
    trace: Trace | None = None
    costs: Mapping[str, Any] | None = None
    recorded: bool = False
    beside: Trace | None = None
    beside_costs: Mapping[str, Any] | None = None
    tokens: int = 0
    rows: tuple[Mapping[str, Any], ...] = ()
    lab: Mapping[str, Any] | None = None
    pick: str = ""
    asked: Asked = USUAL

    @property
    def facts(self) -> Facts | None:
        return self.trace.started.facts if self.trace and self.trace.started else None

    @property
    def here(self) -> bool:
        """Whether the run was sat on the machine, in the dtype and with the weights that the measures are of."""
        facts = self.facts
        if facts is None or self.measures is None:
            return False
        subject = {**machine.identity(facts), "model": facts.model, "weights": facts.weights_sha256}
        return subject == dict(self.measures["machine"])


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart by name. `needs`: without these it is refused; `likes`: it does without."""

    name: str
    frame: Callable[[Given], pd.DataFrame]
    figure: Callable[[pd.DataFrame, Words, Theme], go.Figure]
    needs: frozenset[Need] = frozenset()
    likes: frozenset[Need] = frozenset()


@dataclass(frozen=True, slots=True)
class Shown:
    """Results to draw, and where they come from: this machine, or the recording that is shipped."""

    source: Source = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    taken: str = ""
    results: Mapping[str, Any] = field(default_factory=dict)
    fits: Mapping[str, Any] = field(default_factory=dict)


def shown(measures: Mapping[str, Any] | None, *prefixes: str) -> Shown:
    """What was measured here under names that begin with all of `prefixes`; else what is recorded; else nothing."""
    if measures is None:
        return Shown()
    recorded = measures.get("recorded") or {}
    for source, told in (("measured", measures), ("recorded", recorded)):
        results = told.get("results") or {}
        if all(any(name.startswith(prefix) for name in results) for prefix in prefixes):
            taken = told.get("taken") or max((one.get("taken", "") for one in results.values()), default="")
            return Shown(source, told.get("machine") or {}, taken, results, told.get("fits") or {})  # type: ignore[arg-type]
    return Shown()


def from_lab(table: pd.DataFrame, given: Given, source: Source = "") -> pd.DataFrame:
    """The frame with where a lab's results come from in its `attrs`: `source` instead where they only feed what is
    drawn."""
    told = given.lab or {}
    table.attrs |= {
        "source": source or told.get("source", ""), "machine": dict(told.get("machine") or {}),
        "taken": told.get("taken", ""), "model": told.get("model", ""),
    }  # fmt: skip
    return table


def origin(table: pd.DataFrame, words: Words) -> str:
    """The machine and the day that a frame's `attrs` name; empty where they do not."""
    told, taken = table.attrs.get("machine") or {}, str(table.attrs.get("taken") or "")
    name = told.get("device_name") or told.get("device") or ""
    return words("from", machine=name, taken=taken[:10]) if name and taken else ""
