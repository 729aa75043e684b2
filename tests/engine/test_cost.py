"""Work and memory from formulas: against the library that builds the models, torch's own counter, and known figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    DeepseekV3Config,
    DynamicCache,
    MixtralConfig,
    PreTrainedConfig,
    Qwen2Config,
)

from engine.measure.fit import fit
from engine.plan import cost, memory
from engine.plan.architecture import Architecture
from engine.plan.families import FAMILIES, NESTED
from engine.plan.formats import BFLOAT16, FLOAT32, cache_format
from engine.plan.read import of_run, read
from engine.settings import Refusal
from tests.engine import tiny

MORE: dict[str, Callable[[], PreTrainedConfig]] = {
    "mixtral": lambda: MixtralConfig(**tiny.SIZES, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2),
    "qwen2": lambda: Qwen2Config(**tiny.SIZES, num_key_value_heads=2),
    "deepseek": lambda: DeepseekV3Config(
        **tiny.SIZES,
        num_key_value_heads=4,
        q_lora_rank=24,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=12,
        first_k_dense_replace=1,
        moe_intermediate_size=16,
        n_routed_experts=4,
        num_experts_per_tok=2,
        n_group=1,
        topk_group=1,
    ),
}
TINY = tiny.CONFIGS | MORE


def architecture(kind: str) -> Architecture:
    return read(TINY[kind]().to_dict())


def counted(network: Any, ids: torch.Tensor, cache: DynamicCache) -> int:
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        network(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
    return counter.get_total_flops()


@pytest.mark.parametrize("kind", TINY)
def test_flops_are_those_torch_counts(kind: str) -> None:
    """Prefill, a second prefill behind the first, and decode, each within 2 %."""
    network, made = tiny.from_config(TINY[kind]()), architecture(kind)
    network.set_experts_implementation("eager")  # the counter does not know the grouped product
    cache = DynamicCache(config=network.config)
    first, second = cost.prefill(made, 24), cost.prefill(made, 8, 24)
    assert counted(network, torch.arange(24)[None], cache) == pytest.approx(first.matrices, rel=0.02)
    assert counted(network, torch.arange(8)[None], cache) == pytest.approx(second.matrices, rel=0.02)
    assert counted(network, torch.tensor([[5]]), cache) == pytest.approx(cost.decode(made, 32).matrices, rel=0.02)
    assert 0 < first.norms < 0.05 * first.total


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_a_batch_works_for_all_its_sequences(kind: str) -> None:
    network, made = tiny.from_config(TINY[kind]()), architecture(kind)
    cache = DynamicCache(config=network.config)
    assert counted(network, torch.arange(60).view(3, 20), cache) == pytest.approx(
        cost.prefill(made, 20, batch=3).matrices, rel=0.02
    )
    assert counted(network, torch.tensor([[5], [6], [7]]), cache) == pytest.approx(
        cost.decode(made, 20, 3).matrices, rel=0.02
    )


@pytest.mark.parametrize(("tokens", "start"), [(1, 0), (1, 40), (12, 0), (12, 5), (24, 24)])
def test_what_a_mask_hides_is_counted_pair_by_pair(tokens: int, start: int) -> None:
    made = architecture("gemma3")
    wasted = 0
    for layer in made.layers:
        reach = layer.window or start + tokens
        seen = sum(min(position + 1, reach) for position in range(start, start + tokens))
        wasted += 2 * layer.heads * (2 * layer.head_size) * (tokens * (memory.kept(layer, start) + tokens) - seen)
    assert cost.masked(made, tokens, start) == wasted
    assert 0 <= wasted < cost.prefill(made, tokens, start).attention


def held(cache: DynamicCache) -> int:
    return sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)


@pytest.mark.parametrize("kind", TINY)
@pytest.mark.parametrize("length", [3, 7, 8, 30])
def test_the_cache_is_the_librarys_to_the_byte(kind: str, length: int) -> None:
    """Windows and latents included; and so are the bytes one decode step writes."""
    network, made = tiny.from_config(TINY[kind]()), architecture(kind)
    cache = DynamicCache(config=network.config)
    with torch.inference_mode():
        network(input_ids=torch.arange(2 * length).view(2, length), cache=cache, use_cache=True)
        assert held(cache) == memory.kv_bytes(made, length, 2, FLOAT32)
        network(input_ids=torch.tensor([[5], [6]]), cache=cache, use_cache=True)
    assert held(cache) == memory.kv_bytes(made, length + 1, 2, FLOAT32)
    assert memory.kv_bytes_upper(made, length, 2, FLOAT32) >= memory.kv_bytes(made, length, 2, FLOAT32)


FULL_SIZE: dict[str, dict[str, Any]] = {
    "glm4_moe": {"head_dim": 128},
    "deepseek_v2": {"num_experts_per_tok": 6, "first_k_dense_replace": 1},
    "bloom": {"n_layer": 3},
}
"""What the library's own defaults leave open, or make too small to tell anything."""


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_are_those_the_library_makes(family: str) -> None:
    """Of every family, at the size of its class's defaults, without memory for them."""
    config = AutoConfig.for_model("deepseek_v3" if family == "kimi_k2" else family, **FULL_SIZE.get(family, {}))
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(config)
    parameters = {id(one): one.numel() for one in network.parameters()}
    corrections = sum(one.numel() for name, one in network.named_buffers() if "correction_bias" in name)
    made = read(config.to_dict() | {"model_type": family})
    assert made.parameters == sum(parameters.values()) + corrections
    assert made.active_parameters <= made.parameters
    assert (made.active_parameters < made.parameters) == any(layer.experts for layer in made.layers)


def test_a_nested_config_leaves_out_what_the_library_has_as_usual() -> None:
    for family, usual in NESTED.items():
        theirs = AutoConfig.for_model(family).get_text_config().to_dict()
        assert {name: theirs[name] for name in usual} == usual


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen3", "gemma3", "neox"])
def test_a_loaded_models_facts_lead_to_its_architecture(kind: str) -> None:
    """Weights and tables to the byte; the cache as our own counts it. Another model's config is refused."""
    model, made = tiny.model(kind), architecture(kind)
    assert of_run(model.facts, TINY[kind]().to_dict()) == made
    with pytest.raises(Refusal, match="config_of_another"):
        of_run(model.facts, MORE["qwen2"]().to_dict())
    assert memory.weights(made, FLOAT32).total + memory.buffers(made, FLOAT32) == model.facts.weight_bytes
    for length in (1, 7, 8, 9, 50):
        assert memory.kv_bytes(made, length, 1, FLOAT32) == model.shape.bytes_at(length)
    assert memory.kv_bytes_per_token(made, FLOAT32) == model.facts.kv_bytes_per_token


def test_a_decode_step_moves_all_weights_and_the_cache() -> None:
    made = architecture("mixtral")
    one = cost.moved(made, 1, 50, BFLOAT16, BFLOAT16)
    active = made.active_parameters - made.embedding + made.hidden
    assert (one.weights, one.cache_read, one.cache_written) == (2 * active, 50 * 96 * 2, 96 * 2)
    many = cost.moved(made, 1, 50, BFLOAT16, BFLOAT16, batch=8)
    assert many.cache_read == 8 * one.cache_read
    assert many.weights == 2 * (made.parameters - made.embedding + 8 * made.hidden)
    tied = architecture("gpt2")
    assert cost.moved(tied, 1, 50, BFLOAT16, BFLOAT16).weights == 2 * tied.parameters
    assert cost.intensity(cost.decode(tied, 50), cost.moved(tied, 1, 50, BFLOAT16, BFLOAT16)) == pytest.approx(
        1, rel=0.4
    )
    assert cost.intensity(cost.prefill(tied, 90), cost.moved(tied, 90, 0, BFLOAT16, BFLOAT16)) > 30


@given(
    st.tuples(st.floats(-2, 2), st.floats(-1e-3, 1e-3), st.floats(-1e-6, 1e-6)),
    st.lists(st.integers(1, 100_000), min_size=4, max_size=12, unique=True),
)
def test_a_fit_finds_what_was_planted(planted: tuple[float, float, float], lengths: list[int]) -> None:
    a, b, c = planted
    lengths = [*lengths, 1, 50_000, 100_000]
    found = fit([(n, a + b * n + c * n * n) for n in lengths])
    scale = max(abs(a), abs(b) * 1e5, abs(c) * 1e10, 1e-9)
    assert abs(found.a - a) < 1e-6 * scale
    assert abs(found.b - b) * 1e5 < 1e-6 * scale
    assert abs(found.c - c) * 1e10 < 1e-6 * scale
    assert found.spread < 1e-6 * scale


def test_a_fit_leaves_over_what_no_curve_explains() -> None:
    points = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 5.0)]
    line = fit(points, degree=1)
    assert (line.a, line.b, line.c) == (pytest.approx(-0.5), pytest.approx(1.3), 0.0)
    assert line.residuals == pytest.approx((0.2, -0.1, -0.4, 0.3))
    assert sum(line.residuals) == pytest.approx(0, abs=1e-12)
    for few in ([], [(1.0, 1.0)], [(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]):
        with pytest.raises(ValueError):
            fit(few)


def test_the_figure_everyone_quotes() -> None:
    """F1 and case 8: 80 layers, 8 KV heads, head size 128, bf16, 131,072 positions."""
    config: dict[str, Any] = {
        "model_type": "qwen2",
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "hidden_size": 8192,
        "intermediate_size": 29568,
        "vocab_size": 152064,
    }
    for kv_heads, expected in ((8, 42_949_672_960), (64, 343_597_383_680), (1, 5_368_709_120)):
        made = read(config | {"num_key_value_heads": kv_heads})
        assert memory.kv_bytes(made, 131_072, 1, BFLOAT16) == expected
        assert memory.kv_bytes_upper(made, 131_072, 1, BFLOAT16) == expected
    assert memory.kv_bytes(read(config), 131_072, 1, BFLOAT16) == 343_597_383_680  # no such field: ordinary attention
    assert memory.kv_bytes_per_token(read(config | {"head_dim": 64}), BFLOAT16) == 2 * 80 * 64 * 64 * 2


def test_a_head_size_of_its_own_and_old_names() -> None:
    qwen3_4b = read(
        {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": 128, "hidden_size": 2560, "intermediate_size": 9728, "vocab_size": 151936,
         "tie_word_embeddings": True}
    )  # fmt: skip
    assert memory.kv_bytes_per_token(qwen3_4b, BFLOAT16) == 147_456
    old = read({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50257, "n_ctx": 1024})
    assert (old.parameters, memory.kv_bytes_per_token(old, BFLOAT16)) == (124_439_808, 2 * 12 * 768 * 2)
    assert read({"n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50257, "n_ctx": 1024}).assumed == (
        "model_type",
    )


def test_caches_of_few_bits_carry_their_scales() -> None:
    made = read(MORE["qwen2"]().to_dict())  # 3 layers, 2 KV heads of 8
    sizes = {name: memory.kv_bytes(made, 10, 1, cache_format(name)) for name in ("fp32", "bf16", "fp8", "int8", "int4")}
    vectors = 10 * 3 * 2 * 2
    assert sizes == {
        "fp32": vectors * 32,
        "bf16": vectors * 16,
        "fp8": vectors * 8 + 3 * 2 * 4,
        "int8": vectors * (8 + 2),
        "int4": vectors * (4 + 2),
    }
    assert memory.kv_bytes_upper(made, 10, 1, cache_format("int4")) == vectors * (4 + 4)
