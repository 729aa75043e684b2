"""Prefill/decode disaggregation: needs more machines than one, so it is simulated (`engine.disaggregation`). What this
machine takes is measured here: a prefill pass by length, and a decode step by how many write and how much they see."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.disaggregation.costs import Costs, costs_of
from engine.disaggregation.told import Asked, over_loads, over_ratios, simulated
from engine.labs.base import Lab, Results, give_way, spread
from engine.settings import Settings

if TYPE_CHECKING:
    from engine.model import LanguageModel
    from engine.run import Run

LENGTHS = (16, 64, 192, 384, 576)
"""Tokens of the papers that are read."""
BATCHES = (1, 2, 4, 8, 16)
CONTEXTS = (16, 704)
"""Positions that each answer has behind it: between them lies whatever the simulation asks for."""
ROOM = 20
"""Positions beyond a context that decode steps may take."""


class Disaggregation(Lab):
    """A piece for each length that is read, one for each batch at each context."""

    name = "disaggregation"
    stage = "both"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        most = model.facts.context - ROOM
        return [
            *({"piece": f"read/{n}", "kind": "read", "n": n} for n in LENGTHS if n <= most),
            *(
                {"piece": f"step/{batch}/{context}", "kind": "step", "batch": batch, "context": context}
                for context in CONTEXTS
                if context <= most
                for batch in BATCHES
            ),
        ]

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """`read`: `{"n", "seconds": spread of one prefill pass and the choice of a word, "note": bytes of one
        position's K and V}`. `step`: `{"batch", "context": positions seen by each on average, "seconds": spread of one
        decode step}`. Raises `Refusal("batch_too_large")` where so many notes have no room."""
        if piece["kind"] == "read":
            return read_of(model, piece["n"])
        return step_of(model, piece["batch"], piece["context"])

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"costs": what the simulation is fed with, or None while too little was measured, "reads", "steps": results
        as measured, "simulated": `simulated` as asked by default, "loads": `over_loads`, "ratios": `over_ratios`, each
        None without costs, "gained"}`. All but the first three are simulated."""
        reads = [found for n in LENGTHS if (found := results.get(f"read/{n}"))]
        steps = [found for context in CONTEXTS for b in BATCHES if (found := results.get(f"step/{b}/{context}"))]
        costs = costs_from(results)
        return {
            "reads": reads, "steps": steps, "costs": told_costs(costs, reads) if costs else None,
            **(_simulations(costs) if costs else dict.fromkeys(("simulated", "loads", "ratios", "gained"))),
        }  # fmt: skip

    def runs(self) -> dict[str, Settings]:
        """None: what is told here cannot be run on one machine."""
        return {}


LAB = Disaggregation()


def costs_from(results: Results) -> Costs | None:
    """What the simulation is fed with: middles of what was measured. None while too little was."""
    reads = [(one["n"], one["seconds"]["middle"]) for n in LENGTHS if (one := results.get(f"read/{n}"))]
    steps = {
        (batch, context): one["seconds"]["middle"]
        for batch in BATCHES
        for context in CONTEXTS
        if (one := results.get(f"step/{batch}/{context}"))
    }
    notes = [one["note"] for n in LENGTHS if (one := results.get(f"read/{n}"))]
    return costs_of(reads, steps, notes[0]) if notes else None


@lru_cache(8)
def _simulations(costs: Costs) -> dict[str, Any]:
    """Simulated once for the same costs: nothing of it is changed by whoever is told."""
    default = simulated(costs, Asked())
    before, after = (default["arrangements"][name] for name in ("colocated", "split"))
    gained = None
    if before["pause"] and after["pause"]:
        gained = {
            "source": "simulated", "load": 100 * Asked().load, "before": 1000 * before["pause"]["p90"],
            "after": 1000 * after["pause"]["p90"], "wait_before": 1000 * before["ttft"]["p90"],
            "wait_after": 1000 * after["ttft"]["p90"],
        }  # fmt: skip
    return {
        "simulated": default, "loads": list(over_loads(costs, Asked())), "ratios": over_ratios(costs), "gained": gained,
    }  # fmt: skip


def told_costs(costs: Costs, reads: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Costs as plain values, and by how much the curve misses what was measured at worst, as a share."""
    off = [abs(costs.read(0, one["n"]) / one["seconds"]["middle"] - 1) for one in reads]
    return {
        "fixed": costs.fixed, "linear": costs.linear, "square": costs.square, "lengths": list(costs.lengths),
        "steps": [list(each) for each in costs.steps], "contexts": list(costs.contexts), "note": costs.note,
        "most": costs.most, "worst": max(off),
    }  # fmt: skip


def read_of(model: LanguageModel, n: int) -> dict[str, Any]:
    """Seconds of reading a paper of `n` tokens whole and choosing the first word, on notes that are thrown away."""
    from engine.jobs.beginnings import read

    taken, _ = read(_paper(model, n), n, give_way)
    return {"n": n, "seconds": spread(taken), "note": model.facts.kv_bytes_per_token}


def step_of(model: LanguageModel, batch: int, context: int) -> dict[str, Any]:
    """Seconds of decode steps of `batch` copies of one run together, each on notes of its own."""
    from engine.jobs.stages import batch_steps
    from engine.measure.quiet import undisturbed
    from engine.run import step

    source = _paper(model, context)
    while not source.chosen:
        give_way()
        step(model, [source], lambda *_: None, give_way)
    with undisturbed():
        seconds, contexts = batch_steps(source, batch, give_way)
    return {"batch": batch, "context": sum(contexts) / len(contexts), "seconds": spread(seconds)}


def _paper(model: LanguageModel, n: int) -> Run:
    """A run on a paper of `n` tokens, not begun."""
    from engine.labs.papers import of_length
    from engine.measure import clock
    from engine.run import admit

    return admit("", of_length(model, n, Settings("x", mode="raw", max_new_tokens=2)), model, clock.now())
