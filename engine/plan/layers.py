"""From the fields of a config to its layers: what each family's traits (`engine.plan.families`) come to in weights.

Shapes of matrices are (outputs × inputs); only their products matter here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from engine.plan.architecture import Architecture, Kind, Layer
from engine.plan.families import FAMILIES, KINDS, NESTED, Family, Switch
from engine.plan.fields import Fields, cut
from engine.plan.patterns import Experts
from engine.settings import Refusal


def build(config: Mapping[str, Any]) -> Architecture:
    """The architecture of a config. Raises the refusals of `engine.plan.fields`, `config_unknown_family`, and
    `config_indivisible`, `config_more_than` where sizes contradict each other."""
    name, fields = _family(config)
    family = FAMILIES[name]
    count = fields.whole("num_hidden_layers")
    hidden, vocabulary = fields.whole("hidden_size"), fields.whole("vocab_size")
    inner = fields.whole("intermediate_size", usual=family.inner * hidden or None)
    layers = tuple(
        _layer(fields, family, index, count, kind, hidden, inner)
        for index, kind in enumerate(_kinds(fields, family, count))
    )
    context = fields.whole("max_position_embeddings", usual=0, least=0)
    positions = 0 if family.positions is None else (fields.whole("max_position_embeddings") + family.positions) * hidden
    tied = fields.flag("tie_word_embeddings", family.tied)
    return Architecture(
        family=name,
        layers=layers,
        hidden=hidden,
        vocabulary=vocabulary,
        context=_stretched(fields, context),
        tied=tied,
        intermediate=inner,
        dtype=fields.text("dtype"),
        outside=family.norm_weights * hidden * (2 if family.embedding_norm else 1)
        + positions
        + (vocabulary if family.head_bias else 0),
        rotary=family.rotary * 2 * _turned(fields, layers),
        scale=family.scale,
        assumed=tuple(dict.fromkeys(fields.assumed)),
    )


def _family(config: Mapping[str, Any]) -> tuple[str, Fields]:
    """The family's name and the fields of the part that writes text."""
    inside = config.get("text_config")
    outer = config.get("model_type")
    if isinstance(inside, Mapping):
        usual = NESTED.get(outer if isinstance(outer, str) else "", {})
        shared = {key: config[key] for key in ("tie_word_embeddings", "dtype", "torch_dtype") if key in config}
        config = {**usual, **shared, **{key: value for key, value in inside.items() if value is not None}}
        fields = Fields(config)
        fields.assumed += [key for key in usual if inside.get(key) is None]
    else:
        fields = Fields(config)
    name = config.get("model_type")
    if name is None:
        fields.assumed.append("model_type")
        return "gpt2" if config.get("n_embd") is not None else "llama", fields
    if not isinstance(name, str) or name not in FAMILIES:
        raise Refusal("config_unknown_family", field="model_type", value=cut(name), known=", ".join(FAMILIES))
    return name, fields


def _kinds(fields: Fields, family: Family, count: int) -> list[Kind]:
    named = fields.words("layer_types", count, tuple(KINDS))
    if named is not None:
        return [KINDS[name] for name in named]
    return family.kinds(fields, count) if family.kinds else ["full"] * count


def _layer(fields: Fields, family: Family, index: int, count: int, kind: Kind, hidden: int, inner: int) -> Layer:
    mixer = family.mixer if kind == "linear" or family.mixer == "latent" else "attention"
    if kind == "linear" and mixer == "attention":
        raise Refusal("config_unknown_kind", field="layer_types", value="linear_attention")
    layer = MIXERS[mixer](fields, family, hidden, kind)
    norms = family.norms
    if norms < 0:  # falcon: one norm for both halves, or one each
        apart = fields.flag("new_decoder_architecture") and fields.raw("num_ln_in_parallel_attn") in (None, 2)
        norms = 2 if apart or not fields.flag("parallel_attn", True) else 1
    layer = replace(
        layer,
        small=layer.small + norms * family.norm_weights * hidden,
        normed=layer.normed + norms * hidden,
        gated=family.gated,
    )
    experts = family.experts(fields, index, count) if family.experts else None
    bias = _on(fields, family.mlp_bias)
    if experts:
        return _with_experts(layer, experts, hidden)
    if family.experts and "intermediate_size_mlp" in fields:
        inner = fields.whole("intermediate_size_mlp")
    matrices = 3 if family.gated else 2
    return replace(
        layer,
        mlp=matrices * hidden * inner,
        mlp_active=matrices * hidden * inner,
        inner=inner,
        small=layer.small + (((matrices - 1) * inner + hidden) if bias else 0),
    )


def _with_experts(layer: Layer, experts: Experts, hidden: int) -> Layer:
    expert, shared = 3 * hidden * experts.inner, 3 * hidden * experts.shared
    router = experts.count * hidden + (hidden if experts.shared_gate else 0)
    bias = 2 * experts.inner + hidden if experts.bias else 0
    return replace(
        layer,
        mlp=experts.count * expert + shared + router,
        mlp_active=experts.active * expert + shared + router,
        expert=expert,
        experts=experts.count,
        experts_active=experts.active,
        experts_shared=experts.shared_count,
        inner=experts.active * experts.inner + experts.shared,
        small=layer.small + experts.count * bias + (experts.count if experts.bias or experts.correction else 0),
        small_idle=(experts.count - experts.active) * bias,
    )


def _attention(fields: Fields, family: Family, hidden: int, kind: Kind) -> Layer:
    """Ordinary, grouped or multi-query attention, over everything or a window."""
    heads = fields.whole("num_attention_heads")
    kv_heads = _kv_heads(fields, heads)
    size = head_size(fields, family, hidden, heads)
    queries, keys = heads * size, kv_heads * size
    made = queries * (2 if family.output_gate else 1) + 2 * keys
    small = (made if _on(fields, family.qkv_bias) else 0) + (hidden if _on(fields, family.out_bias) else 0)
    norm = family.qk_norm
    if norm == "switch":
        norm = "head" if fields.flag("use_qk_norm") else ""
    small += {"": 0, "head": 2 * size, "width": queries + keys}[norm] + (heads if family.sinks else 0)
    window = {"sliding": "sliding_window", "chunked": "attention_chunk_size"}.get(kind)
    return Layer(
        kind=kind,
        heads=heads,
        kv_heads=kv_heads,
        head_size=size,
        value_size=size,
        window=fields.whole(window) if window else 0,
        projections=hidden * made + queries * hidden,
        small=small,
        normed=queries + keys if norm else 0,
    )


def _latent(fields: Fields, family: Family, hidden: int, kind: Kind) -> Layer:
    """DeepSeek's: all heads' K and V are made from one latent per position; a part of K that is turned by position is
    beside it. Without `q_lora_rank` queries have no latent of their own."""
    heads, rank = fields.whole("num_attention_heads"), fields.whole("kv_lora_rank")
    turned, plain = fields.whole("qk_rope_head_dim"), fields.whole("qk_nope_head_dim")
    value, query_rank = fields.whole("v_head_dim"), fields.whole("q_lora_rank", usual=0, least=0)
    queries = heads * (plain + turned)
    made = query_rank * (hidden + queries) if query_rank else hidden * queries
    expand = rank * heads * (plain + value)
    made += hidden * (rank + turned) + expand + heads * value * hidden
    biased = _on(fields, family.qkv_bias)
    return Layer(
        kind=kind,
        heads=heads,
        kv_heads=heads,
        head_size=plain + turned,
        value_size=value,
        latent=rank + turned,
        expand=expand,
        projections=made,
        small=query_rank + rank + (query_rank + rank + turned + hidden if biased else 0),
        normed=query_rank + rank,
    )


def _delta(fields: Fields, family: Family, hidden: int, kind: Kind) -> Layer:
    """Qwen3-Next's gated delta rule: per value head a (key size × value size) state that each position rewrites."""
    keys = fields.whole("linear_num_key_heads") * fields.whole("linear_key_head_dim")
    count, size = fields.whole("linear_num_value_heads"), fields.whole("linear_value_head_dim")
    values, kernel = count * size, fields.whole("linear_conv_kernel_dim", usual=4)
    state = count * fields.whole("linear_key_head_dim") * size
    width = 2 * keys + values
    return Layer(
        kind=kind,
        state=state,
        convolution=width * kernel,
        mix=6 * state + 2 * width * kernel,  # read, rewrite and ask the state: two each per value of it
        projections=hidden * (2 * keys + 2 * values) + hidden * 2 * count + values * hidden,
        small=width * kernel + 2 * count + size,
        normed=values,
    )


def _mamba(fields: Fields, family: Family, hidden: int, kind: Kind) -> Layer:
    """Jamba's Mamba layer: `expand` × hidden channels, each with a state of `mamba_d_state` values."""
    width = fields.whole("mamba_expand", usual=2) * hidden
    size, kernel = fields.whole("mamba_d_state", usual=16), fields.whole("mamba_d_conv", usual=4)
    rank = ceil(hidden / 16) if fields.raw("mamba_dt_rank") in (None, "auto") else fields.whole("mamba_dt_rank")
    biases = (width if fields.flag("mamba_conv_bias", True) else 0) + (
        2 * width + hidden if fields.flag("mamba_proj_bias") else 0
    )
    return Layer(
        kind=kind,
        state=width * size,
        convolution=width * kernel,
        mix=6 * width * size + 2 * width * kernel,
        projections=hidden * 2 * width + width * (rank + 2 * size) + rank * width + width * hidden,
        small=width * kernel + width * size + 2 * width + biases + rank + 2 * size,
        normed=rank + 2 * size,
    )


MIXERS: dict[str, Callable[[Fields, Family, int, Kind], Layer]] = {
    "attention": _attention,
    "latent": _latent,
    "delta": _delta,
    "mamba": _mamba,
}


def head_size(fields: Fields, family: Family, hidden: int, heads: int) -> int:
    """`head_dim`, or the family's, or hidden / heads where that is whole. Raises `Refusal("config_indivisible")`."""
    if family.head or fields.raw("head_dim") is not None:
        return fields.whole("head_dim", usual=family.head or None)
    if hidden % heads:
        raise Refusal(
            "config_indivisible", field=fields.written("hidden_size"), other=fields.written("num_attention_heads")
        )
    return hidden // heads


def _kv_heads(fields: Fields, heads: int) -> int:
    """Heads of K and V: as many as query heads where the config has no such field. Old configs say `multi_query`."""
    if fields.raw("model_type") in ("falcon", "gpt_bigcode") and not fields.flag("new_decoder_architecture"):
        return 1 if fields.flag("multi_query", True) else heads
    kv_heads = fields.whole("num_key_value_heads", usual=heads)
    if heads % kv_heads:
        raise Refusal(
            "config_indivisible",
            field=fields.written("num_attention_heads"),
            other=fields.written("num_key_value_heads"),
        )
    return kv_heads


def _on(fields: Fields, switch: Switch) -> bool:
    return switch if isinstance(switch, bool) else fields.flag(*switch)


def _turned(fields: Fields, layers: tuple[Layer, ...]) -> int:
    """Values of one rotary table: half of what is turned of a head (a part of it in some families)."""
    layer = next((layer for layer in layers if layer.heads), None)
    if layer is None:
        return 0
    size = fields.whole("qk_rope_head_dim") if layer.latent else layer.head_size
    rope = fields.raw("rope_parameters")
    within = rope.get("partial_rotary_factor") if isinstance(rope, Mapping) else None
    share: Any
    for share in (fields.raw("partial_rotary_factor"), fields.raw("rotary_pct"), within):
        if isinstance(share, (int, float)) and 0 <= share <= 1:
            return int(size * share) // 2
    return size // 2


def _stretched(fields: Fields, context: int) -> int:
    """Positions with a scaled rotation counted in. Most configs name the length after it; some (Qwen's for YaRN) leave
    `max_position_embeddings` at the length before, and are told by that."""
    for name in ("rope_scaling", "rope_parameters"):
        scaling = fields.raw(name)
        if isinstance(scaling, Mapping):
            before: Any = scaling.get("original_max_position_embeddings")
            factor: Any = scaling.get("factor")
            if type(before) is int and type(factor) in (int, float) and 0 < context <= before and 1 <= factor <= 10_000:
                context = int(before * factor)
    return context
