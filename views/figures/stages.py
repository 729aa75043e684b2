"""The two stages of a run as charts need them: its own measured times with the costs computed for its passes, and this
machine's peaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.jobs import machine
from engine.trace import Decoded, Prefilled, Trace
from views.figures.chart import Given, Shown, shown

PARTS = ("projections", "attention", "mlp", "norms", "logits")
SCALES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


@dataclass(frozen=True, slots=True)
class Stage:
    """`passes`: of the paper, or steps of which this is the middle one; `flops` by operation, computed; `moved`: bytes,
    computed; `seconds`: measured."""

    tokens: int
    passes: int
    seconds: float
    parts: Mapping[str, float]
    moved: float

    @property
    def flops(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class Peaks:
    """FLOP/s and bytes/s of this machine, the best of what was measured."""

    compute: float
    bandwidth: float

    def roof(self, intensity: float) -> float:
        """FLOP/s at best, at so many FLOP per byte."""
        return min(self.compute, self.bandwidth * intensity)


def stages(trace: Trace, costs: Mapping[str, Any]) -> dict[str, Stage]:
    """`prefill`: all its passes together; `decode`: the step of middle duration among those that this run had for
    itself. Without a stage that did not happen."""
    found = {}
    passes = [event for event in trace.events if isinstance(event, Prefilled)]
    if passes:
        chunks = costs["chunks"]
        parts = {part: sum(chunk["flops"][part] for chunk in chunks) for part in PARTS}
        seconds, moved = sum(event.seconds for event in passes), sum(chunk["moved"] for chunk in chunks)
        found["prefill"] = Stage(passes[-1].stop, len(passes), seconds, parts, moved)
    steps = zip((event for event in trace.events if isinstance(event, Decoded)), costs["steps"], strict=False)
    alone = [(event.seconds, at, cost) for at, (event, cost) in enumerate(steps) if event.read == event.together == 1]
    if alone:
        seconds, _, cost = sorted(alone)[len(alone) // 2]
        found["decode"] = Stage(1, len(alone), seconds, cost["flops"], cost["moved"])
    return found


def belonging(given: Given, prefix: str) -> Shown:
    """Results of the machine, dtype and weights that the run was sat with: measured here, or recorded there; else none:
    no run stands under another machine's roof."""
    facts = given.facts
    found = shown(given.measures, prefix)
    if facts is None or not found.source:
        return Shown()
    subject = {**machine.identity(facts), "model": facts.model, "weights": facts.weights_sha256}
    if found.source == "measured" and subject != dict(found.machine):
        found = shown({"recorded": (given.measures or {}).get("recorded")}, prefix)
    return found if all(found.machine.get(key) == value for key, value in subject.items()) else Shown()


def peaks(results: Mapping[str, Any]) -> Peaks | None:
    """None while one of the two kinds was not measured."""
    rates: dict[str, float] = {}
    for name, one in results.items():
        if name.startswith("peak/"):
            rates[one["kind"]] = max(one["rate"], rates.get(one["kind"], 0.0))
    return Peaks(rates["compute"], rates["bandwidth"]) if {"compute", "bandwidth"} <= rates.keys() else None


def si(value: float, unit: str) -> str:
    """`11.2 GFLOP`. Decimal units."""
    prefix, size = next(((prefix, size) for prefix, size in SCALES if value >= size * 0.9995), ("", 1.0))
    scaled = value / size
    return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f} {prefix}{unit}"


def percent(share: float) -> str:
    return f"{100 * share:.{1 if share < 0.0995 else 0}f}%"


def joined(sentences: Sequence[str]) -> str:
    """Sentences one after another: Chinese ones need no space between them."""
    return " ".join(filter(None, sentences)).replace("。 ", "。")
