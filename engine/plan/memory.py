"""The memory a model takes: weights, KV cache and activations, in exact bytes. Standard library only.

All of it is computed from an `Architecture`, never measured. Lengths are in positions (tokens).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.plan.architecture import Architecture, Kind, Layer
from engine.plan.formats import BFLOAT16, CACHES_UPPER, Format


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes, all experts counted."""

    embedding: int
    """Read by the row."""
    projections: int
    mlp: int
    head: int
    """The vocabulary's matrix; 0 where it is the embedding's."""
    small: int
    """Norms, biases, learned positions, convolutions."""

    @property
    def total(self) -> int:
        return self.embedding + self.projections + self.mlp + self.head + self.small


def weights(architecture: Architecture, form: Format) -> Weights:
    """Formats below 16 bits hold the layers' matrices only; the rest stays in bfloat16."""
    plain = form if form.bits >= 16 else BFLOAT16
    layers = architecture.layers
    small = architecture.outside + sum(layer.small for layer in layers)
    return Weights(
        embedding=plain.bytes(architecture.embedding),
        projections=sum(form.bytes(layer.projections) for layer in layers),
        mlp=sum(form.bytes(layer.mlp) for layer in layers),
        head=plain.bytes(architecture.head),
        small=plain.bytes(small),
    )


def buffers(architecture: Architecture, form: Format) -> int:
    """Bytes the transformers library keeps beside the weights: rotary tables in fp32, Gemma's scale."""
    return 4 * architecture.rotary + (form if form.bits >= 16 else BFLOAT16).bytes(architecture.scale)


def kept(layer: Layer, context: int) -> int:
    """Positions whose K and V a layer needs for the next one: a windowed layer window - 1 (the next one is beside them,
    as in the transformers library), a linear layer none."""
    if layer.kind == "linear":
        return 0
    return min(context, layer.window - 1) if layer.window else context


@dataclass(frozen=True, slots=True)
class CacheRow:
    """The cache of all layers of one kind, for one sequence. `upper`: what the costlier implementations take."""

    kind: Kind
    window: int
    layers: int
    positions: int
    positions_upper: int
    per_position: int
    """Bytes of one position in all of these layers; 0 for linear ones."""
    per_position_upper: int
    fixed: int
    """Bytes that do not grow: the state of linear layers, a tensor's scale."""
    fixed_upper: int

    @property
    def bytes(self) -> int:
        return self.positions * self.per_position + self.fixed

    @property
    def bytes_upper(self) -> int:
        return self.positions_upper * self.per_position_upper + self.fixed_upper


def cache(architecture: Architecture, context: int, form: Format) -> tuple[CacheRow, ...]:
    """The KV cache of one sequence of `context` positions, by kind of layer.

    Lower: a window keeps window - 1 positions, MLA its latent, linear layers a state in the cache's own width (never
    below 16 bits). Upper: windows keep everything, MLA the expanded heads, scales are finer, states are in fp32.
    """
    rows: dict[tuple[object, ...], list[Layer]] = {}
    for layer in architecture.layers:
        rows.setdefault((layer.kind, layer.window), []).append(layer)
    return tuple(_cache_row(layers, context, form) for layers in rows.values())


def _cache_row(layers: list[Layer], context: int, form: Format) -> CacheRow:
    first, upper = layers[0], CACHES_UPPER.get(form.name, form)
    states = sum(layer.state + layer.convolution for layer in layers)
    tensor = 2 * form.tensor * sum(layer.kind != "linear" for layer in layers)
    linear = first.kind == "linear"
    return CacheRow(
        kind=first.kind,
        window=first.window,
        layers=len(layers),
        positions=kept(first, context),
        positions_upper=0 if linear else context,
        per_position=sum(position_bytes(layer, form) for layer in layers),
        per_position_upper=sum(expanded_bytes(layer, upper) for layer in layers),
        fixed=max(form.bits, 16) // 8 * states + tensor,
        fixed_upper=4 * states + tensor,
    )


def position_bytes(layer: Layer, form: Format) -> int:
    """Bytes of one position's K and V in one layer, the latent where there is one."""
    return form.bytes(layer.latent) if layer.latent else expanded_bytes(layer, form)


def expanded_bytes(layer: Layer, form: Format) -> int:
    """Bytes of one position's K and V in one layer, as all its KV heads see them."""
    heads = layer.kv_heads
    return form.bytes(layer.head_size, heads) + form.bytes(layer.value_size, heads) if heads else 0


def kv_bytes(architecture: Architecture, context: int, batch: int, form: Format) -> int:
    """Bytes of the cache of `batch` sequences of `context` positions each: the lower bound."""
    return batch * sum(row.bytes for row in cache(architecture, context, form))


def kv_bytes_upper(architecture: Architecture, context: int, batch: int, form: Format) -> int:
    return batch * sum(row.bytes_upper for row in cache(architecture, context, form))


def kv_bytes_per_token(architecture: Architecture, form: Format) -> int:
    """Bytes one more position takes while no window is full: for ordinary and grouped attention
    layers × KV heads × (size of a key + size of a value) × bytes."""
    return sum(position_bytes(layer, form) for layer in architecture.layers)


@dataclass(frozen=True, slots=True)
class Activations:
    """Bytes alive at once at the peak of a prefill, beside weights and cache. A test watches the library's own tensors:
    with a fused kernel it holds 1.0 to 1.3 times `total`, as activation functions and rotations leave copies."""

    hidden: int
    """The residual stream, held by two callers, its normed copy, and what the layer's half adds to it."""
    attention: int
    """Queries, keys, values and the attention's output of one layer."""
    mlp: int
    """What is between an MLP's matrices, of one layer."""
    logits: int
    """Of each sequence's last position, in fp32."""
    scores: int
    """The matrix of attention weights of one layer, which only an implementation without a fused kernel makes."""
    all_logits: int
    """Of all positions, which only some implementations make."""

    @property
    def total(self) -> int:
        """The larger of the layer's two halves beside the residual stream, or the logits where those are larger."""
        return max(self.hidden + max(self.attention, self.mlp), self.hidden // 2 + self.logits)

    @property
    def upper(self) -> int:
        """Without a fused kernel, and with logits for every position."""
        return max(self.hidden + max(self.attention + self.scores, self.mlp), self.hidden // 2 + self.all_logits)


def activations(architecture: Architecture, tokens: int, batch: int, form: Format, start: int = 0) -> Activations:
    """At a prefill of `tokens` positions of each of `batch` sequences; numbers as wide as the weights, at least 16
    bits."""
    width, passed = max(form.bits, 16) // 8, batch * tokens
    layers = architecture.layers
    attention = max(
        layer.heads * (layer.head_size + layer.value_size) + layer.kv_values
        if layer.heads
        else layer.projections // architecture.hidden
        for layer in layers
    )
    mlp = max((3 if layer.gated else 2) * layer.inner for layer in layers)
    keys = max((kept(layer, start) + tokens for layer in layers if layer.heads), default=0)
    heads = max(layer.heads for layer in layers)
    return Activations(
        hidden=4 * passed * architecture.hidden * width,
        attention=passed * attention * width,
        mlp=passed * mlp * width,
        logits=4 * batch * architecture.vocabulary,
        scores=passed * heads * keys * (width + 4),
        all_logits=4 * passed * architecture.vocabulary,
    )
