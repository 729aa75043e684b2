"""Where a position looked: attention rows and maps, recomputed from the queries kept and the keys in the cache.

Weights are softmax(q k / sqrt(head size)) over the positions the layer could see, in fp32: exactly what the fast
kernel used, made only for what somebody looks at. Shapes below have `n` positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.cache import RunCache, Tape
from engine.settings import Refusal
from engine.trace.looks import KEPT


class Lens:
    """The attention of one run. `scaling[layer]` is the model's own factor.

    Raises `Refusal` for a layer (`no_layer`), head (`no_head`) or row (`no_row`) that is not there.
    """

    def __init__(self, cache: RunCache, tape: Tape, scaling: tuple[float, ...]) -> None:
        self._cache = cache
        self._tape = tape
        self._scaling = scaling
        self._shape = cache.shape

    @property
    def length(self) -> int:
        return self._tape.length

    @property
    def layers(self) -> int:
        return self._shape.layers

    def rows(self, layer: int, start: int, stop: int, head: int | None = None) -> Tensor:
        """Rows [start, stop) of one layer, fp32 `(heads, stop - start, stop)`; a single head gives `(1, …)`."""
        self._check(layer, head, stop - 1)
        group = self._shape.heads // self._shape.kv_heads
        queries = self._tape.queries(layer, start, stop).float()
        keys = self._cache.keys[layer][:, :stop].float()
        if head is not None:
            queries, keys = queries[head : head + 1], keys[head // group : head // group + 1]
        folded = queries.reshape(keys.shape[0], -1, stop - start, self._shape.head_size)
        scores = folded @ keys[:, None].transpose(-1, -2) * self._scaling[layer]
        seen = self._cache.sees(layer, start, stop)
        return scores.masked_fill_(~seen, float("-inf")).softmax(-1).flatten(0, 1)

    def row(self, layer: int, head: int | None, row: int) -> Tensor:
        """One row, fp32 `(row + 1,)`; without `head` the mean over the layer's heads."""
        return self.rows(layer, row, row + 1, head).mean(0)[0]

    def map(self, layer: int, head: int | None) -> Tensor:
        """All rows, fp32 `(n, n)`, 0 above the diagonal. Made in pieces, so that memory stays one piece's."""
        length = self.length
        whole = torch.zeros((length, length))
        piece = max(1, 4_000_000 // (length * (1 if head is not None else self._shape.heads)))
        for start in range(0, length, piece):
            stop = min(start + piece, length)
            whole[start:stop, :stop] = self.rows(layer, start, stop, head).mean(0).cpu()
        return whole

    def looks(self, rows: range) -> tuple[Tensor, Tensor]:
        """For each row, layer and head (and, last, the layer's mean) the strongest positions and their weights.

        Two tensors `(rows, layers, heads + 1, 8)`: positions int64, weights fp32, strongest first; where a row sees
        fewer than 8 positions the rest has weight 0.
        """
        size = (len(rows), self._shape.layers, self._shape.heads + 1, KEPT)
        positions, weights = torch.zeros(size, dtype=torch.long), torch.zeros(size)
        for layer in range(self._shape.layers):
            heads = self.rows(layer, rows.start, rows.stop)
            top = torch.cat([heads, heads.mean(0, keepdim=True)]).topk(min(KEPT, rows.stop), dim=-1)
            found = top.values.shape[-1]
            positions[:, layer, :, :found] = top.indices.transpose(0, 1).cpu()
            weights[:, layer, :, :found] = top.values.transpose(0, 1).cpu()
        return positions, weights

    def _check(self, layer: int, head: int | None, row: int) -> None:
        if not 0 <= layer < self._shape.layers:
            raise Refusal("no_layer", layer=layer + 1, layers=self._shape.layers)
        if head is not None and not 0 <= head < self._shape.heads:
            raise Refusal("no_head", head=head + 1, heads=self._shape.heads)
        if not 0 <= row < self.length:
            raise Refusal("no_row", row=row + 1, rows=self.length)


def quantise(weights: Tensor, scale: int) -> bytes:
    """Weights in [0, 1] as little-endian unsigned integers of 1 byte (`scale` 255) or 2 bytes (65535)."""
    dtype = torch.uint8 if scale == 255 else torch.int32
    values = (weights * scale).round().clamp(0, scale).to(dtype).cpu().numpy()
    return bytes(values.astype("u1" if scale == 255 else "<u2").tobytes())
