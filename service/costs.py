"""What a run's passes cost, computed from the sizes of its model (`engine.plan.cost`): FLOPs by operation, bytes moved.

`GET /api/runs/{id}/costs` (`docs/api.md`). Nothing here is measured; what was is in the run's own trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine import weights
from engine.plan import cost
from engine.plan.architecture import Architecture
from engine.plan.configs import from_disk
from engine.plan.formats import cache_format, weight_format
from engine.plan.read import of_run
from engine.settings import Refusal
from engine.trace import Decoded, Facts, Prefilled, Trace

BATCHES = (1, 2, 4, 8, 16, 32)
"""As in `engine.jobs.stages`."""
CURVE = 4
"""Lengths per doubling on the curve of prefill."""


def costs_of(trace: Trace, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """See `docs/api.md`. `config` is the model's own where it is at hand. Raises `Refusal`: `unfinished` for a run that
    has not started, and those of `engine.plan.architecture.of_run`."""
    started = trace.started
    if started is None:
        raise Refusal("unfinished")
    facts, prompt = started.facts, len(started.prompt)
    made = Costs(of_run(facts, config), facts)
    words = min(started.settings.max_new_tokens, facts.context - prompt)
    read = [(event.start, event.stop) for event in trace.events if isinstance(event, Prefilled)]
    wrote = [event for event in trace.events if isinstance(event, Decoded)]
    return {
        "source": "computed",
        "prompt": prompt,
        "prefill": made.one(prompt, 0),
        "decode": made.one(1, prompt),
        "chunks": [made.one(stop - start, start) for start, stop in read],
        "steps": [made.one(event.read, event.position + 1 - event.read, event.together) for event in wrote],
        "batches": {str(batch): made.one(1, prompt + 1, batch) for batch in BATCHES},
        "curve": [made.one(tokens, 0) for tokens in lengths(facts.context)],
        "race": {
            "notes": [made.total(prompt, 0), *(made.total(1, prompt + word) for word in range(words - 1))],
            "none": [made.total(prompt + word, 0) for word in range(words)],
        },
    }


def config_of(model: str) -> Mapping[str, Any] | None:
    """The config of a model that is loaded here: a known one or a folder. None where it cannot be read."""
    try:
        return from_disk(weights.folder(model) if model in weights.MODELS else Path(model))
    except Refusal:
        return None


class Costs:
    """Passes through one model, in the dtype it runs in."""

    def __init__(self, architecture: Architecture, facts: Facts) -> None:
        self._architecture = architecture
        self._form = weight_format(facts.dtype)
        self._kv = cache_format({4: "float32", 2: facts.dtype}.get(facts.value_bytes, facts.dtype))

    def one(self, tokens: int, start: int, batch: int = 1) -> dict[str, Any]:
        """One pass over `tokens` positions behind `start`, for `batch` sequences: `{"tokens", "context", "batch",
        "flops": by operation, "total", "bytes": {"weights", "cache_read", "cache_written"}, "moved", "intensity"}`.

        Attention counts what a query can see: pairs that causality hides are skipped by the kernel and by us."""
        flops = cost.prefill(self._architecture, tokens, start, batch)
        parts = asdict(flops)
        parts["attention"] -= cost.masked(self._architecture, tokens, start, batch)
        moved = cost.moved(self._architecture, tokens, start, self._form, self._kv, batch)
        total = sum(parts.values())
        return {
            "tokens": tokens, "context": start + tokens, "batch": batch, "flops": parts, "total": total,
            "bytes": asdict(moved), "moved": moved.total, "intensity": total / moved.total,
        }  # fmt: skip

    def total(self, tokens: int, start: int) -> int:
        """FLOPs of one pass, as in `one`."""
        flops = cost.prefill(self._architecture, tokens, start).total
        return flops - cost.masked(self._architecture, tokens, start)


def lengths(most: int) -> list[int]:
    """1 to `most`, evenly by doublings, both ends included."""
    found = {most}
    step = 0
    while (length := round(2 ** (step / CURVE))) < most:
        found.add(length)
        step += 1
    return sorted(found)
