"""A model's work: FLOPs by operation and bytes moved, for prefill and decode. Standard library only.

All of it is computed from an `Architecture`, never measured. A FLOP is one multiplication or one addition, so a product
of an (m × k) with a (k × n) matrix is 2mkn, as torch's own counter has it. Lengths are in positions (tokens).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.plan.architecture import Architecture, Layer
from engine.plan.formats import BFLOAT16, Format
from engine.plan.memory import kept, kv_bytes_per_token, position_bytes, weights

NORM_FLOPS = 4
"""Per value: squared, summed, scaled, weighted."""


@dataclass(frozen=True, slots=True)
class Flops:
    """Of one forward pass, by operation. `attention` is queries × keys and weights × values (a linear layer's
    recurrence), `norms` is an estimate of what no counter counts."""

    projections: int = 0
    attention: int = 0
    mlp: int = 0
    norms: int = 0
    logits: int = 0

    @property
    def total(self) -> int:
        return self.matrices + self.norms

    @property
    def matrices(self) -> int:
        """Products of matrices: what torch's counter counts."""
        return self.projections + self.attention + self.mlp + self.logits


def prefill(architecture: Architecture, tokens: int, start: int = 0, batch: int = 1) -> Flops:
    """FLOPs of `batch` passes over `tokens` positions each, behind `start` that have K and V already; logits of the
    last position only. Attention is counted as a dense rectangle, tokens × keys, as kernels with a mask compute it and
    torch counts it; what a causal kernel may leave out is `masked`. Where a latent is kept (MLA), K and V of all keys
    are made from it anew in every pass, as the library does."""
    queries = batch * tokens
    projections = attention = 0
    for layer in architecture.layers:
        keys = 0 if layer.kind == "linear" else kept(layer, start) + tokens
        projections += 2 * queries * (layer.projections - layer.expand) + 2 * batch * keys * layer.expand
        attention += queries * (2 * layer.heads * (layer.head_size + layer.value_size) * keys + layer.mix)
    return Flops(
        projections=projections,
        attention=attention,
        mlp=2 * queries * sum(layer.mlp_active for layer in architecture.layers),
        norms=NORM_FLOPS * queries * (architecture.hidden + sum(layer.normed for layer in architecture.layers)),
        logits=2 * batch * architecture.embedding,
    )


def decode(architecture: Architecture, context: int, batch: int = 1) -> Flops:
    """FLOPs of one decode step for `batch` sequences of `context` positions each: one token more for each."""
    return prefill(architecture, 1, context, batch)


def masked(architecture: Architecture, tokens: int, start: int = 0, batch: int = 1) -> int:
    """FLOPs of `prefill(…).attention` spent on pairs that causality or a window hides: what FlashAttention skips."""
    wasted = 0
    for layer in architecture.layers:
        if layer.kind != "linear":
            pairs = tokens * (kept(layer, start) + tokens) - _visible(layer, tokens, start)
            wasted += 2 * layer.heads * (layer.head_size + layer.value_size) * pairs
    return batch * wasted


def _visible(layer: Layer, tokens: int, start: int) -> int:
    """Pairs of a query at [start, start + tokens) and a key it sees: position p sees p + 1 keys, or its window's."""
    stop, window = start + tokens, layer.window or start + tokens
    growing = max(0, min(stop, window) - start)  # queries that see all there is
    return growing * start + growing * (growing + 1) // 2 + (tokens - growing) * window


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes one forward pass must move to and from memory, if nothing is moved twice. Activations, which stay in the
    processor's caches in the best case, are not counted."""

    weights: int
    cache_read: int
    cache_written: int

    @property
    def total(self) -> int:
        return self.weights + self.cache_read + self.cache_written


def moved(architecture: Architecture, tokens: int, start: int, form: Format, kv: Format, batch: int = 1) -> Moved:
    """Of a pass over `tokens` positions of each of `batch` sequences behind `start` (decode: tokens = 1). The weights
    once, for all sequences together; of the embedding the rows looked up (all of it where it is the vocabulary's matrix
    too); of experts as many as tokens can choose, at most all."""
    parts, passed = weights(architecture, form), batch * tokens
    idle = sum(
        form.bytes(layer.expert * (layer.experts - min(layer.experts, passed * layer.experts_active)))
        for layer in architecture.layers
    )
    rows = (form if form.bits >= 16 else BFLOAT16).bytes(min(passed, architecture.vocabulary) * architecture.hidden)
    embedding = parts.embedding if architecture.tied else rows
    states = sum((max(kv.bits, 16) // 8) * (layer.state + layer.convolution) for layer in architecture.layers)
    read = sum(kept(layer, start) * position_bytes(layer, kv) for layer in architecture.layers)
    return Moved(
        weights=parts.total - parts.embedding + embedding - idle,
        cache_read=batch * (read + (states if start else 0)),
        cache_written=batch * (tokens * kv_bytes_per_token(architecture, kv) + states),
    )


def intensity(flops: Flops, bytes: Moved) -> float:
    """FLOPs per byte moved: a roofline's horizontal axis."""
    return flops.total / bytes.total
