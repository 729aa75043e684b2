"""Results of measuring a machine, by name: how one is called, what a run's own times are, the curves through them.

Standard library only: the service imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean, median
from typing import Any, Literal

from engine.jobs import machine
from engine.measure.fit import fit
from engine.settings import Refusal
from engine.trace import Decoded, Facts, Prefilled, Trace, itl

Kind = Literal["peak", "batch", "parts", "wait"]
Results = Mapping[str, dict[str, Any]]


def name_of(kind: Kind, result: Mapping[str, Any]) -> str:
    """`peak/SHAPE`, `batch/PROMPT/N`, `parts/PROMPT/STAGE` or `wait/PROMPT`, as the result itself tells it."""
    match kind:
        case "peak":
            return f"peak/{result['name']}"
        case "batch":
            return f"batch/{result['prompt']}/{result['batch']}"
        case "parts":
            return f"parts/{result['prompt']}/{result['stage']}"
        case "wait":
            return f"wait/{result['prompt']}"


def subject(facts: Facts) -> dict[str, Any]:
    """What the results of a model depend on."""
    return {**machine.identity(facts), "model": facts.model, "weights": facts.weights_sha256}


def wait_of(trace: Trace) -> dict[str, Any]:
    """How long a finished run made people wait: `{"prompt", "ttft", "prefill": seconds of the passes alone, "itl": each
    word's gap, "contexts": positions seen for each, "tpot", "queued", "together"}`, all from its own trace.

    Raises `Refusal`: `unfinished`, `nothing_to_keep` for a run that chose nothing or was not read whole.
    """
    started, finished = trace.started, trace.finished
    if started is None or finished is None:
        raise Refusal("unfinished")
    steps = [event for event in trace.events if isinstance(event, Decoded)]
    passes = [event for event in trace.events if isinstance(event, Prefilled)]
    if trace.ttft is None or not passes or finished.reason not in ("length", "eos", "stop_string"):
        raise Refusal("nothing_to_keep")
    gaps = itl([event.at for event in trace.chosen])
    return {
        "prompt": len(started.prompt), "ttft": trace.ttft, "prefill": sum(event.seconds for event in passes),
        "passes": len(passes), "itl": list(gaps), "contexts": [event.position + 1 for event in steps],
        "tpot": trace.tpot, "middle": median(gaps) if gaps else None, "queued": started.at, "cold": started.cold,
        "together": max((event.together for event in steps), default=1),
    }  # fmt: skip


def fits_of(results: Results) -> dict[str, Any]:
    """Curves through what was kept of waiting, a + b n + c n² by least squares: `ttft` over the prompt's tokens, `tpot`
    (the middle gap) over the positions seen. None with fewer than four lengths; each `{"a", "b", "c", "spread",
    "points": [(n, seconds), …], "residuals": seconds above the curve, in the same order}`."""
    kept = [result for name, result in results.items() if name.startswith("wait/")]
    waits = sorted((one["prompt"], one["ttft"]) for one in kept)
    gaps = sorted((mean(one["contexts"]), one["middle"]) for one in kept if one["middle"] is not None)
    return {"ttft": _fitted(waits), "tpot": _fitted(gaps)}


def _fitted(points: list[tuple[float, float]]) -> dict[str, Any] | None:
    if len({n for n, _ in points}) < 4:
        return None
    found = fit(points)
    return {
        "a": found.a, "b": found.b, "c": found.c, "spread": found.spread, "points": points,
        "residuals": list(found.residuals),
    }  # fmt: skip
