"""What the tap does not honour is refused at load, by name; what it does is taken as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    Gemma2Config,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Phi3Config,
    PreTrainedConfig,
    Qwen2Config,
)

from engine import model
from engine.measure import clock
from engine.model import device, loading, tap
from engine.run import admit, complete
from engine.settings import Refusal
from tests.engine import tiny

GROUPED: dict[str, Any] = {**tiny.SIZES, "num_key_value_heads": 2, "sliding_window": tiny.WINDOW}
SLIDING = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
FEW = {"num_local_experts": 2, "num_experts_per_tok": 1}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4, "long_factor": [3.0] * 4,
            "original_max_position_embeddings": 48}  # fmt: skip

HONOURED: dict[str, Callable[[], PreTrainedConfig]] = {
    "a window on every layer": lambda: MistralConfig(**GROUPED),
    "a window on some layers": lambda: Qwen2Config(**GROUPED, use_sliding_window=True, max_window_layers=1),
    "no caps": lambda: Gemma2Config(**GROUPED, head_dim=8, attn_logit_softcapping=None),
    "experts": lambda: MixtralConfig(**{**GROUPED, "sliding_window": None}, **FEW),
}


def wrapped(config: PreTrainedConfig, name: str) -> model.LanguageModel:
    return model.wrap(tiny.from_config(config), tiny.tokenizer(), name=name)


@pytest.mark.parametrize("name", HONOURED)
def test_what_it_honours_answers_as_the_library_does(name: str) -> None:
    endless = replace(wrapped(HONOURED[name](), name), end_ids=frozenset())
    run = admit("", tiny.raw(), endless, clock.now())
    complete(run)
    with torch.inference_mode():
        logits = tiny.from_config(HONOURED[name]())(torch.tensor([[*run.ids, *run.chosen[:-1]]])).logits[0]
    assert run.chosen == logits[len(run.ids) - 1 :].argmax(-1).tolist()


@pytest.mark.parametrize(
    ("kinds", "windows"),
    [
        (["chunked_attention", "full_attention"], [0, 0]),
        (["sliding_attention", "full_attention"], [0, 0]),
        (["full_attention", "full_attention"], [8, 0]),
        (["linear_attention", "full_attention"], [0, 0]),
    ],
)
def test_layers_of_a_kind_that_the_calls_did_not_tell_are_refused(kinds: list[str], windows: list[int]) -> None:
    """A mask that the library would have made is missed by a probe shorter than it."""
    config = LlamaConfig(layer_types=kinds, sliding_window=8, num_hidden_layers=2)
    with pytest.raises(Refusal) as refused:
        loading._check_windows(config, windows, "odd")
    assert refused.value.values["what"] == kinds[0]


def test_long_rope_is_bounded_by_its_first_length_so_that_runs_cannot_change_each_other() -> None:
    config = Phi3Config(**GROUPED, original_max_position_embeddings=48, rope_parameters=LONGROPE)
    assert wrapped(config, "long").facts.context == 48


def test_an_answer_that_differs_from_eager_attention_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tap, "_many_rows", lambda tape, layer, query, *rest: query.transpose(1, 2))
    with pytest.raises(Refusal, match="tap_differs"):
        wrapped(LlamaConfig(**{**GROUPED, "num_key_value_heads": 4}), "wrong")


def saved(folder: Path, kind: str = "llama") -> Path:
    tiny.network(kind).save_pretrained(folder)
    tiny.tokenizer().save_pretrained(folder)
    return folder


def test_a_folder_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    told: list[float] = []
    loaded = model.load(saved(tmp_path), name="mine", weights_sha256="ab", dtype="fp32", device="cpu",
                        progress=lambda fraction, what: told.append(fraction))  # fmt: skip
    assert told == sorted(told) and told[-1] == 1.0
    assert (loaded.facts.model, loaded.facts.weights_sha256, loaded.facts.dtype_reason) == ("mine", "ab", "asked")
    assert loaded.end_ids == {2}
    run = admit("", tiny.raw(), loaded, clock.now())
    complete(run)
    assert tuple(run.chosen) == tiny.sit("llama", tiny.raw()).output_ids


def test_bf16_is_taken_as_well(tmp_path: Path) -> None:
    loaded = model.load(saved(tmp_path, "gemma3"), dtype="bf16", device="cpu")
    run = admit("", tiny.raw(), loaded, clock.now())
    complete(run)
    assert loaded.facts.value_bytes == 2 and run.tape is not None
    assert run.tape.queries(0, 0, 3).dtype == torch.bfloat16
    assert run.lens.map(0, None).sum(-1).tolist() == pytest.approx([1.0] * run.lens.length, abs=1e-5)


def broken(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"nothing")


def unknown(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "never_heard_of"}))


def code_of_its_own(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    kinds = {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "mine", "auto_map": kinds}))
    (folder / "mine.py").write_text("raise SystemExit('a stranger''s code was run')")


def wordless(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


@pytest.mark.parametrize("damage", [broken, unknown, code_of_its_own, wordless])
def test_a_folder_that_is_no_model_is_refused_with_its_name(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    damage(saved(tmp_path))
    with pytest.raises(Refusal) as refused:
        model.load(tmp_path, name="mine", dtype="fp32", device="cpu")
    assert refused.value.code == "model_not_loaded" and refused.value.values["model"] == "mine"


@pytest.mark.parametrize("asked", ["banana", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(asked: str) -> None:
    with pytest.raises(Refusal, match="unknown_device"):
        device.choose_device(asked)


def test_a_dtype_that_is_not_there_is_refused_and_one_that_is_says_why_it_was_taken() -> None:
    cpu = torch.device("cpu")
    with pytest.raises(Refusal, match="unknown_dtype"):
        device.choose_dtype("int3", cpu)
    assert device.choose_dtype("bf16", cpu) == (torch.bfloat16, "asked")
    assert device.choose_dtype("", cpu)[1] == "measured_faster"
    assert device.choose_dtype("", torch.device("cuda")) == (torch.bfloat16, "default")


def test_a_model_is_switched_to_our_attention_once() -> None:
    ready = tiny.model("llama")
    assert ready.network.config._attn_implementation == tap.NAME
    assert not any(module.training for module in ready.network.modules())
