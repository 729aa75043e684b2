"""Notes in blocks of a few positions behind a block table (PagedAttention, Kwon et al. 2023).

A pool of equal blocks belongs to a model; a run holds a list of block numbers, its table, and takes a new block when
the last one is full. Blocks may be shared: each counts its holders, and who writes into a shared block copies it
first. A run never has more than one block that is not full, so at most `size - 1` positions are wasted.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.cache import ByLayer, RunCache, Shape
from engine.settings import Refusal


class Pool:
    """`count` blocks of `size` positions. `store` is `(count, layers, 2, kv_heads, size, head_size)`.

    Raises torch's out-of-memory errors."""

    def __init__(self, shape: Shape, count: int, size: int) -> None:
        self.shape = shape
        self.size = size
        dimensions = (count, shape.layers, 2, shape.kv_heads, size, shape.head_size)
        self.store = torch.empty(dimensions, dtype=shape.dtype, device=shape.device)
        self.holders = [0] * count
        self._free = list(range(count))[::-1]

    @classmethod
    def for_one(cls, shape: Shape, capacity: int, size: int) -> Pool:
        """As many blocks as one run of `capacity` positions needs, and one to copy a shared one into."""
        return cls(shape, -(-capacity // size) + 1, size)

    @property
    def block_bytes(self) -> int:
        return self.store[0].nbytes

    @property
    def free(self) -> int:
        return len(self._free)

    def take(self) -> int:
        """A block that nobody holds. Raises `Refusal("no_blocks")`."""
        if not self._free:
            raise Refusal("no_blocks", blocks=len(self.holders), size=self.size)
        block = self._free.pop()
        self.holders[block] = 1
        return block

    def share(self, block: int) -> None:
        self.holders[block] += 1

    def give_back(self, table: list[int]) -> None:
        """A holder lets go of its blocks; those that nobody holds any more are free."""
        for block in table:
            self.holders[block] -= 1
            if not self.holders[block]:
                self._free.append(block)
        table.clear()


class PagedCache(RunCache):
    """The blocks go back to the pool when the cache is no longer used. Raises `Refusal("no_blocks")` as it grows."""

    def __init__(self, shape: Shape, capacity: int, pool: Pool) -> None:
        self.shape = shape
        self.capacity = capacity
        self.length = 0
        self.pool = pool
        self.table: list[int] = []
        self._thrown_away = False
        weakref.finalize(self, pool.give_back, self.table)

    @property
    def keys(self) -> Sequence[Tensor]:
        return ByLayer(self.shape.layers, lambda layer: self._gather(layer, len(self.table) * self.pool.size)[0])

    @property
    def values(self) -> Sequence[Tensor]:
        return ByLayer(self.shape.layers, lambda layer: self._gather(layer, len(self.table) * self.pool.size)[1])

    def take(self, other: RunCache, stop: int) -> None:
        """Blocks of the same pool are shared, not copied."""
        if not isinstance(other, PagedCache) or other.pool is not self.pool:
            return super().take(other, stop)
        for block in other.table[: -(-stop // self.pool.size)]:
            self.pool.share(block)
            self.table.append(block)
        self.length = stop

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        notes, size, done = torch.stack((key, value)), self.pool.size, 0
        while done < notes.shape[2]:
            block, place = divmod(self.length + done, size)
            count = min(size - place, notes.shape[2] - done)
            self._own(self.length + done)
            self.pool.store[self.table[block], layer, :, :, place : place + count] = notes[:, :, done : done + count]
            done += count

    def _own(self, position: int) -> None:
        """The block of a position, ours alone: a new one, or a copy of one that others hold too."""
        block = position // self.pool.size
        if block == len(self.table):
            self.table.append(self.pool.take())
        elif self.pool.holders[self.table[block]] > 1:
            shared, self.table[block] = self.table[block], self.pool.take()
            self.pool.store[self.table[block]] = self.pool.store[shared]
            self.pool.give_back([shared])

    def next_position(self) -> Sequence[Tensor]:
        if self._thrown_away:
            return list(torch.empty_like(self.pool.store[0, :, :, :, 0]).unbind())
        self._own(self.length)
        block, place = divmod(self.length, self.pool.size)
        return self.pool.store[self.table[block], :, :, :, place].unbind()

    def seen_next(self) -> Sequence[tuple[Tensor, Tensor]]:
        return ByLayer(self.shape.layers, self._seen)

    def _seen(self, layer: int) -> tuple[Tensor, Tensor]:
        stop, window = self.length + 1, self.shape.windows[layer]
        both = self._gather(layer, stop)[:, None, :, max(0, stop - window) if window else 0 :]
        return both[0], both[1]

    def _gather(self, layer: int, stop: int) -> Tensor:
        """`(2, kv_heads, stop, head_size)` in one piece: what a kernel that knows the table would not have to make."""
        held = self.table[: -(-stop // self.pool.size)]
        table = torch.tensor(held, dtype=torch.long, device=self.pool.store.device)
        blocks = self.pool.store[table, layer]
        return blocks.permute(1, 2, 0, 3, 4).flatten(2, 3)[:, :, :stop]

    @property
    def allocated(self) -> int:
        """Bytes of the blocks held, shared ones too."""
        return len(self.table) * self.pool.block_bytes

    def notes(self, layers: slice, start: int, stop: int) -> Tensor:
        which = range(*layers.indices(self.shape.layers))
        return torch.stack([self._gather(layer, stop)[:, :, start:] for layer in which])
