"""Will it fit? A model's memory at a context and a batch, with the formula of every figure. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.plan import memory
from engine.plan.architecture import Architecture
from engine.plan.formats import CACHES_UPPER, Format
from engine.plan.memory import CacheRow
from engine.settings import Refusal

MOST_CONTEXT = 1_000_000_000
MOST_BATCH = 1_000_000


@dataclass(frozen=True, slots=True)
class Term:
    """One formula with its numbers: `memory.formula_KEY` in the words, its gaps' values, and what it comes to."""

    part: str
    """Which figure it belongs to: `weights`, `kv`, `activation`."""
    key: str
    values: dict[str, int]
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All in bytes, of `batch` sequences of `context` positions each, the whole context prefilled at once."""

    architecture: Architecture
    context: int
    batch: int
    weights: Format
    kv: Format
    overhead_bytes: int
    weights_bytes: int
    kv_bytes: int
    kv_bytes_upper: int
    kv_bytes_per_token: int
    activation_bytes: int
    activation_bytes_upper: int

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.kv_bytes + self.activation_bytes + self.overhead_bytes

    @property
    def total_bytes_upper(self) -> int:
        return self.weights_bytes + self.kv_bytes_upper + self.activation_bytes_upper + self.overhead_bytes


def plan(
    architecture: Architecture, context: int, batch: int, weights: Format, kv: Format, overhead_bytes: int = 0
) -> Plan:
    """Raises `Refusal`: `out_of_range`, and `context_beyond` where the model was not made for that many positions."""
    for field, value, most in (("context", context, MOST_CONTEXT), ("batch", batch, MOST_BATCH)):
        if not 1 <= value <= most:
            raise Refusal("out_of_range", field=field, least=1, most=most)
    if architecture.context and context > architecture.context:
        raise Refusal(
            "context_beyond", field="max_position_embeddings", context=f"{context:,}", most=f"{architecture.context:,}"
        )
    live = memory.activations(architecture, context, batch, weights)
    return Plan(
        architecture,
        context,
        batch,
        weights,
        kv,
        overhead_bytes,
        weights_bytes=memory.weights(architecture, weights).total,
        kv_bytes=memory.kv_bytes(architecture, context, batch, kv),
        kv_bytes_upper=memory.kv_bytes_upper(architecture, context, batch, kv),
        kv_bytes_per_token=memory.kv_bytes_per_token(architecture, kv),
        activation_bytes=live.total,
        activation_bytes_upper=live.upper,
    )


def largest_context(
    architecture: Architecture, batch: int, weights: Format, kv: Format, room: int, overhead_bytes: int = 0
) -> int:
    """The longest context whose plan takes at most `room` bytes: 0 when not even one position fits, at most what the
    model was made for. A plan only grows with its context, so halving finds it."""
    room -= memory.weights(architecture, weights).total + overhead_bytes
    least, most = 0, architecture.context or MOST_CONTEXT
    while least < most:
        middle = (least + most + 1) // 2
        taken = memory.kv_bytes(architecture, middle, batch, kv)
        taken += memory.activations(architecture, middle, batch, weights).total
        least, most = (middle, most) if taken <= room else (least, middle - 1)
    return least


def over_time(made: Plan, answer: int, steps: int = 60) -> Iterator[tuple[str, int, int, int]]:
    """`(stage, position, cache, activations)` in bytes: while the context is read layer after layer, the cache fills
    evenly under the activations' peak; while `answer` tokens are written, the cache goes on growing under one token's
    activations. Computed, not measured: when a library sets memory aside is its own affair."""
    architecture, batch, kv = made.architecture, made.batch, made.kv
    for step in range(steps + 1):
        cached = made.kv_bytes * step // steps
        yield "prefill", made.context * step // steps, cached, made.activation_bytes if 0 < step < steps else 0
    one = memory.activations(architecture, 1, batch, made.weights, made.context).total
    for step in range(1, steps + 1):
        length = made.context + answer * step // steps
        yield "decode", length, memory.kv_bytes(architecture, length, batch, kv), one


def terms(made: Plan) -> tuple[Term, ...]:
    """The formulas behind a plan's figures; those of a part sum to it."""
    return (*_weights_terms(made), *_cache_terms(made), _activation_term(made))


def _weights_terms(made: Plan) -> Iterator[Term]:
    form, parts = made.weights, memory.weights(made.architecture, made.weights)
    architecture = made.architecture
    if form.bits >= 16:
        values = {"parameters": architecture.parameters, "bits": form.bits}
        yield Term("weights", "weights", values, parts.total)
        return
    squeezed = sum(layer.projections + layer.mlp for layer in architecture.layers)
    bytes_squeezed = parts.projections + parts.mlp
    values = {"parameters": squeezed, "bits": form.bits, "scale": form.scale, "group": form.group}
    yield Term("weights", "weights_squeezed", values, bytes_squeezed)
    rest = architecture.parameters - squeezed
    yield Term("weights", "weights_rest", {"parameters": rest, "bits": 16}, parts.total - bytes_squeezed)


def _cache_terms(made: Plan) -> Iterator[Term]:
    for row in memory.cache(made.architecture, made.context, made.kv):
        yield from _row_terms(made, row)


def _row_terms(made: Plan, row: CacheRow) -> Iterator[Term]:
    form, batch = made.kv, made.batch
    layer = next(one for one in made.architecture.layers if one.kind == row.kind and one.window == row.window)
    common = {"batch": batch, "layers": row.layers, "bits": form.bits}
    if row.kind == "linear":
        values = common | {"state": layer.state + layer.convolution, "bits": max(form.bits, 16)}
        yield Term("kv", "kv_linear", values, batch * row.fixed)
        return
    common |= {"positions": row.positions, "context": made.context, "window": layer.window}
    if layer.latent:
        values, key = common | {"latent": layer.latent}, "kv_latent"
        plain = Format("", form.bits).bytes(layer.latent)
    else:
        values = common | {"kv_heads": layer.kv_heads, "head_size": layer.head_size, "value_size": layer.value_size}
        key, plain = "kv_window" if layer.window else "kv_full", memory.expanded_bytes(layer, Format("", form.bits))
    plain *= batch * row.positions * row.layers
    yield Term("kv", key, values, plain)
    if scales := batch * row.bytes - plain:
        yield Term("kv", "kv_scales", {"scale": form.scale or form.tensor}, scales)


def _activation_term(made: Plan) -> Term:
    live = memory.activations(made.architecture, made.context, made.batch, made.weights)
    key = "activation" if live.total > live.hidden // 2 + live.logits else "activation_logits"
    half = max(live.attention, live.mlp)
    values = {
        "batch": made.batch,
        "context": made.context,
        "hidden": made.architecture.hidden,
        "half": half // (made.batch * made.context * (max(made.weights.bits, 16) // 8)),
        "bits": max(made.weights.bits, 16),
        "vocabulary": made.architecture.vocabulary,
    }
    return Term("activation", key, values, live.total)


def differs(made: Plan) -> tuple[str, ...]:
    """Why implementations of the cache differ for this model: `window`, `latent`, `linear`, `scales`."""
    layers = made.architecture.layers
    reasons = {
        "window": any(layer.window and made.context >= layer.window for layer in layers),
        "latent": any(layer.latent for layer in layers),
        "linear": any(layer.kind == "linear" for layer in layers),
        "scales": CACHES_UPPER.get(made.kv.name, made.kv) != made.kv,
    }
    return tuple(name for name, true in reasons.items() if true)
