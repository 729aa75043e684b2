"""Loading: a folder of weights becomes a `LanguageModel`, or a refusal that names what our tap does not honour.

A short probe runs at load with the library's own eager attention and again with ours; they must agree, and the
attention calls of the probe tell layers, windows and anything unknown. After load nothing about a run is ever
stored on the model object.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from engine.cache import RunCache, Shape
from engine.model import fuse, tap, unsupported
from engine.model.device import choose_device, choose_dtype, device_name
from engine.model.text import Text
from engine.settings import Refusal
from engine.trace import Facts

Progress = Callable[[float, str], None]

transformers.logging.disable_progress_bar()


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A model that is ready: shared by all runs, changed by none."""

    network: PreTrainedModel
    text: Text
    facts: Facts
    shape: Shape
    scaling: tuple[float, ...]
    """Each layer's factor before the softmax."""
    end_ids: frozenset[int]
    """Tokens that end an answer."""

    @torch.inference_mode()
    def forward(self, ids: list[list[int]], one: tap.Pass) -> Tensor:
        """One pass over `ids` (runs × tokens), run i's first token at its cache's length: fp32 logits of the last
        token, `(runs, vocabulary)`."""
        return self._logits(ids, one, 1)[:, -1].float()

    @torch.inference_mode()
    def forward_all(self, ids: list[list[int]], one: tap.Pass) -> Tensor:
        """As `forward`, but the logits of every token: `(runs, tokens, vocabulary)`."""
        return self._logits(ids, one, one.tokens).float()

    def _logits(self, ids: list[list[int]], one: tap.Pass, last: int) -> Tensor:
        device = self.shape.device
        starts = torch.tensor([[cache.length] for cache in one.caches], device=device)
        positions = starts + torch.arange(one.tokens, device=device)
        with fuse.apart(not one.fused):
            output = self.network(
                input_ids=torch.tensor(ids, device=device),
                position_ids=positions,
                cache=one,
                tape=one,
                use_cache=True,
                logits_to_keep=last,
            )
        logits: Tensor = output.logits
        return logits


def load(
    folder: Path,
    *,
    name: str = "",
    weights_sha256: str = "",
    device: str = "",
    dtype: str = "",
    progress: Progress = lambda fraction, what: None,
) -> LanguageModel:
    """Load from a local folder. Raises `Refusal` (`unknown_device`, `unknown_dtype`, `model_not_loaded`, and those of
    `engine.model.unsupported`)."""
    title = name or folder.name
    target = choose_device(device)
    precision, reason = choose_dtype(dtype, target)
    progress(0.1, "load")
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        unsupported.check_kind(title, config, writes=type(config) in AutoModelForCausalLM._model_mapping)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=precision, attn_implementation="eager", trust_remote_code=False, local_files_only=True,
            ignore_mismatched_sizes=True, output_loading_info=True,
        )  # fmt: skip
        network, told = loaded
        unsupported.check_weights(title, config, told)
        progress(0.6, "load")
        network = network.to(target).eval()
    except Refusal:
        raise
    except Exception as error:  # a folder from anywhere: whatever is wrong with it, its name and a reason are told
        raise Refusal("model_not_loaded", model=title, why=_first_line(error)) from error
    model = wrap(network, tokenizer, name=title, weights_sha256=weights_sha256, dtype_reason=reason)
    progress(1.0, "load")
    return model


def wrap(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    name: str,
    weights_sha256: str = "",
    dtype_reason: str = "asked",
) -> LanguageModel:
    """A network and its tokenizer as a `LanguageModel`, after the probe. Sets the attention function, once."""
    config = network.config.get_text_config()
    if unsupported.both_ways(config):
        raise unsupported.attention(name, network)
    shape = _shape(network, config, name)
    windows, scaling = probe(network, shape, name)
    _check_windows(config, windows, name)
    shape = replace(shape, windows=tuple(windows))
    text = Text(tokenizer)
    facts = _facts(network, config, shape, name, weights_sha256, dtype_reason)
    return LanguageModel(network, text, facts, shape, tuple(scaling), _end_ids(network, tokenizer))


def _shape(network: PreTrainedModel, config: Any, name: str) -> Shape:
    """What a cache must know, windows aside. Raises a refusal of `unsupported.attention` where nothing can be kept."""
    try:
        heads = int(config.num_attention_heads)
        size = getattr(config, "head_dim", None) or config.hidden_size // heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        layers = int(config.num_hidden_layers)
    except Exception as error:  # no attention, or layers of different sizes: configs say so in many ways
        raise unsupported.attention(name, network) from error
    return Shape(layers, heads, int(kv_heads), int(size), (0,) * layers, network.dtype, network.device)


def _check_windows(config: Any, windows: list[int], name: str) -> None:
    """Raises `Refusal("tap_unsupported")` where the config speaks of layers of a kind that the attention calls did
    not tell: the library would make a mask for them (Llama 4's chunks) that a short probe cannot miss."""
    kinds = getattr(config, "layer_types", None) or [
        "sliding_attention" if window else "full_attention" for window in windows
    ]
    for kind, window in zip(kinds, windows, strict=True):
        expected = {"full_attention": 0, "sliding_attention": getattr(config, "sliding_window", None)}
        if expected.get(kind, -1) != window:
            raise Refusal("tap_unsupported", model=name, architecture=unsupported.architecture(config), what=kind)


@torch.inference_mode()
def probe(network: PreTrainedModel, shape: Shape, name: str) -> tuple[list[int], list[float]]:
    """Run nine tokens with the library's eager attention and with ours. Returns each layer's window and scaling.

    In between the network is arranged (`engine.model.fuse`), so what that changed is compared as well.

    Raises a refusal of `unsupported.attention` when the model does not go through the attention interface in every
    layer or passes something unknown to it, `tap_differs` when it gives other logits with ours.
    """
    ids = (torch.arange(9, device=shape.device) * 7 + 3)[None] % int(network.config.get_text_config().vocab_size)
    try:
        network.set_attn_implementation("eager")
        with fuse.watched(network) as siblings:
            expected = network(input_ids=ids, use_cache=False).logits[0, -1].float()
        fuse.arrange(network, siblings)
        network.set_attn_implementation(tap.NAME)
        one = tap.Pass([RunCache(shape, 9)], 9, probing=True)
        positions = torch.arange(9, device=shape.device)[None]
        output = network(input_ids=ids, position_ids=positions, cache=one, tape=one, use_cache=True)
    except Exception as error:  # whatever a model's own code makes of what it was not written for
        raise unsupported.attention(name, network, called=False) from error
    calls = one.calls or []
    unknown = {key for call in calls for key in call.unknown}
    if unknown or len(calls) != shape.layers:
        raise unsupported.attention(name, network, unknown, called=len(calls) == shape.layers)
    actual = output.logits[0, -1].float()
    difference = float((actual - expected).norm() / expected.norm().clamp_min(1e-9))
    if not difference < (1e-3 if shape.dtype == torch.float32 else 6e-2):
        kind = unsupported.architecture(network.config)
        raise Refusal("tap_differs", model=name, architecture=kind, difference=f"{difference:.2g}")
    return [call.window for call in calls], [call.scaling for call in calls]


def _facts(network: Any, config: Any, shape: Shape, name: str, sha256: str, reason: str) -> Facts:
    tensors = {tensor.data_ptr(): tensor for tensor in [*network.parameters(), *network.buffers()]}
    parameters = {tensor.data_ptr(): tensor for tensor in network.parameters()}
    windows = set(shape.windows) - {0}
    return Facts(
        model=name,
        weights_sha256=sha256,
        layers=shape.layers,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_size=shape.head_size,
        hidden_size=int(config.hidden_size),
        vocabulary=int(config.vocab_size),
        context=_context(config),
        layer_kinds=tuple("sliding" if window else "full" for window in shape.windows),
        window=max(windows, default=0),
        parameters=sum(tensor.numel() for tensor in parameters.values()),
        weight_bytes=sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()),
        value_bytes=shape.dtype.itemsize,
        dtype=str(shape.dtype).removeprefix("torch."),
        dtype_reason=reason,
        device=str(shape.device),
        device_name=device_name(shape.device),
        threads=torch.get_num_threads(),
        versions=(
            ("python", platform.python_version()),
            ("torch", str(torch.__version__)),
            ("transformers", str(transformers.__version__)),
        ),
    )


def _context(config: Any) -> int:
    """Most positions. LongRoPE turns all its frequencies, on the model object, as soon as one run passes the length
    of its first training: that is the bound here, so that runs cannot change each other."""
    most = int(getattr(config, "max_position_embeddings", 0) or 2048)
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        most = min(most, int(rope["original_max_position_embeddings"]))
    return most


def _end_ids(network: Any, tokenizer: Any) -> frozenset[int]:
    listed = getattr(network.generation_config, "eos_token_id", None)
    ids = set(listed if isinstance(listed, list) else [listed]) | {tokenizer.eos_token_id}
    return frozenset(int(index) for index in ids if index is not None)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
