"""Notes of a prompt's beginning that another run has made already are taken over, not made again (prefix caching).

Only equal ids match, from the very first on: K and V of a position depend on all before it. The last position of a
prompt is always read, because the first word comes from it. Notes kept in blocks are shared by whole blocks, others
are copied; either way the run they come from is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.run.run import Run
from engine.settings import Refusal
from engine.trace import Reused


def look_for(run: Run, others: Iterable[Run]) -> None:
    """Let `run` begin with the notes of that one of `others` which has most of its prompt, if any has."""
    found = [(shared(run, other), other) for other in others]
    stop, parent = max(found, key=lambda one: one[0], default=(0, None))
    if stop and parent is not None:
        run.parent, run.taken = parent, stop


def shared(run: Run, other: Run) -> int:
    """How many positions `run` can take over from `other`; whole blocks where notes are kept in blocks."""
    keeping = run.settings.keeping
    alike = (
        other.model is run.model
        and other.cache is not None
        and other.way.heads_off == run.way.heads_off
        and other.settings.notes
        and run.settings.notes
        and other.settings.keeping == keeping
        and (keeping.plain or keeping.block)
    )
    if not alike or other.cache is None:
        return 0
    theirs = (other.ids + other.chosen)[: other.cache.length]
    same = 0
    for mine, its in zip(run.ids[:-1], theirs, strict=False):
        if mine != its:
            break
        same += 1
    return same // keeping.block * keeping.block if keeping.block else same


def take_over(run: Run) -> Reused:
    """Give `run` what `look_for` found. Raises `Refusal`: `fork_not_kept` if that run is gone since, `notes_bound`."""
    parent, stop = run.parent, run.taken
    if parent is None or parent.cache is None or parent.tape is None:
        raise Refusal("fork_not_kept")
    cache, tape = run.allocate()
    if stop > cache.capacity:
        raise Refusal("notes_bound", bytes=run.settings.memory)
    cache.take(parent.cache, stop)
    tape.take(parent.tape, stop)
    keys, values = cache.norm_bytes(slice(None), 0, stop)
    return Reused(run.at, parent.id, stop, cache.snapshot(), keys.numpy().tobytes(), values.numpy().tobytes())
