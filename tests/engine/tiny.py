"""Tiny random models of the kinds the tap honours, and a tiny byte-level tokenizer: built here, seeded, no files.

Weights are drawn wide enough that attention is far from even and the likeliest token far from its rival.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from engine.measure import clock
from engine.model import LanguageModel, wrap
from engine.run import Run, admit, complete, step
from engine.settings import Settings
from engine.trace import Event, Trace

VOCABULARY = 384
CONTEXT = 96
WINDOW = 8
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
}

CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "llama": lambda: LlamaConfig(**SIZES, num_key_value_heads=2),
    "gpt2": lambda: GPT2Config(**SIZES | {"intermediate_size": None}, n_inner=64),
    "qwen3": lambda: Qwen3Config(**SIZES, num_key_value_heads=1, head_dim=16),
    "gemma3": lambda: Gemma3TextConfig(
        **SIZES,
        num_key_value_heads=2,
        head_dim=16,
        query_pre_attn_scalar=24,
        sliding_window=WINDOW,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "neox": lambda: GPTNeoXConfig(**SIZES),
}
KINDS = tuple(CONFIGS)

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
PAPER = "Anna's cat is called Luna. Her dog is called Max. What is the name of Anna's cat? 猫叫什么名字？"


def network(kind: str, attention: str = "eager") -> PreTrainedModel:
    """A new one, with the same weights at every call: what the library itself makes of them."""
    return from_config(CONFIGS[kind](), attention)


def from_config(config: PreTrainedConfig, attention: str = "eager") -> PreTrainedModel:
    with torch.random.fork_rng():
        torch.manual_seed(11)
        made = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32)
    assert isinstance(made, PreTrainedModel)
    return made.eval()


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE with a few merges of `PAPER`, three control tokens and a chat template."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 100,
        special_tokens=list(CONTROL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=2,
        show_progress=False,
    )
    backend.train_from_iterator([PAPER] * 3, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=CONTROL[1], eos_token=CONTROL[2], chat_template=TEMPLATE
    )


@cache
def sentencepiece(scheme: str = "first") -> PreTrainedTokenizerFast:
    """What SentencePiece's tokenizers become: `▁` for spaces, bytes as `<0xE4>` where no piece fits, `<bos>` first."""
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    pieces += ["▁", *"abcdefghijklmnopqrstuvwxyzAL.,?!'", "▁c", "at", "▁cat", "▁▁", "今", "天"]
    merges = [("▁", "c"), ("a", "t"), ("▁c", "at"), ("▁", "▁")]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    backend = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        + ([decoders.Strip(" ", 1, 0)] if scheme != "never" else [])
    )
    backend.post_processor = processors.TemplateProcessing("<bos> $A", "<bos> $A <bos> $B", [("<bos>", 2)])
    backend.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in pieces[:4]])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", pad_token="<pad>"
    )


@cache
def model(kind: str) -> LanguageModel:
    return wrap(network(kind), tokenizer(), name=kind)


def raw(prompt: str = PAPER, **settings: Any) -> Settings:
    return Settings(**{"prompt": prompt, "mode": "raw", "max_new_tokens": 12} | settings)


def exam(kind: str, settings: Settings, id: str = "", **kwargs: Any) -> Run:
    """A run whose start was pressed just now."""
    return admit(id, settings, model(kind), clock.now(), **kwargs)


def sit(kind: str, settings: Settings, **kwargs: Any) -> Trace:
    return complete(exam(kind, settings, **kwargs))


def drive(runs: list[Run], events: dict[str, list[Event]] | None = None) -> dict[str, list[Event]]:
    """Turns for all of them together until every one is over: their events, by id."""
    told: dict[str, list[Event]] = {run.id: [] for run in runs} if events is None else events
    while any(not run.finished for run in runs):
        step(runs[0].model, [r for r in runs if not r.finished], lambda run, event: told[run.id].append(event))
    return told
