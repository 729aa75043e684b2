"""Notes squeezed to 8, 4 or 2 bits, or to fp8: what is kept is the codes and their scales, nothing else.

Whole numbers are asymmetric, a scale and a zero for every group of at most 64 numbers of one head's K or V of one
position, as transformers' `QuantizedCache` groups them (per token; KIVI, Liu et al. 2024, takes K per channel
instead). fp8 is E4M3 with one scale per group. Two 4-bit codes, or four of 2 bits, share a byte. The pass that makes
a note uses it as it is; every later one reads it back from its codes, one layer at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.cache import ByLayer, RunCache, Shape

BITS = {"fp8": 8, "int8": 8, "int4": 4, "int2": 2}
GROUP = 64
SCALE = torch.float16
"""Of scales and zeros."""
FP8 = torch.float8_e4m3fn
FP8_MOST = 448.0


def squeezed_bytes(shape: Shape, dtype: str, length: int) -> int:
    """Bytes of codes and scales of `length` positions; a sliding layer keeps its window's, as in `Shape.bytes_at`."""
    kept = sum(min(length, window - 1) if window else length for window in shape.windows)
    return 2 * kept * shape.kv_heads * _head_bytes(shape, dtype)


def _head_bytes(shape: Shape, dtype: str) -> int:
    groups = -(-shape.head_size // GROUP)
    scales = groups * SCALE.itemsize * (1 if dtype == "fp8" else 2)
    return -(-shape.head_size * BITS[dtype] // 8) + scales


class QuantisedCache(RunCache):
    """See the module. `keys` and `values` are read back from the codes whenever they are asked for."""

    def __init__(self, shape: Shape, capacity: int, dtype: str) -> None:
        self.shape = shape
        self.capacity = capacity
        self.length = 0
        self.dtype = dtype
        self._thrown_away = False
        groups = -(-shape.head_size // GROUP)
        width = -(-shape.head_size * BITS[dtype] // 8)
        size = (shape.layers, 2, shape.kv_heads, capacity)
        self._codes = torch.zeros((*size, width), dtype=torch.uint8, device=shape.device)
        self._scales = torch.zeros((*size, groups, 1 if dtype == "fp8" else 2), dtype=SCALE, device=shape.device)
        self._next = torch.zeros((*size[:3], shape.head_size), dtype=shape.dtype, device=shape.device)
        """The position that is being read, before it is squeezed."""

    @property
    def keys(self) -> Sequence[Tensor]:
        return ByLayer(self.shape.layers, lambda layer: self._read(layer, 0))

    @property
    def values(self) -> Sequence[Tensor]:
        return ByLayer(self.shape.layers, lambda layer: self._read(layer, 1))

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        self._squeeze(layer, self.length, torch.stack((key, value)))

    def next_position(self) -> Sequence[Tensor]:
        return self._next.unbind()

    def commit(self, tokens: int) -> None:
        """After a pass over one position its notes are squeezed; those of a longer one are already."""
        if tokens == 1 and not self._thrown_away:
            for layer, notes in enumerate(self._next):
                self._squeeze(layer, self.length, notes[:, :, None])
        self.length += tokens

    def seen_next(self) -> Sequence[tuple[Tensor, Tensor]]:
        return ByLayer(self.shape.layers, self._seen)

    def _seen(self, layer: int) -> tuple[Tensor, Tensor]:
        stop, window = self.length + 1, self.shape.windows[layer]
        first = max(0, stop - window) if window else 0
        both = torch.cat((self._read_back(layer, first, self.length), self._next[layer][:, :, None]), 2)[:, None]
        return both[0], both[1]

    def bytes_at(self, length: int) -> int:
        return squeezed_bytes(self.shape, self.dtype, length)

    @property
    def allocated(self) -> int:
        return self._codes.nbytes + self._scales.nbytes

    def parts(self) -> tuple[int, int]:
        """Bytes of the codes and of the scales of the filled positions: of the tensors themselves."""
        return self._codes[..., : self.length, :].nbytes, self._scales[..., : self.length, :, :].nbytes

    def notes(self, layers: slice, start: int, stop: int) -> Tensor:
        if start == self.length and stop == start + 1:
            return self._next[layers, :, :, None]  # of a step that is not committed yet
        which = range(*layers.indices(self.shape.layers))
        return torch.stack([self._read_back(layer, start, stop) for layer in which])

    def _read(self, layer: int, which: int) -> Tensor:
        return self._read_back(layer, 0, self.capacity)[which]

    def _squeeze(self, layer: int, start: int, notes: Tensor) -> None:
        """`notes` `(2, kv_heads, tokens, head_size)` into their places."""
        codes, scales = squeeze(notes, self.dtype)
        stop = start + notes.shape[2]
        self._codes[layer, :, :, start:stop] = codes
        self._scales[layer, :, :, start:stop] = scales

    def _read_back(self, layer: int, start: int, stop: int) -> Tensor:
        """`(2, kv_heads, stop - start, head_size)` in the model's dtype."""
        codes, scales = self._codes[layer, :, :, start:stop], self._scales[layer, :, :, start:stop]
        return read_back(codes, scales, self.dtype, self.shape.head_size).to(self.shape.dtype)


def squeeze(notes: Tensor, dtype: str) -> tuple[Tensor, Tensor]:
    """`(…, head_size)` as codes `(…, bytes)` uint8 and scales `(…, groups, 1 or 2)` fp16."""
    groups = _grouped(notes.float())
    if dtype == "fp8":
        scale = (groups.abs().amax(-1, keepdim=True) / FP8_MOST).clamp_min(2.0**-24).to(SCALE)
        codes = (groups / scale.float()).clamp(-FP8_MOST, FP8_MOST).to(FP8).view(torch.uint8)
        return codes.flatten(-2)[..., : notes.shape[-1]], scale
    steps = 2 ** BITS[dtype] - 1
    low, high = groups.aminmax(dim=-1, keepdim=True)
    zero = low.to(SCALE)
    scale = ((high - zero.float()) / steps).clamp_min(2.0**-24).to(SCALE)
    numbers = ((groups - zero.float()) / scale.float()).round().clamp(0, steps).to(torch.uint8)
    return _pack(numbers.flatten(-2)[..., : notes.shape[-1]], BITS[dtype]), torch.cat((scale, zero), -1)


def read_back(codes: Tensor, scales: Tensor, dtype: str, size: int) -> Tensor:
    """What `squeeze` kept, fp32 `(…, size)`."""
    if dtype == "fp8":
        groups = _grouped(codes.view(FP8).float()) * scales.float()
    else:
        numbers = _grouped(unpack(codes, BITS[dtype])[..., :size].float())
        groups = numbers * scales[..., :1].float() + scales[..., 1:].float()
    return groups.flatten(-2)[..., :size]


def _grouped(numbers: Tensor) -> Tensor:
    """`(…, groups, numbers of a group)`; a last group that is not full is filled with its last number."""
    size = numbers.shape[-1]
    group = min(GROUP, size)
    missing = -size % group
    if missing:
        numbers = torch.cat((numbers, numbers[..., -1:].expand(*numbers.shape[:-1], missing)), -1)
    return numbers.reshape(*numbers.shape[:-1], -1, group)


def _pack(numbers: Tensor, bits: int) -> Tensor:
    """Several codes to a byte, the first in the lowest bits."""
    each = 8 // bits
    if missing := -numbers.shape[-1] % each:
        numbers = torch.nn.functional.pad(numbers, (0, missing))
    shifts = torch.arange(0, 8, bits, device=numbers.device, dtype=torch.uint8)
    return (numbers.reshape(*numbers.shape[:-1], -1, each) << shifts).sum(-1, dtype=torch.uint8)


def unpack(codes: Tensor, bits: int) -> Tensor:
    shifts = torch.arange(0, 8, bits, device=codes.device, dtype=torch.uint8)
    numbers: Tensor = (codes[..., None] >> shifts) & (2**bits - 1)
    return numbers.flatten(-2)
