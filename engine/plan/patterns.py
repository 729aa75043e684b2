"""Which layers of a family are of which kind, and which have experts, where the config gives a rule and no list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.plan.architecture import Kind
from engine.plan.fields import Fields
from engine.settings import Refusal


@dataclass(frozen=True, slots=True)
class Experts:
    """`shared` is the width of the MLP every token goes through, in `shared_count` experts' worth."""

    count: int
    active: int
    inner: int
    shared: int = 0
    shared_count: int = 0
    shared_gate: bool = False
    bias: bool = False
    correction: bool = False
    """Whether the router keeps a bias per expert for balance."""


def every(name: str, kind: Kind) -> Callable[[Fields, int], list[Kind]]:
    """All layers, where the field says how far they see."""
    return lambda fields, layers: [kind if fields.raw(name) is not None else "full"] * layers


def late(fields: Fields, layers: int) -> list[Kind]:
    """Qwen's: the upper layers slide, where the config says so at all."""
    if not fields.flag("use_sliding_window") or fields.raw("sliding_window") is None:
        return ["full"] * layers
    first = fields.whole("max_window_layers", usual=layers, least=0)
    return ["sliding" if index >= first else "full" for index in range(layers)]


def pattern(usual: int, name: str = "sliding_window_pattern") -> Callable[[Fields, int], list[Kind]]:
    """All but every n-th layer slide."""

    def kinds(fields: Fields, layers: int) -> list[Kind]:
        if fields.raw("sliding_window") is None:
            return ["full"] * layers
        period = fields.whole(f"_{name}", usual=fields.whole(name, usual=usual))
        return ["sliding" if (index + 1) % period else "full" for index in range(layers)]

    return kinds


def linear_but(fields: Fields, layers: int) -> list[Kind]:
    period = fields.whole("full_attention_interval", usual=4)
    return ["linear" if (index + 1) % period else "full" for index in range(layers)]


def jamba_kinds(fields: Fields, layers: int) -> list[Kind]:
    period, offset = fields.whole("attn_layer_period", usual=8), fields.whole("attn_layer_offset", usual=4, least=0)
    return ["full" if index % period == offset else "linear" for index in range(layers)]


def llama4_kinds(fields: Fields, layers: int) -> list[Kind]:
    turned = fields.numbers("no_rope_layers", layers) or []
    period = fields.whole("no_rope_layer_interval", usual=4)
    turned = turned if len(turned) == layers else [int((index + 1) % period != 0) for index in range(layers)]
    chunked = fields.raw("attention_chunk_size") is not None
    return ["chunked" if one and chunked else "full" for one in turned]


def _active(fields: Fields, count: int) -> int:
    active = fields.whole("num_experts_per_tok")
    if active > count:
        raise Refusal("config_more_than", field="num_experts_per_tok", other=fields.written("num_local_experts"))
    return active


def all_experts(fields: Fields, index: int, layers: int) -> Experts:
    """Mixtral's: experts as wide as `intermediate_size`, in every layer."""
    count = fields.whole("num_local_experts")
    return Experts(count, _active(fields, count), fields.whole("intermediate_size"))


def gpt_oss_experts(fields: Fields, index: int, layers: int) -> Experts:
    return replace(all_experts(fields, index, layers), bias=True)


def minimax_experts(fields: Fields, index: int, layers: int) -> Experts:
    return replace(all_experts(fields, index, layers), correction=True)


def qwen_experts(fields: Fields, index: int, layers: int) -> Experts | None:
    dense = fields.numbers("mlp_only_layers", layers) or []
    if index in dense or (index + 1) % fields.whole("decoder_sparse_step", usual=1):
        return None
    count = fields.whole("num_local_experts")
    shared = fields.whole("shared_expert_intermediate_size", usual=0, least=0)
    return Experts(
        count, _active(fields, count), fields.whole("moe_intermediate_size"), shared, min(shared, 1), shared > 0
    )


def deepseek_experts(fields: Fields, index: int, layers: int) -> Experts | None:
    if index < fields.whole("first_k_dense_replace", usual=0, least=0) or index % fields.whole(
        "moe_layer_freq", usual=1
    ):
        return None
    count, inner = fields.whole("num_local_experts"), fields.whole("moe_intermediate_size")
    shared = fields.whole("n_shared_experts", usual=0, least=0)
    return Experts(count, _active(fields, count), inner, shared * inner, shared)


def corrected_experts(fields: Fields, index: int, layers: int) -> Experts | None:
    experts = deepseek_experts(fields, index, layers)
    return experts and replace(experts, correction=True)


def jamba_experts(fields: Fields, index: int, layers: int) -> Experts | None:
    period, offset = fields.whole("expert_layer_period", usual=2), fields.whole("expert_layer_offset", usual=1, least=0)
    if index % period != offset or fields.whole("num_local_experts") == 1:
        return None
    return all_experts(fields, index, layers)


def llama4_experts(fields: Fields, index: int, layers: int) -> Experts | None:
    step = fields.whole("interleave_moe_layer_step", usual=1)
    chosen = fields.numbers("moe_layers", layers)
    if index not in (range(step - 1, layers, step) if chosen is None else chosen):
        return None
    made = all_experts(fields, index, layers)
    return replace(made, shared=made.inner, shared_count=1)
