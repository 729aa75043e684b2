"""The attention function that is registered with transformers, and the forward pass it belongs to.

`model(ids, position_ids=…, cache=p, tape=p)` with a `Pass` p: the library hands K and V to `Pass.update` and the
extra keyword `tape` on to `attend`. Nothing hangs on the model object, so runs cannot disturb each other.

No mask function is registered under our name: transformers then builds no mask, and `attend` makes what each case
needs (causal, lower-right causal for a later chunk, sliding window). For one query row no mask is needed at all,
and the query heads that share a KV head are folded into the query-length axis: K and V are read once per group,
which is the point of grouped-query attention (Ainslie et al. 2023) and what the library's kernel call misses. Folded
and not, the sums are taken in another order: in fp32 they agree to 3e-7, in bf16 to the last bit of a bf16 number at
most, so a bf16 run may choose another word where two are about as likely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AttentionInterface
from transformers.cache_utils import Cache

from engine.cache import RunCache, Tape, causal_mask
from engine.measure.clock import Marks

NAME = "open_book_exam"

_HARMLESS = {
    "dropout", "cache", "use_cache", "position_ids", "position_embeddings", "cache_position", "is_causal", "layer_idx",
    "output_attentions", "output_hidden_states", "return_dict", "output_router_logits", "logits_to_keep",
    "token_type_ids",
}  # fmt: skip
"""Keywords models pass along that do not change the attention's result (dropout is 0 outside training)."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a probe learns of one attention call: the layer's window (0: none), its factor before the softmax, and
    the names of arguments that `attend` does not honour."""

    window: int
    scaling: float
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """How one run's attention is computed, where it is not as usual: query heads by layer whose output counts as zero;
    with the formula's own product of all queries and keys; with K and V repeated for every query head. `fused` is no
    matter of attention: whether the pass's linears and norms are called together (`engine.model.fuse`)."""

    heads_off: Mapping[int, Sequence[int]] = field(default_factory=dict)
    math: bool = False
    grouped: bool = True
    fused: bool = True

    @property
    def usual(self) -> bool:
        """Whether attention is."""
        return self.grouped and not self.math


USUAL = Way()


class Pass(Cache):
    """One forward pass over the same number of new tokens of one or more runs.

    To the library it is a `Cache`; to `attend` it is the tape. Row i of the batch belongs to `caches[i]`.
    `on_layer(index, seconds)` is called as soon as a layer's attention is done and may raise to give the pass up:
    nothing is kept then. `commit_chunk` or `commit_rows` keeps the pass. `ways[i]` is how run i's attention is done.
    """

    def __init__(
        self,
        caches: Sequence[RunCache],
        tokens: int,
        on_layer: Callable[[int, float], None] | None = None,
        probing: bool = False,
        ways: Sequence[Way] = (),
    ) -> None:
        super().__init__(layers=[])
        self.caches = caches
        self.tokens = tokens
        self.queries: list[Tensor] = []
        self.masks: dict[int, Tensor] = {}
        self.marks = Marks(caches[0].shape.device)
        self._on_layer = on_layer
        self.calls: list[Call] | None = [] if probing else None
        self.ways = ways or [USUAL] * len(caches)
        self.usual = all(way.usual for way in self.ways)
        self.fused = all(way.fused for way in self.ways)
        self.heads_off = [(row, way.heads_off) for row, way in enumerate(self.ways) if way.heads_off]
        # One row per run: the views of all layers are made at once, not layer by layer.
        self.targets = [cache.next_position() for cache in caches] if tokens == 1 else []
        self.seen = [cache.seen_next() for cache in caches] if tokens == 1 else []

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append `(runs, kv_heads, tokens, head_size)` to each run's own tensors; hands them back unchanged."""
        if self.tokens == 1:
            rows = torch.stack((key_states, value_states), 1)[:, :, :, 0].unbind()
            for target, row in zip(self.targets, rows, strict=True):
                target[layer_idx].copy_(row)
        else:
            self.caches[0].write(layer_idx, key_states[0], value_states[0])
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.caches[0].length

    def attended(self, layer: int, query: Tensor) -> None:
        """The tap is done with a layer; `query` is `(runs, heads, tokens, head_size)`."""
        self.queries.append(query)
        seconds = self.marks.mark()
        if self._on_layer is not None:
            self._on_layer(layer, seconds)
            self.marks.resume()

    def commit_chunk(self, tape: Tape) -> None:
        """A prefill pass is done: its positions count, its queries are kept."""
        tape.add_chunk(self.caches[0].length, [query[0] for query in self.queries])
        self.caches[0].commit(self.tokens)

    def commit_part(self, tape: Tape, tokens: int) -> None:
        """Of a pass over a newest token and its draft the first `tokens` positions count; the rest was never read."""
        tape.add_rows(torch.stack([query[0, :, :tokens] for query in self.queries]))
        self.caches[0].commit(tokens)

    def commit_rows(self, tapes: Sequence[Tape]) -> None:
        """A decode step is done: every run's new position counts, its queries are kept."""
        rows = torch.stack(self.queries)[:, :, :, 0]
        for row, (cache, tape) in enumerate(zip(self.caches, tapes, strict=True)):
            tape.add_row(rows[:, row])
            cache.commit(1)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    tape: Pass,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention of the new tokens to their own run's notes: `(runs, tokens, heads, head_size)`.

    The fast kernel computes it; no attention weights are made. `engine.cache.lens` makes those that somebody looks at.
    """
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    window = sliding_window or 0
    if tape.tokens == 1:
        output = _one_row_each(tape, layer, query, scaling)
    else:
        output = _many_rows(tape, layer, query, key, value, scaling, window)
    for row, off in tape.heads_off:
        if layer in off:
            output[row, :, off[layer]] = 0
    if tape.calls is not None:
        given = {**kwargs, "attention_mask": attention_mask}
        unknown = {key for key, argument in given.items() if key not in _HARMLESS and argument is not None}
        factor = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
        tape.calls.append(Call(window, factor, tuple(sorted(unknown))))
    tape.attended(layer, query)
    return output, None


def _one_row_each(tape: Pass, layer: int, query: Tensor, scaling: float | None) -> Tensor:
    """One new token per run, each attending to its own run's K and V; no padding, no mask."""
    runs, heads, _, size = query.shape
    folded = query.reshape(runs, 1, tape.caches[0].shape.kv_heads, -1, size).unbind()
    if tape.usual:
        outputs = [
            F.scaled_dot_product_attention(rows, *seen[layer], scale=scaling)
            for rows, seen in zip(folded, tape.seen, strict=True)
        ]
    else:
        outputs = [
            _one_row(rows, *seen[layer], scaling, way)
            for rows, seen, way in zip(folded, tape.seen, tape.ways, strict=True)
        ]
    output = outputs[0] if runs == 1 else torch.cat(outputs)
    return output.reshape(runs, 1, heads, size)


def _one_row(query: Tensor, key: Tensor, value: Tensor, scaling: float | None, way: Way) -> Tensor:
    """One run's row the way it was asked for: `query` `(1, kv_heads, group, head_size)`, folded."""
    shape = query.shape
    if not way.grouped:
        query = query.flatten(1, 2)[:, :, None]
        key, value = (notes.repeat_interleave(shape[2], dim=1) for notes in (key, value))
    with _kernel(way):
        return F.scaled_dot_product_attention(query, key, value, scale=scaling).reshape(shape)


def _kernel(way: Way) -> AbstractContextManager[None]:
    return sdpa_kernel(SDPBackend.MATH) if way.math else nullcontext()


def _many_rows(
    tape: Pass, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float | None, window: int
) -> Tensor:
    """Prefill of one run: the whole prompt, or a chunk that also sees the chunks before it."""
    cache, way = tape.caches[0], tape.ways[0]
    group = cache.shape.heads // cache.shape.kv_heads
    start, stop = cache.length, cache.length + tape.tokens
    if start == 0 and (not window or tape.tokens <= window):
        if not way.grouped:
            key, value = (notes.repeat_interleave(group, dim=1) for notes in (key, value))
        with _kernel(way):
            output = F.scaled_dot_product_attention(
                query, key, value, is_causal=True, scale=scaling, enable_gqa=way.grouped
            )
        return output.transpose(1, 2)
    first = max(0, start - window + 1) if window else 0
    if window not in tape.masks:
        tape.masks[window] = causal_mask(start, stop, first, window, query.device)
    key = cache.keys[layer][None, :, first:stop].repeat_interleave(group, dim=1)
    value = cache.values[layer][None, :, first:stop].repeat_interleave(group, dim=1)
    with _kernel(way):
        output = F.scaled_dot_product_attention(query, key, value, attn_mask=tape.masks[window], scale=scaling)
    return output.transpose(1, 2)


AttentionInterface.register(NAME, attend)
