"""One run's K and V, allocated once, and one run's queries kept for the lens.

Shapes: K and V of a layer are `(kv_heads, capacity, head_size)`; positions [0, length) are filled. Sliding layers
keep every K too (the lens needs them), but `snapshot` counts only what such a layer's window still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self, TypeVar

import torch
from torch import Tensor

from engine.trace import KV


@dataclass(frozen=True, slots=True)
class Shape:
    """What a cache must know of a model. `windows[layer]` is 0 for a layer that sees everything."""

    layers: int
    heads: int
    kv_heads: int
    head_size: int
    windows: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def bytes_at(self, length: int) -> int:
        """Bytes of K and V that `length` positions need: a sliding layer keeps `window - 1` of them, what the next
        position will still see beside itself (as in transformers' `DynamicSlidingWindowLayer`)."""
        kept = sum(min(length, window - 1) if window else length for window in self.windows)
        return 2 * kept * self.kv_heads * self.head_size * self.dtype.itemsize


T = TypeVar("T")


class ByLayer(Sequence[T]):
    """One thing per layer, made when it is asked for and not kept."""

    def __init__(self, layers: int, make: Callable[[int], T]) -> None:
        self._layers = layers
        self._make = make

    def __getitem__(self, layer: int) -> T:  # type: ignore[override]  # nobody asks for a slice
        if not 0 <= layer < self._layers:
            raise IndexError(layer)
        return self._make(layer)

    def __len__(self) -> int:
        return self._layers


class RunCache:
    """The KV cache of one run, sized once to prompt + answer limit; other ways to keep notes are kinds of it.

    `keys[layer]` and `values[layer]` are `(kv_heads, at least length, head_size)`. Raises torch's out-of-memory errors
    where `capacity` does not fit.
    """

    def __init__(self, shape: Shape, capacity: int) -> None:
        self.shape = shape
        self.capacity = capacity
        self.length = 0
        size = (shape.layers, 2, shape.kv_heads, capacity, shape.head_size)
        self._kv = torch.empty(size, dtype=shape.dtype, device=shape.device)
        self._keys, self._values = self._kv[:, 0].unbind(0), self._kv[:, 1].unbind(0)
        self._thrown_away = False

    @property
    def keys(self) -> Sequence[Tensor]:
        return self._keys

    @property
    def values(self) -> Sequence[Tensor]:
        return self._values

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Put K and V `(kv_heads, tokens, head_size)` behind the filled positions. `length` moves only when the
        whole pass is done, so a pass that is given up leaves nothing behind."""
        stop = self.length + key.shape[1]
        self.keys[layer][:, self.length : stop] = key
        self.values[layer][:, self.length : stop] = value

    def take(self, other: RunCache, stop: int) -> None:
        """Copy the notes of positions [0, stop) from another run of the same model: they are not made again."""
        for layer, (key, value) in enumerate(zip(other.keys, other.values, strict=True)):
            self.write(layer, key[:, :stop], value[:, :stop])
        self.commit(stop)

    def commit(self, tokens: int) -> None:
        """A pass over `tokens` new positions is done: they count."""
        self.length += tokens

    def again(self, length: int) -> Self:
        """The notes as they were at `length`, to read the position after them once more: what that pass would append is
        thrown away, since it is there already."""
        view = copy(self)
        view.length, view._thrown_away = length, True
        return view

    def next_position(self) -> Sequence[Tensor]:
        """Where the next position's K and V go, per layer: views `(2, kv_heads, head_size)`, all made in one call."""
        places = self._kv[:, :, :, self.length].unbind()
        return [torch.empty_like(place) for place in places] if self._thrown_away else places

    def seen_next(self) -> Sequence[tuple[Tensor, Tensor]]:
        """K and V that the next position sees, itself included, per layer: views `(1, kv_heads, seen, head_size)`."""
        stop = self.length + 1
        both = self._kv[..., :stop, :].flatten(0, 1)[:, None].unbind()
        starts = [max(0, stop - window) if window else 0 for window in self.shape.windows]
        pairs = zip(both[::2], both[1::2], starts, strict=True)
        return [(key[:, :, start:], value[:, :, start:]) if start else (key, value) for key, value, start in pairs]

    def bytes_at(self, length: int) -> int:
        """Bytes that the notes of `length` positions take."""
        return self.shape.bytes_at(length)

    @property
    def allocated(self) -> int:
        """Bytes set aside for this run."""
        return self._kv.nbytes

    def sees(self, layer: int, start: int, stop: int) -> Tensor:
        """Which positions [0, stop) the rows [start, stop) saw: bool `(stop - start, stop)`."""
        return causal_mask(start, stop, 0, self.shape.windows[layer], self.shape.device)

    def snapshot(self) -> KV:
        return KV(self.length, self.bytes_at(self.length), self.allocated)

    def notes(self, layers: slice, start: int, stop: int) -> Tensor:
        """K and V of positions [start, stop): `(layers, 2, kv_heads, stop - start, head_size)`."""
        return self._kv[layers, :, :, start:stop]

    def norm_bytes(self, layers: slice, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """K's and V's norms over all KV heads as bytes (`engine.trace.norm_byte`): two `(layers, stop - start)`."""
        squares = self.notes(layers, start, stop).float().square().sum((2, 4))
        quantised = squares.log2().mul(8).add(128).round().clamp(1, 255) * (squares > 0)
        quantised = quantised.to(torch.uint8).cpu()
        return quantised[:, 0], quantised[:, 1]


class Tape:
    """The queries of one run, after rotation, as the model made them: all that is kept for the lens.

    Grows with n, not with n squared. Prefill's queries are the model's own tensors, held instead of freed; those of
    decode go into one tensor allocated at the start.
    """

    def __init__(self, shape: Shape, answer: int) -> None:
        self._starts: list[int] = []
        self._chunks: list[list[Tensor]] = []
        self._prompt = 0
        self._rows = torch.empty(
            (shape.layers, answer, shape.heads, shape.head_size), dtype=shape.dtype, device=shape.device
        )
        self._decoded = 0

    def add_chunk(self, start: int, queries: list[Tensor]) -> None:
        """One prefill pass: per layer `(heads, tokens, head_size)`, positions from `start` on."""
        self._starts.append(start)
        self._chunks.append([_own(query) for query in queries])
        self._prompt = start + queries[0].shape[1]

    def take(self, other: Tape, stop: int) -> None:
        """The queries of positions [0, stop) from another run: its prompt's are shared (never written), the others
        copied."""
        for start, chunk in zip(other._starts, other._chunks, strict=True):
            if start < stop:
                self._starts.append(start)
                self._chunks.append([query[:, : stop - start] for query in chunk])
        self._prompt = min(stop, other._prompt)
        self._decoded = stop - self._prompt
        self._rows[:, : self._decoded] = other._rows[:, : self._decoded]

    def add_row(self, queries: Tensor) -> None:
        """One decode step: `(layers, heads, head_size)`."""
        self._rows[:, self._decoded] = queries
        self._decoded += 1

    def add_rows(self, queries: Tensor) -> None:
        """Several decoded positions at once: `(layers, heads, positions, head_size)`."""
        stop = self._decoded + queries.shape[2]
        self._rows[:, self._decoded : stop] = queries.transpose(1, 2)
        self._decoded = stop

    @property
    def length(self) -> int:
        """Positions whose queries are kept: rows [0, length) can be asked for."""
        return self._prompt + self._decoded

    @property
    def bytes(self) -> int:
        """Bytes held for the lens."""
        chunks = sum(query.numel() * query.element_size() for chunk in self._chunks for query in chunk)
        return chunks + self._rows.numel() * self._rows.element_size()

    def queries(self, layer: int, start: int, stop: int) -> Tensor:
        """Queries of positions [start, stop) in one layer: `(heads, stop - start, head_size)`."""
        pieces = []
        for first, chunk in zip(self._starts, self._chunks, strict=True):
            query = chunk[layer]
            low, high = max(start, first), min(stop, first + query.shape[1])
            if low < high:
                pieces.append(query[:, low - first : high - first])
        low, high = max(start, self._prompt), min(stop, self.length)
        if low < high:
            pieces.append(self._rows[layer, low - self._prompt : high - self._prompt].transpose(0, 1))
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1)


def _own(query: Tensor) -> Tensor:
    """The query itself, or a copy where it is a view that would keep a larger tensor (GPT-2's joint q, k, v) alive."""
    return query if query.untyped_storage().nbytes() <= query.numel() * query.element_size() else query.clone()


def causal_mask(start: int, stop: int, first: int, window: int, device: torch.device) -> Tensor:
    """Which keys [first, stop) the queries [start, stop) see: bool `(stop - start, stop - first)`.

    Position i sees j when j <= i and, with a window, i - j < window.
    """
    rows = torch.arange(start, stop, device=device)[:, None]
    columns = torch.arange(first, stop, device=device)[None, :]
    seen = columns <= rows
    return seen & (rows - columns < window) if window else seen
