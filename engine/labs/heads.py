"""One head's real Q, K and V of a run's prompt, with what the formula and the fast kernel make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from engine.run import Run
from engine.settings import Refusal
from engine.tiles import naive

if TYPE_CHECKING:
    from engine.process import EngineProcess

MOST = 1024
"""Rows that are told: more could not be told apart on a screen."""


@dataclass(frozen=True, slots=True)
class Head:
    """fp32 `(positions, head_size)` each: queries, keys, values; `naive` is the formula's output, `fast` the kernel's
    in the model's own dtype. `scale` is the factor before the softmax, `window` 0 where the head sees everything."""

    query: Tensor
    key: Tensor
    value: Tensor
    naive: Tensor
    fast: Tensor
    scale: float
    window: int

    @classmethod
    def of(cls, run: Run, layer: int, head: int) -> Head:
        """Of the prompt's first `MOST` positions. Raises `Refusal`: `not_kept` for a run whose tensors are gone or
        whose notes are not all there, `unfinished` while the prompt is read, `no_layer`, `no_head`."""
        shape = run.model.shape
        if run.cache is None or run.tape is None or run.settings.keeping.last:
            raise Refusal("not_kept")
        if not run.chosen:
            raise Refusal("unfinished")
        if not 0 <= layer < shape.layers:
            raise Refusal("no_layer", layer=layer + 1, layers=shape.layers)
        if not 0 <= head < shape.heads:
            raise Refusal("no_head", head=head + 1, heads=shape.heads)
        n = min(len(run.ids), run.cache.length, run.tape.length, MOST)
        group = head // (shape.heads // shape.kv_heads)
        query = run.tape.queries(layer, 0, n)[head]
        key, value = run.cache.keys[layer][group, :n], run.cache.values[layer][group, :n]
        scale, window = run.model.scaling[layer], shape.windows[layer]
        q, k, v = (tensor.float().cpu() for tensor in (query, key, value))
        places = torch.arange(n, device=query.device)
        far = places[:, None] - places
        seen = {"is_causal": True} if not window else {"attn_mask": (far >= 0) & (far < window)}
        with torch.inference_mode():
            fast = scaled_dot_product_attention(query[None], key[None], value[None], scale=scale, **seen)[0]
            return cls(q, k, v, naive(q, k, v, scale, window), fast.float().cpu(), scale, window)


def head_qkv(engine: EngineProcess, run: str, layer: int, head: int) -> dict[str, Any]:
    """A job: `{"positions", "size", "scale", "window", "difference": largest between kernel and formula, "data": Q, K,
    V and the formula's output, little-endian float32 one after another}`. Raises as `Head.of`, and `not_kept`."""
    found = Head.of(engine.run(run), layer, head)
    parts = (found.query, found.key, found.value, found.naive)
    return {
        "positions": found.query.shape[0], "size": found.query.shape[1], "scale": found.scale, "window": found.window,
        "difference": float((found.fast - found.naive).abs().max()),
        "data": b"".join(part.contiguous().numpy().astype("<f4").tobytes() for part in parts),
    }  # fmt: skip
