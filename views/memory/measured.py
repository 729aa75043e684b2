"""Prediction and measurement side by side, for the run in the address or a recording."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pandas as pd

import service
from engine.plan import memory
from engine.plan.architecture import Architecture
from engine.plan.configs import from_disk
from engine.plan.formats import cache_format, weight_format
from engine.plan.read import of_run
from engine.settings import Refusal
from engine.trace import KV, Decoded, Facts, Prefilled, Started, Trace
from engine.trace import file as tracefile
from engine.words import Lang, say

_RECORDINGS = Path(__file__).parent.parent.parent / "assets" / "recordings"
_PATIENCE = 5.0
_log = logging.getLogger(__name__)


def trace_of(run: str) -> tracefile.TraceFile | None:
    """A finished run's file, or a shipped recording's; None where there is none (yet)."""
    try:
        desk = service.current()
    except LookupError:
        desk = None
    try:
        if desk is not None:
            return tracefile.read(asyncio.run_coroutine_threadsafe(desk.trace(run), desk.loop).result(_PATIENCE))
        shipped = _RECORDINGS / f"{run}.trace"
        return tracefile.read(shipped) if run.replace("-", "").isalnum() and shipped.is_file() else None
    except Refusal:
        return None
    except TimeoutError:
        _log.warning("the service does not answer")
        return None


def architecture_of(facts: Facts) -> Architecture:
    """Behind a run. Its model's name may be a folder on this machine, which then tells. Raises as `of_run`."""
    folder = Path(facts.model)
    if folder.is_absolute() and folder.is_dir():
        return of_run(facts, from_disk(folder))
    return of_run(facts)


def last_cache(trace: Trace) -> KV | None:
    """The cache as it was at the end of a run."""
    held = [event.kv for event in trace.events if isinstance(event, (Prefilled, Decoded))]
    return held[-1] if held else None


def _reserved(started: Started) -> int:
    """Positions the engine sets memory aside for at the start: the prompt and the answer's limit, or what a bound on
    memory leaves of them."""
    facts, settings, prompt = started.facts, started.settings, len(started.prompt)
    wanted = prompt + min(settings.max_new_tokens, facts.context - prompt)
    return min(wanted, settings.memory // facts.kv_bytes_per_token) if settings.memory else wanted


def compared(started: Started, trace: Trace, lang: Lang) -> pd.DataFrame:
    """What the formulas say of this run, and what was measured of it. Raises as `architecture_of`."""
    facts = started.facts
    made = architecture_of(facts)
    form = weight_format(facts.dtype)
    kv = cache_format(facts.dtype)
    weights, tables = memory.weights(made, form).total, memory.buffers(made, form)
    rows = [
        ("parameters", made.parameters, facts.parameters),
        ("weights_tables", weights + tables, facts.weight_bytes),
        ("per_token", memory.kv_bytes_per_token(made, kv), facts.kv_bytes_per_token),
    ]
    if held := last_cache(trace):
        rows.append(("kv_end", memory.kv_bytes(made, held.length, 1, kv), held.bytes))
        if held.allocated:  # 0 where a run keeps no notes
            rows.append(("kv_reserved", memory.kv_bytes_per_token(made, kv) * _reserved(started), held.allocated))
    columns = [say(f"memory.column_{name}", lang) for name in ("quantity", "predicted", "measured", "equal")]
    return pd.DataFrame(
        [(say(f"memory.quantity_{name}", lang), ours, theirs, ours == theirs) for name, ours, theirs in rows],
        columns=columns,
    )
