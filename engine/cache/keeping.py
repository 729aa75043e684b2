"""The ways a run's notes can be kept (`engine.settings.Keeping`), and what each takes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from engine.cache import RunCache, Shape
from engine.cache.forgetting import ForgettingCache
from engine.cache.paged import PagedCache, Pool
from engine.cache.quantised import QuantisedCache, squeezed_bytes
from engine.settings import Keeping


def make(shape: Shape, capacity: int, keeping: Keeping, pool: Pool | None = None) -> RunCache:
    """An empty cache for at most `capacity` positions; `pool` is where blocks come from, one of its own where None.

    Raises out-of-memory errors."""
    if keeping.dtype != "model":
        return QuantisedCache(shape, capacity, keeping.dtype)
    if keeping.last:
        return ForgettingCache(shape, capacity, keeping)
    if keeping.block:
        return PagedCache(shape, capacity, pool or Pool.for_one(shape, capacity, keeping.block))
    return RunCache(shape, capacity)


def bytes_at(shape: Shape, keeping: Keeping) -> Callable[[int], int]:
    """Bytes that the notes of so many positions take, kept in this way."""
    if keeping.dtype != "model":
        return lambda length: squeezed_bytes(shape, keeping.dtype, length)
    if keeping.last:
        most = keeping.first + keeping.heavy + keeping.last
        return lambda length: shape.bytes_at(min(length, most))
    if keeping.block:
        return lambda length: shape.bytes_at(-(-length // keeping.block) * keeping.block)
    return shape.bytes_at


def fitting(shape: Shape, keeping: Keeping, memory: int, most: int) -> int:
    """How many positions, `most` at most, have their notes in `memory` bytes."""
    return bisect_right(range(1, most + 1), memory, key=bytes_at(shape, keeping))
