"""Activations: the formula beside what the library's own tensors hold while it reads."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import Gemma3TextConfig, GPTNeoXConfig, LlamaConfig, PreTrainedConfig, Qwen3Config

from engine.plan import memory
from engine.plan.formats import FLOAT32
from engine.plan.read import read
from tests.engine import tiny

SIZES: dict[str, Any] = {
    "vocab_size": 500,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 1024,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "llama": lambda: LlamaConfig(**SIZES, num_key_value_heads=2),
    "many heads": lambda: LlamaConfig(
        **SIZES | {"num_attention_heads": 16, "intermediate_size": 64}, head_dim=64, num_key_value_heads=16
    ),
    "neox": lambda: GPTNeoXConfig(**SIZES),
    "qwen3": lambda: Qwen3Config(**SIZES, num_key_value_heads=1, head_dim=32),
    "gemma3": lambda: Gemma3TextConfig(**SIZES, num_key_value_heads=1, head_dim=64, sliding_window=64),
}
TOKENS = 512


class Watch(TorchDispatchMode):
    """Bytes of all tensors that are alive, those of the model left out, and their peak."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        kept = [*network.parameters(), *network.buffers()]
        self._known = {tensor.untyped_storage()._cdata for tensor in kept}
        self.now = self.peak = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self._see(tensor.untyped_storage())
        self.peak = max(self.peak, self.now)
        return made

    def _see(self, storage: torch.UntypedStorage) -> None:
        key, count = storage._cdata, storage.nbytes()
        if key not in self._known:
            self._known.add(key)
            self.now += count
            weakref.finalize(storage, self._gone, key, count)

    def _gone(self, key: int, count: int) -> None:
        self._known.discard(key)
        self.now -= count


def watched(kind: str, attention: str, **kept: int) -> int:
    network = tiny.from_config(CONFIGS[kind](), attention)
    watch = Watch(network)
    with torch.inference_mode(), watch:
        network(input_ids=torch.arange(TOKENS)[None] % 500, use_cache=True, **kept)
    return watch.peak


@pytest.mark.parametrize("kind", CONFIGS)
def test_with_a_fused_kernel_the_library_holds_little_more(kind: str) -> None:
    made = read(CONFIGS[kind]().to_dict())
    held = watched(kind, "sdpa", logits_to_keep=1) - memory.kv_bytes_upper(made, TOKENS, 1, FLOAT32)
    assert 0.97 < held / memory.activations(made, TOKENS, 1, FLOAT32).total < 1.3


@pytest.mark.parametrize("kind", CONFIGS)
def test_without_one_it_holds_the_matrix_of_weights_too(kind: str) -> None:
    made = read(CONFIGS[kind]().to_dict())
    held = watched(kind, "eager") - memory.kv_bytes_upper(made, TOKENS, 1, FLOAT32)
    live = memory.activations(made, TOKENS, 1, FLOAT32)
    assert live.upper > 2 * live.total
    assert 0.8 < held / live.upper < 1.25
