"""The remedies' charts: which bars and points each draws, from its lab's figures (`engine/labs`) or from a run.

The frames and figures are `views.figures.labs`'s; what is here is the way from a lab's figures to their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.labs.groups import variants
from views.figures.chart import Given
from views.figures.labs import Kind, Row, row

RUN = frozenset({"run"})
LONG = (2048, 8192)
"""Lengths at which a matrix of weights is told, beside the run's own."""
SQUEEZED = ("fp8", "int8", "int4", "int2")
RULES = ("window", "sink", "heavy")


def _flash_matrix(given: Given) -> Iterator[Row]:
    """One layer's matrix of weights, n by n for each head, beside its K and V."""
    facts = given.facts
    if facts is None or given.trace is None or given.trace.started is None:
        return
    own = len(given.trace.started.prompt)
    for n in (own, *(n for n in LONG if own < n <= facts.context)):
        case = "own" if n == own else "longer"
        yield row("matrix", n * n * facts.heads * facts.value_bytes, case, n)
        yield row("notes", 2 * n * facts.kv_heads * facts.head_size * facts.value_bytes, case, n)


def _flash_time(given: Given) -> Iterator[Row]:
    for one in _figures(given).get("kernel", ()):
        for side in ("math", "fast"):
            yield row(side, one[side]["seconds"], n=one["n"])


def _flash_memory(given: Given) -> Iterator[Row]:
    for one in _figures(given).get("kernel", ()):
        for side in ("math", "fast"):
            source = one[side]["source"]
            yield row(side, one[side]["bytes"], n=one["n"], source="" if source == "measured" else source)


def _flash_run(given: Given) -> Iterator[Row]:
    for one in _figures(given).get("run", ()):
        for side in ("math", "fast"):
            yield row(side, one[side], n=one["n"])


def _fusion_layer(given: Given) -> Iterator[Row]:
    for one in _figures(given).get("layer", ()):
        for way, told in one["ways"].items():
            yield row(way, told["seconds"], n=one["rows"])


def _fusion_pass(given: Given, stage: str) -> Iterator[Row]:
    for one in _figures(given).get(stage, ()):
        for side in ("apart", "fused"):
            yield row(side, one[side]["seconds"], n=one["n"], calls=one[side]["calls"])


def _groups_bytes(given: Given) -> Iterator[Row]:
    """The whole cache of the run's model, or of `tokens`, as it is and as it would be with other KV heads."""
    if given.facts is None or given.trace is None or given.trace.started is None:
        return
    n = given.tokens or len(given.trace.started.prompt)
    for one in variants(given.facts):
        name = one["name"]
        if name == "own":
            name = {given.facts.heads: "own_ordinary", 1: "own_multi"}.get(one["kv_heads"], "own")
        yield row("cache", n * one["per_token"], name, n)


def _groups_step(given: Given) -> Iterator[Row]:
    for one in _figures(given).get("decode", ()):
        for side in ("repeated", "grouped"):
            yield row(side, one[side], n=one["n"])


def _smaller_bytes(given: Given) -> Iterator[Row]:
    """The run's own notes, as many as the model has positions, and its weights."""
    kv = _last_notes(given)
    if kv is None or given.facts is None:
        return
    facts = given.facts
    kept = sum(
        min(facts.context, facts.window - 1) if kind == "sliding" else facts.context for kind in facts.layer_kinds
    )
    yield row("cache", kv.bytes, "now", kv.length)
    yield row("cache", kept * facts.kv_bytes_per_token // facts.layers, "all", facts.context)
    yield row("cache", facts.weight_bytes, "weights")


def _smaller_ways(given: Given) -> dict[str, Any]:
    """The first paper's ways that were measured, in the order in which they are told."""
    papers = _figures(given).get("papers") or {}
    ways = next(iter(papers.values()), {"ways": {}})["ways"]
    return {way: ways[way] for way in SQUEEZED if way in ways}


def _smaller_times(given: Given) -> Iterator[Row]:
    for way, told in _smaller_ways(given).items():
        yield row("exact", told["before"], way)
        yield row("kept", told["after"], way)


def _smaller_error(given: Given) -> Iterator[Row]:
    for way, told in _smaller_ways(given).items():
        for which in ("key", "value"):
            for layer, error in enumerate(told["error"][which], 1):
                yield row(f"{which}/{way}", error, n=layer)


def _forgetting_times(given: Given) -> Iterator[Row]:
    """`pick`: `PAPER/BUDGET`; without, the first paper and its largest budget."""
    papers = _figures(given).get("papers") or {}
    paper, _, budget = given.pick.partition("/")
    ways = papers.get(paper or next(iter(papers), ""), {"ways": {}})["ways"]
    budget = budget or max((n for rule in ways.values() for n in rule), key=int, default="")
    for rule in RULES:
        if told := ways.get(rule, {}).get(budget):
            yield row("exact", told["before"], rule, int(budget))
            yield row("kept", told["after"], rule, int(budget))


def _paged_own(given: Given) -> Iterator[Row]:
    if kv := _last_notes(given):
        yield row("contiguous", kv.bytes, "own", of=kv.allocated)


def _paged_room(given: Given) -> Iterator[Row]:
    for one in _figures(given).get("room", {}).get("papers", ()):
        for way in _by_size(one["ways"]):
            kept = one["ways"][way]
            yield row(_block(way), kept["bytes"], one["paper"], of=kept["allocated"])


def _paged_time(given: Given) -> Iterator[Row]:
    for one in _figures(given).get("time", ()):
        for way in _by_size(one["ways"]):
            yield row(_block(way), one["ways"][way], n=one["n"])


def _prefix_queries(given: Given) -> Iterator[Row]:
    for case in ("lesson", "blocks"):
        if one := _figures(given).get(case):
            for side in ("plain", "reuse"):
                yield row(side, one["queries"][side][0], case)


def _prefix_waits(given: Given) -> Iterator[Row]:
    for case in ("lesson", "blocks"):
        if one := _figures(given).get(case):
            for side in ("plain", "reuse"):
                yield row(side, one[side], case)


def _prefix_lengths(given: Given) -> Iterator[Row]:
    for one in _figures(given).get("lengths", ()):
        for side in ("plain", "reuse"):
            yield row(side, one[side], n=one["n"])


def _figures(given: Given) -> Any:
    """A lab's, empty where there are none."""
    return (given.lab or {}).get("figures") or {}


def _last_notes(given: Given) -> Any:
    """What the run's cache held in the end (`engine.trace.KV`), or None."""
    held = (getattr(event, "kv", None) for event in reversed(given.trace.events if given.trace else ()))
    return next((kv for kv in held if kv), None)


def _by_size(ways: dict[str, Any]) -> list[str]:
    """In one piece first, then by the blocks' size."""
    return sorted(ways, key=lambda way: int(way) if way.isdigit() else 0)


def _block(way: str) -> str:
    return f"blocks/{way}" if way.isdigit() else way


KINDS = (
    Kind("flash-matrix", _flash_matrix, "bytes", named=True, needs=RUN),
    Kind("flash-time", _flash_time, across=True),
    Kind("flash-memory", _flash_memory, "bytes", across=True),
    Kind("flash-run", _flash_run),
    Kind("fusion-layer", _fusion_layer),
    Kind("fusion-decode", lambda given: _fusion_pass(given, "decode")),
    Kind("fusion-prefill", lambda given: _fusion_pass(given, "prefill")),
    Kind("groups-bytes", _groups_bytes, "bytes", named=True, needs=RUN),
    Kind("groups-step", _groups_step, across=True),
    Kind("smaller-notes-bytes", _smaller_bytes, "bytes", named=True, needs=RUN),
    Kind("smaller-notes-times", _smaller_times, named=True),
    Kind("smaller-notes-error", _smaller_error, "share", across=True),
    Kind("forgetting-times", _forgetting_times, named=True),
    Kind("paged-own", _paged_own, "bytes", named=True, needs=RUN, told=True),
    Kind("paged-room", _paged_room, "bytes", named=True),
    Kind("paged-time", _paged_time),
    Kind("prefix-queries", _prefix_queries, "tokens", named=True),
    Kind("prefix-waits", _prefix_waits, named=True),
    Kind("prefix-lengths", _prefix_lengths),
)
CHARTS = tuple(kind.chart() for kind in KINDS)
