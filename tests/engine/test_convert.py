"""GGUF to a folder that loads: on a tiny model written here, and on the bundled one, whose answers must be right."""

from __future__ import annotations

import json
import socket
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

from engine import weights
from engine.settings import Refusal
from engine.weights import convert
from engine.weights.download import sha256_of

PIECES = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *bytes_to_unicode().values(), "ĊĊ"]
WIDTH, INNER = 32, 64


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: socket.socket, address: object) -> None:
        if self.family != getattr(socket, "AF_UNIX", None):
            raise OSError(f"the network is unreachable: {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def write_tiny(file: Path) -> dict[str, np.ndarray[Any, Any]]:
    """A Llama of one layer with random weights, as a GGUF file; its tensors."""
    random = np.random.default_rng(7)
    shapes = {"token_embd": (len(PIECES), WIDTH), "output_norm": (WIDTH,)}
    inner = {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "ffn_down": (WIDTH, INNER)}
    inner |= {f"attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
    inner |= {f"ffn_{name}": (INNER, WIDTH) for name in ("gate", "up")}
    shapes |= {f"blk.0.{name}": shape for name, shape in inner.items()}
    tensors = {f"{name}.weight": random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(PIECES))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(PIECES)
    writer.add_token_types([3, 3, 3] + [1] * (len(PIECES) - 3))
    writer.add_token_merges(["Ċ Ċ"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray[Any, Any]]:
    """The default model is fetched but not prepared, and its file is the tiny one."""
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path / "home"))
    work = weights.home() / "downloads" / weights.DEFAULT
    (work / "papers").mkdir(parents=True)
    (work / "papers" / "LICENSE").write_text("the licence")
    return write_tiny(work / "weights.gguf")


def test_a_converted_model_is_the_same_model(tiny: dict[str, np.ndarray[Any, Any]], no_network: None) -> None:
    heard: list[float] = []
    source = weights.resolve("", lambda fraction, what: heard.append(fraction))
    assert heard == sorted(heard) and heard[-1] == 1.0
    network = AutoModelForCausalLM.from_pretrained(source.folder)
    assert network.dtype == torch.bfloat16
    embedding = network.get_input_embeddings().weight.detach().float().numpy()
    np.testing.assert_allclose(embedding, tiny["token_embd.weight"], rtol=2**-8)
    note = json.loads((source.folder / "source.json").read_text())
    assert note["gguf_sha256"] == source.sha256 == weights.MODELS[weights.DEFAULT].gguf_sha256
    assert note["weights"] == {"model.safetensors": sha256_of(source.folder / "model.safetensors")}
    assert (source.folder / "LICENSE").read_text() == "the licence"
    assert not (weights.home() / "downloads" / weights.DEFAULT).exists()


def test_digits_stand_alone_before_spaces_are_grouped(tiny: dict[str, np.ndarray[Any, Any]]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(weights.resolve("").folder)
    assert tokenizer.tokenize("\n\n7") == ["ĊĊ", "7"]
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert tokenizer.tokenize("\n\n7") == ["Ċ", "Ċ", "7"], "what the library alone makes of it"


def test_a_conversion_that_broke_off_leaves_nothing_that_looks_done(
    tiny: dict[str, np.ndarray[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(convert.AutoModelForCausalLM, "from_pretrained", full)
        with pytest.raises(Refusal, match="weights_not_prepared"):
            weights.prepare("")
    assert not weights.present("") and weights.fetched("")
    half = weights.folder("").with_name(f"{weights.DEFAULT}.part")
    half.mkdir(exist_ok=True)
    (half / "junk").write_text("of an earlier try")
    weights.prepare("")
    assert weights.present("") and not half.exists() and not (weights.folder("") / "junk").exists()


# Names


def test_names_that_lead_nowhere_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: None) -> None:
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    for name, code in {
        "": "weights_absent",
        "gemma-3-270m": "weights_absent",
        "no-such-model": "unknown_model",
        str(tmp_path): "unknown_model",
        "../elsewhere/x": "unknown_model",
        "somebody/something": "hub_unreachable",
    }.items():
        with pytest.raises(Refusal) as refused:
            weights.resolve(name)
        assert refused.value.code == code, name


def test_a_folder_is_named_by_what_is_in_it(tmp_path: Path, no_network: None) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "a.safetensors").write_bytes(b"a")
    one = weights.resolve(str(tmp_path))
    assert one.folder == tmp_path and one.sha256 == sha256_of(tmp_path / "a.safetensors")
    (tmp_path / "b.safetensors").write_bytes(b"b")
    assert weights.resolve(str(tmp_path)).sha256 != one.sha256


def test_the_hub_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def snapshot(name: str, allow_patterns: list[str]) -> str:
        asked.append(name)
        assert not any(fnmatch(file, pattern) for file in ("modeling.py", "model.bin") for pattern in allow_patterns)
        (tmp_path / "snapshot").mkdir()
        (tmp_path / "snapshot" / "config.json").write_text("{}")
        return str(tmp_path / "snapshot")

    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert weights.resolve("somebody/something") == weights.resolve("somebody/something")
    assert asked == ["somebody/something"]


# The bundled model


@pytest.fixture(scope="module")
def bundled() -> tuple[Any, Any]:
    weights.fetch("")
    weights.prepare("")
    folder = weights.resolve("").folder
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), tokenizer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Anna's cat is called Luna. Her dog is called Max. What is the name of Anna's cat?", "Luna"),
        ("Passage: The treasure is hidden under the old oak tree. Question: Where is the treasure hidden?", "oak tree"),
    ],
)
def test_the_bundled_model_answers(bundled: tuple[Any, Any], question: str, answer: str) -> None:
    network, tokenizer = bundled
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    written = network.generate(**asked, max_new_tokens=16, do_sample=False)[0, asked["input_ids"].shape[1] :]
    assert answer in tokenizer.decode(written)


@pytest.mark.slow
def test_the_bundled_models_marks_are_its_own(bundled: tuple[Any, Any]) -> None:
    network, tokenizer = bundled
    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert tokenizer.convert_tokens_to_ids(marks) == [0, 1, 2]
    assert set(marks) <= {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    assert network.generation_config.eos_token_id == tokenizer.eos_token_id == 2
    assert tokenizer("plain")["input_ids"] == tokenizer("plain", add_special_tokens=False)["input_ids"]
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert tokenizer.tokenize("\n\n12 cats") == ["ĊĊ", "1", "2", "Ġcats"]
