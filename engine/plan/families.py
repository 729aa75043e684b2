"""What each family of models does that its config does not say: a table of traits, read by `engine.plan.layers`.

Every family is checked against the transformers library: a test builds the same config there, without memory, and
counts the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.plan import patterns
from engine.plan.architecture import Kind
from engine.plan.fields import Fields
from engine.plan.patterns import Experts

Switch = bool | tuple[str, bool]
"""Always so, or as a field of the config says (its name and what it is where absent)."""

KINDS: dict[str, Kind] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "linear",
}
"""What configs call the kinds of layers."""

_ATTENTION_BIAS = ("attention_bias", False)


@dataclass(frozen=True, slots=True)
class Family:
    """What the library's class of a family does that its config does not say."""

    gated: bool = True
    norms: int = 2
    """Norms per layer as wide as the hidden state; -1: falcon's way."""
    norm_weights: int = 1
    """Weights per value of such a norm: 2 with a bias, 0 without any."""
    qkv_bias: Switch = _ATTENTION_BIAS
    out_bias: Switch = _ATTENTION_BIAS
    mlp_bias: Switch = False
    qk_norm: str = ""
    """Norms of queries and keys: `head` (one head wide), `width` (all heads), `switch` (`head` where use_qk_norm)."""
    sinks: bool = False
    output_gate: bool = False
    """Whether the query matrix makes a gate of the output too."""
    tied: bool = False
    """Where `tie_word_embeddings` is absent."""
    head_bias: bool = False
    positions: int | None = None
    """Learned positions: rows besides `max_position_embeddings`; None where there are none."""
    embedding_norm: bool = False
    kinds: Callable[[Fields, int], list[Kind]] | None = None
    """Where `layer_types` is absent; else all layers are full."""
    experts: Callable[[Fields, int, int], Experts | None] | None = None
    """Layer `index` of `layers`: its experts, or None for a dense one."""
    mixer: str = "attention"
    inner: int = 0
    """The MLP's width in hidden sizes, where it may be absent."""
    head: int = 0
    """The head size where `head_dim` is absent; 0: hidden / heads."""
    rotary: int = 1
    """How many rotary tables there are."""
    scale: int = 0


_LLAMA = Family(mlp_bias=("mlp_bias", False))
_PLAIN = Family(qkv_bias=False, out_bias=False)
_SLIDING = replace(_PLAIN, kinds=patterns.every("sliding_window", "sliding"))
_NEO = Family(gated=False, norm_weights=2, qkv_bias=True, out_bias=True, mlp_bias=True)
_GPT2 = replace(_NEO, tied=True, positions=0, inner=4, rotary=0)
_GEMMA = Family(tied=True, head=256, scale=1)
_QWEN2 = Family(qkv_bias=True, out_bias=False, kinds=patterns.late)
_QWEN3 = Family(qk_norm="head", kinds=patterns.late)
_DEEPSEEK = Family(mixer="latent", experts=patterns.corrected_experts)
_BIASED = ("attention_bias", True)


def _all_biased(field: str, usual: bool) -> Family:
    """One switch for every bias."""
    return Family(qkv_bias=(field, usual), out_bias=(field, usual), mlp_bias=(field, usual))


FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": _SLIDING,
    "mixtral": replace(_SLIDING, experts=patterns.all_experts),
    "qwen2": _QWEN2,
    "qwen2_moe": replace(_QWEN2, qkv_bias=("qkv_bias", True), experts=patterns.qwen_experts),
    "qwen3": replace(_QWEN3, head=128),
    "qwen3_moe": replace(_QWEN3, experts=patterns.qwen_experts),
    "qwen3_next": Family(
        qk_norm="head",
        output_gate=True,
        kinds=patterns.linear_but,
        experts=patterns.qwen_experts,
        mixer="delta",
        head=256,
    ),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, norms=4, kinds=patterns.pattern(2)),
    "gemma3_text": replace(_GEMMA, norms=4, qk_norm="head", kinds=patterns.pattern(6), rotary=2),
    "phi": replace(_NEO, norms=1, head_bias=True),
    "phi3": _SLIDING,
    "phimoe": Family(norm_weights=2, kinds=patterns.every("sliding_window", "sliding"), experts=patterns.all_experts),
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2,
    "gpt_neox": replace(_NEO, qkv_bias=_BIASED, out_bias=_BIASED),
    "gptj": replace(_NEO, norms=1, qkv_bias=False, out_bias=False, head_bias=True, inner=4, rotary=0),
    "falcon": replace(_all_biased("bias", False), gated=False, norms=-1, norm_weights=2, tied=True, inner=4),
    "bloom": replace(_NEO, tied=True, inner=4, embedding_norm=True, rotary=0),
    "opt": replace(_NEO, tied=True, positions=2, rotary=0),
    "starcoder2": replace(
        _all_biased("use_bias", True),
        gated=False,
        norm_weights=2,
        tied=True,
        kinds=patterns.every("sliding_window", "sliding"),
    ),
    "stablelm": Family(norm_weights=2, qkv_bias=("use_qkv_bias", False), out_bias=False),
    "olmo": Family(norm_weights=0),
    "olmo2": Family(qk_norm="width"),
    "olmoe": Family(qk_norm="width", experts=patterns.all_experts),
    "cohere": Family(norms=1, tied=True),
    "cohere2": Family(norms=1, tied=True, kinds=patterns.pattern(4)),
    "granite": _LLAMA,
    "granitemoe": Family(experts=patterns.all_experts),
    "smollm3": replace(_LLAMA, tied=True, kinds=patterns.late),
    "exaone4": replace(_PLAIN, qk_norm="head", kinds=patterns.pattern(4)),
    "ernie4_5": replace(_all_biased("use_bias", False), tied=True, head=128),
    "seed_oss": replace(_LLAMA, qkv_bias=_BIASED, out_bias=("attention_out_bias", False), head=128),
    "glm": Family(qkv_bias=_BIASED, out_bias=False, head=128),
    "glm4": Family(norms=4, qkv_bias=_BIASED, out_bias=False, head=128),
    "glm4_moe": Family(qk_norm="switch", out_bias=False, experts=patterns.corrected_experts),
    "minimax_m2": replace(_PLAIN, qk_norm="width", experts=patterns.minimax_experts),
    "deepseek_v2": Family(mixer="latent", experts=patterns.deepseek_experts),
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "gpt_oss": Family(
        qkv_bias=_BIASED,
        out_bias=_BIASED,
        sinks=True,
        kinds=patterns.pattern(2),
        experts=patterns.gpt_oss_experts,
        head=64,
    ),
    "jamba": replace(_PLAIN, kinds=patterns.jamba_kinds, experts=patterns.jamba_experts, mixer="mamba", rotary=0),
    "llama4_text": Family(kinds=patterns.llama4_kinds, experts=patterns.llama4_experts, head=128),
}
"""By `model_type`."""

NESTED: dict[str, dict[str, int | str]] = {
    "gemma3": {
        "model_type": "gemma3_text",
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262_208,
        "sliding_window": 4_096,
    },
    "llama4": {"model_type": "llama4_text"},
}
"""For configs of models that also see or hear: what their `text_config` may leave out. Published ones do: the library
writes only what differs from its class (transformers 5.24, `Gemma3TextConfig`; a test compares)."""
