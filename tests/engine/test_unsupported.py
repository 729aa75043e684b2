"""A model from a folder gives the library's own greedy ids, or is refused with a sentence that names what it lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as library
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM, PreTrainedConfig

from engine import model
from engine.measure import clock
from engine.model import LanguageModel
from engine.run import Run, complete
from engine.settings import Refusal
from engine.words import say
from tests.engine import tiny

SIZES = tiny.SIZES
GROUPED: dict[str, Any] = {**SIZES, "num_key_value_heads": 2}
NARROW = {"vocab_size": 384, "hidden_size": 32, "bos_token_id": 1, "eos_token_id": 2}
OLD = {**NARROW, "num_hidden_layers": 3, "num_attention_heads": 4}
FEW = {"num_local_experts": 2, "num_experts_per_tok": 1}
SLIDING = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
LINEAR = {f"linear_{what}": size for what, size in
          {"num_key_heads": 2, "num_value_heads": 2, "key_head_dim": 8, "value_head_dim": 8}.items()}  # fmt: skip
QWEN_NEXT = {"head_dim": 16, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16,
             "shared_expert_intermediate_size": 16}  # fmt: skip
LATENT = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8,
          "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 16,
          "first_k_dense_replace": 1}  # fmt: skip
JAMBA = {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "num_experts_per_tok": 1}

RUNS: dict[str, Callable[[], PreTrainedConfig]] = {
    "opt": lambda: library.OPTConfig(**NARROW, num_hidden_layers=3, num_attention_heads=4, ffn_dim=64,
                                     max_position_embeddings=96, word_embed_proj_dim=32, init_std=0.3),
    "gptj": lambda: library.GPTJConfig(vocab_size=384, n_embd=32, n_layer=3, n_head=4, rotary_dim=4, n_positions=96,
                                       bos_token_id=1, eos_token_id=2, initializer_range=0.3),
    "phi": lambda: library.PhiConfig(**SIZES),
    "neox": lambda: library.GPTNeoXConfig(**SIZES),
    "olmo2": lambda: library.Olmo2Config(**SIZES),
    "cohere": lambda: library.CohereConfig(**SIZES),
    "granite": lambda: library.GraniteConfig(**SIZES),
}  # fmt: skip
REFUSED: dict[str, tuple[Callable[[], PreTrainedConfig], str, str]] = {
    "stablelm": (lambda: library.StableLmConfig(**GROUPED), "tap_no_interface", "StableLmForCausalLM"),
    "nemotron": (lambda: library.NemotronConfig(**GROUPED), "tap_no_interface", "NemotronForCausalLM"),
    "falcon": (lambda: library.FalconConfig(**OLD), "tap_no_interface", "FalconForCausalLM"),
    "falcon with a bias": (lambda: library.FalconConfig(**OLD, alibi=True), "tap_alibi", "ALiBi"),
    "bloom": (lambda: library.BloomConfig(**NARROW, n_layer=3, n_head=4), "tap_alibi", "ALiBi"),
    "mpt": (lambda: library.MptConfig(vocab_size=384, d_model=32, n_layers=3, n_heads=4), "tap_alibi", "ALiBi"),
    "gpt-oss": (lambda: library.GptOssConfig(**GROUPED, **SLIDING, **FEW, head_dim=8), "tap_sinks", "attention sinks"),
    "gemma 2": (lambda: library.Gemma2Config(**GROUPED, head_dim=8), "tap_softcap", "soft-capping"),
    "both ways": (
        lambda: library.Gemma3TextConfig(**GROUPED, head_dim=8, use_bidirectional_attention=True),
        "tap_both_ways", "Gemma3ForCausalLM",
    ),
    "mamba": (lambda: library.MambaConfig(**NARROW, num_hidden_layers=3), "tap_recurrent", "MambaForCausalLM"),
    "jamba": (lambda: library.JambaConfig(**GROUPED, **JAMBA), "tap_recurrent", "JambaForCausalLM"),
    "qwen3-next": (
        lambda: library.Qwen3NextConfig(**GROUPED, **QWEN_NEXT, **LINEAR), "tap_recurrent", "Qwen3NextForCausalLM",
    ),
    "deepseek": (
        lambda: library.DeepseekV3Config(**{**GROUPED, "num_key_value_heads": 4}, **LATENT), "tap_latent", "MLA",
    ),
    "chunks": (
        lambda: library.LlamaConfig(**GROUPED, layer_types=["chunked_attention"] * 3),
        "tap_unsupported", "chunked_attention",
    ),
    "t5": (
        lambda: library.T5Config(vocab_size=384, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
        "model_encoder_decoder", "T5ForConditionalGeneration",
    ),
    "bert": (lambda: library.BertConfig(**OLD, intermediate_size=64), "tap_both_ways", "BertForMaskedLM"),
}  # fmt: skip


def saved(folder: Path, config: PreTrainedConfig) -> Path:
    """A random model of its usual class, in the format in which models are handed round."""
    kinds: dict[str, Any] = {"t5": AutoModelForSeq2SeqLM, "bert": AutoModelForMaskedLM}
    kind = kinds.get(config.model_type, AutoModelForCausalLM)
    with torch.random.fork_rng():
        torch.manual_seed(11)
        kind.from_config(config, dtype=torch.float32).save_pretrained(folder)
    tiny.tokenizer().save_pretrained(folder)
    return folder


def loaded(folder: Path) -> LanguageModel:
    return model.load(folder, name="mine", dtype="fp32", device="cpu")


def refused(folder: Path) -> Refusal:
    """What loading it is refused with. In both languages it is a whole sentence that shows nothing of the program."""
    with pytest.raises(Refusal) as raised:
        loaded(folder)
    for lang in ("en", "zh"):
        sentence = say(f"errors.{raised.value.code}", lang, **raised.value.values)
        assert "mine" in sentence and not any(sign in sentence for sign in ("{", "()", "Error", "argument", "class "))
    return raised.value


@pytest.mark.parametrize("name", RUNS)
def test_what_is_supported_gives_the_librarys_own_ids(tmp_path: Path, name: str) -> None:
    ready = loaded(saved(tmp_path, RUNS[name]()))
    run = Run("", tiny.raw(), ready, clock.now())
    complete(run)
    network = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    with torch.inference_mode():
        logits = network(torch.tensor([[*run.ids, *run.chosen[:-1]]])).logits[0]
    assert run.chosen and run.chosen == logits[len(run.ids) - 1 :].argmax(-1).tolist()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    config, code, named = REFUSED[name]
    refusal = refused(saved(tmp_path, config()))
    assert refusal.code == code
    assert all(named in say(f"errors.{code}", lang, **refusal.values) for lang in ("en", "zh"))


def test_a_model_that_writes_nothing_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    library.CLIPConfig().save_pretrained(tmp_path)
    assert refused(tmp_path).code == "model_writes_nothing"


def edited(folder: Path, edit: Callable[[dict[str, torch.Tensor], dict[str, Any]], None]) -> Path:
    """A tiny Llama whose tensors and config were edited after it was saved."""
    saved(folder, library.LlamaConfig(**GROUPED, tie_word_embeddings=True))
    tensors, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    edit(tensors, config)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_an_output_matrix_that_is_not_in_the_file_is_never_drawn_at_random(tmp_path: Path) -> None:
    folder = edited(tmp_path, lambda tensors, config: config.update(tie_word_embeddings=False))
    refusal = refused(folder)
    assert refusal.code == "weights_incomplete"
    assert (refusal.values["count"], refusal.values["names"]) == (1, "lm_head.weight")
    edited(tmp_path, lambda tensors, config: None)
    assert loaded(tmp_path).facts.layers == 3, "tied, it is the embedding and needs no place of its own"


def test_of_many_missing_tensors_some_are_named(tmp_path: Path) -> None:
    def lose(tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> None:
        for name in [name for name in tensors if ".layers.1." in name]:
            del tensors[name]

    refusal = refused(edited(tmp_path, lose))
    assert refusal.code == "weights_incomplete" and refusal.values["count"] == 9
    assert str(refusal.values["names"]).startswith("model.layers.1.input_layernorm.weight, ")


def test_a_tensor_of_another_shape_is_named_with_both(tmp_path: Path) -> None:
    def cut(tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> None:
        tensors["model.norm.weight"] = tensors["model.norm.weight"][:7].clone()

    refusal = refused(edited(tmp_path, cut))
    assert refusal.code == "weights_wrong_shape"
    assert [refusal.values[name] for name in ("tensor", "found", "expected")] == ["model.norm.weight", "7", "32"]


def test_tensors_that_nobody_needs_do_no_harm(tmp_path: Path) -> None:
    def add(tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> None:
        tensors["value_head.weight"] = torch.ones(3)

    assert loaded(edited(tmp_path, add)).facts.layers == 3
