"""Looking at the KV cache itself: one head's K or V as numbers, the bytes of the real tensors, and a checksum of every
column between the steps.

Jobs as in `engine.jobs`. A *column* is one position's K and V in all layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, Protocol

import torch

from engine.cache import RunCache
from engine.jobs.desk import Desk
from engine.measure import clock
from engine.run import Run
from engine.settings import Refusal

Kind = Literal["key", "value"]

FULL = 127
"""The whole number that stands for a dimension's largest value."""
SUM_BYTES = 8
"""Of a checksum: two different columns have the same one once in 2^64."""
BLOCK = 64
"""Columns copied at a time while their sums are taken."""
MOST_WATCHED = 32 * 2**20
"""Bytes a watched run may set aside for its notes: all of them are read again after every step."""


def note_values(desk: Desk, run: str, layer: int, kind: Kind, head: int) -> dict[str, Any]:
    """One KV head's K or V of a layer, see `values_of`."""
    return values_of(_cache(desk.run(run)), layer, kind, head)


def values_of(cache: RunCache, layer: int, kind: Kind, head: int) -> dict[str, Any]:
    """`{"positions", "size", "first", "scales", "values"}`: `values` holds `positions x size` int8, and a value is
    int8 / 127 x its dimension's scale, off by half of scale / 127 at most; `scales` are `size` little-endian fp32, the
    largest magnitude of each dimension (K's dimensions differ a hundredfold). The layer still sees positions from
    `first` on; what slid out before is kept for the lens alone. K is as the cache has it: after rotation.

    Raises `Refusal`: `no_layer`, `no_kv_head`.
    """
    shape = cache.shape
    if not 0 <= layer < shape.layers:
        raise Refusal("no_layer", layer=layer + 1, layers=shape.layers)
    if not 0 <= head < shape.kv_heads:
        raise Refusal("no_kv_head", head=head + 1, heads=shape.kv_heads)
    held = cache.keys[layer] if kind == "key" else cache.values[layer]
    values = held[head, : cache.length].float().cpu()
    scales = values.abs().amax(0)
    quantised = (values / scales.clamp_min(1e-30) * FULL).round().to(torch.int8)
    return {
        "positions": cache.length,
        "size": shape.head_size,
        "first": first_seen(cache, layer),
        "scales": scales.numpy().astype("<f4").tobytes(),
        "values": quantised.numpy().tobytes(),
    }


def first_seen(cache: RunCache, layer: int) -> int:
    """The first position that a layer's next query will still see."""
    window = cache.shape.windows[layer]
    return max(0, cache.length - (window - 1)) if window else 0


def note_bytes(desk: Desk, run: str) -> dict[str, Any]:
    """What the tensors of a run's notes really take, see `bytes_of`."""
    found = desk.run(run)
    told = bytes_of(_cache(found))
    return {**told, "queries": found.tape.bytes if found.tape else 0}


def bytes_of(cache: RunCache) -> dict[str, Any]:
    """Read off the tensors (`nbytes`), not worked out: `allocated` is the storage, `layers` holds per layer K's and V's
    bytes that count as notes, `held` those that are filled: more where a window slid on, since the lens needs them.

    `{"length", "capacity", "allocated", "layers": [int, …], "held": int}`
    """
    layers, held = [], 0
    for layer, pair in enumerate(zip(cache.keys, cache.values, strict=True)):
        layers.append(sum(tensor[:, first_seen(cache, layer) : cache.length].nbytes for tensor in pair))
        held += sum(tensor[:, : cache.length].nbytes for tensor in pair)
    allocated = cache.keys[0].untyped_storage().nbytes()
    return {"length": cache.length, "capacity": cache.capacity, "allocated": allocated, "layers": layers, "held": held}


@dataclass(frozen=True, slots=True)
class Check:
    """All columns' sums at a moment between two steps, `SUM_BYTES` each. `asked`: taken because somebody asked, not
    because a step was done. Taking them took `seconds`."""

    length: int
    sums: bytes
    asked: bool
    seconds: float


class Watch:
    """Takes every column's sum after every decode step of one run. Nothing is done to a run between two steps, so the
    sums after one step are those before the next."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.checks: list[Check] = []

    def check(self, asked: bool = False) -> None:
        """Raises `Refusal("no_notes")` before the paper is read."""
        cache, begin = _cache(self.run), clock.now()
        sums = b"".join(column_sums(cache))
        self.checks.append(Check(cache.length, sums, asked, clock.now() - begin))

    def after_step(self) -> None:
        """Check if there was a step since the last one."""
        if self.run.cache is not None and self.checks and self.run.cache.length != self.checks[-1].length:
            self.check()


def column_sums(cache: RunCache) -> Iterator[bytes]:
    """BLAKE2b of each column's bytes as they lie: K and V of one position, layer by layer, head by head."""
    for start in range(0, cache.length, BLOCK):
        block = torch.stack([torch.stack(pair) for pair in _columns(cache, start, min(start + BLOCK, cache.length))])
        rows = block.movedim(3, 0).contiguous().view(torch.uint8).flatten(1).cpu().numpy()
        yield from (blake2b(row, digest_size=SUM_BYTES).digest() for row in rows)


def _columns(cache: RunCache, start: int, stop: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Each layer's K and V of positions [start, stop), `(kv_heads, stop - start, head_size)`."""
    for key, value in zip(cache.keys, cache.values, strict=True):
        yield key[:, start:stop], value[:, start:stop]


class Watching(Desk, Protocol):
    """A desk that remembers which runs' columns are watched."""

    @property
    def watches(self) -> dict[str, Watch]:
        """By the run's id."""


def watch_columns(desk: Watching, run: str) -> int:
    """Take all columns' sums now, and from now on after every decode step: how many checks there are.

    Raises `Refusal`: `notes_not_kept`, `no_notes`, `too_long_to_watch`.
    """
    found = desk.run(run)
    allocated = _cache(found).snapshot().allocated
    if allocated > MOST_WATCHED:
        raise Refusal("too_long_to_watch", size=f"{allocated / 1e6:.0f} MB", bound=f"{MOST_WATCHED / 1e6:.0f} MB")
    watch = desk.watches.setdefault(run, Watch(found))
    watch.check(asked=True)
    return len(watch.checks)


def columns(desk: Watching, run: str, start: int) -> list[tuple[int, str, bool, float]]:
    """The checks of a watched run from number `start` on: `(length, sums as hex, asked, seconds)` each."""
    watch = desk.watches.get(run)
    checks = watch.checks[start:] if watch else []
    return [(check.length, check.sums.hex(), check.asked, check.seconds) for check in checks]


def check_watched(desk: Watching) -> None:
    """Between two steps: the watched runs that took one. Those whose tensors are gone are forgotten."""
    for run_id, watch in list(desk.watches.items()):
        if run_id in desk.active or run_id in desk.kept:
            watch.after_step()
        else:
            del desk.watches[run_id]


def _cache(run: Run) -> RunCache:
    """Raises `Refusal`: `notes_not_kept` when the tensors are gone, `no_notes` before the paper is read."""
    if run.cache is None and run.finished:
        raise Refusal("notes_not_kept")
    if run.cache is None or not run.cache.length:
        raise Refusal("no_notes")
    return run.cache
