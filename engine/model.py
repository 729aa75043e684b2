"""Loading: a folder of weights becomes a `LanguageModel`, or a refusal that names what our tap does not honour.

A short probe runs at load with the library's own eager attention and again with ours; they must agree, and the
attention calls of the probe tell layers, windows and anything unknown. After load nothing about a run is ever
stored on the model object.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from engine import tap
from engine.cache import RunCache, Shape
from engine.settings import Refusal
from engine.text import Text
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
        device = self.shape.device
        starts = torch.tensor([[cache.length] for cache in one.caches], device=device)
        positions = starts + torch.arange(one.tokens, device=device)
        output = self.network(
            input_ids=torch.tensor(ids, device=device),
            position_ids=positions,
            cache=one,
            tape=one,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1].float()


def load(
    folder: Path,
    *,
    name: str = "",
    weights_sha256: str = "",
    device: str = "",
    dtype: str = "",
    progress: Progress = lambda fraction, what: None,
) -> LanguageModel:
    """Load from a local folder. Raises `Refusal` (`unknown_device`, `unknown_dtype`, `model_not_loaded`, `tap_…`)."""
    target = choose_device(device)
    precision, reason = choose_dtype(dtype, target)
    progress(0.1, "load")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        network = AutoModelForCausalLM.from_pretrained(
            folder, dtype=precision, attn_implementation="eager", trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise Refusal("model_not_loaded", model=name or folder.name, why=_first_line(error)) from error
    progress(0.6, "load")
    network = network.to(target).eval()
    model = wrap(network, tokenizer, name=name or folder.name, weights_sha256=weights_sha256, dtype_reason=reason)
    progress(1.0, "load")
    return model


def wrap(
    network: PreTrainedModel, tokenizer: Any, *, name: str, weights_sha256: str = "", dtype_reason: str = "asked"
) -> LanguageModel:
    """A network and its tokenizer as a `LanguageModel`, after the probe. Sets the attention function, once."""
    config = network.config.get_text_config()
    shape = _shape(config, network.dtype, network.device)
    windows, scaling = probe(network, shape, name)
    shape = Shape(
        shape.layers, shape.heads, shape.kv_heads, shape.head_size, tuple(windows), shape.dtype, shape.device
    )
    text = Text(tokenizer)
    facts = _facts(network, config, shape, name, weights_sha256, dtype_reason)
    return LanguageModel(network, text, facts, shape, tuple(scaling), _end_ids(network, tokenizer))


def choose_device(asked: str) -> torch.device:
    """CUDA, then MPS, then CPU, unless one is asked for. Raises `Refusal("unknown_device")`."""
    if asked:
        try:
            device = torch.device(asked)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError) as error:
            raise Refusal("unknown_device", device=asked) from error
        return device
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def choose_dtype(asked: str, device: torch.device) -> tuple[torch.dtype, str]:
    """The dtype and why. On a CPU bf16 may be several times faster or slower than fp32: measured here, briefly.

    Raises `Refusal("unknown_dtype")`.
    """
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    short = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    if asked:
        if short.get(asked, asked) not in known:
            raise Refusal("unknown_dtype", dtype=asked)
        return known[short.get(asked, asked)], "asked"
    if device.type != "cpu":
        return torch.bfloat16, "default"
    seconds = {dtype: _matmul_seconds(dtype) for dtype in (torch.float32, torch.bfloat16)}
    return min(seconds, key=lambda dtype: seconds[dtype]), "measured_faster"


def _matmul_seconds(dtype: torch.dtype) -> float:
    """Best of several short products of the two kinds that matter: one row (decode) and many (prefill)."""
    weight = torch.ones((1536, 576), dtype=dtype)
    total = 0.0
    for rows in (1, 64):
        activations = torch.ones((rows, 576), dtype=dtype)
        best = float("inf")
        for _ in range(8):
            start = time.perf_counter()
            torch.nn.functional.linear(activations, weight)
            best = min(best, time.perf_counter() - start)
        total += best
    return total


def _shape(config: Any, dtype: torch.dtype, device: torch.device) -> Shape:
    heads = int(config.num_attention_heads)
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    layers = int(config.num_hidden_layers)
    return Shape(layers, heads, int(kv_heads), int(size), (0,) * layers, dtype, device)


@torch.inference_mode()
def probe(network: PreTrainedModel, shape: Shape, name: str) -> tuple[list[int], list[float]]:
    """Run nine tokens with the library's eager attention and with ours. Returns each layer's window and scaling.

    Raises `Refusal`: `tap_unsupported` with the name of what is not honoured, when the model does not go through the
    attention interface in every layer, passes something unknown to it, or gives other logits with ours.
    """
    ids = (torch.arange(9, device=shape.device) * 7 + 3)[None] % int(network.config.get_text_config().vocab_size)
    try:
        network.set_attn_implementation("eager")
        expected = network(input_ids=ids, use_cache=False).logits[0, -1].float()
        network.set_attn_implementation(tap.NAME)
        one = tap.Pass([RunCache(shape, 9)], 9, probing=True)
        positions = torch.arange(9, device=shape.device)[None]
        output = network(input_ids=ids, position_ids=positions, cache=one, tape=one, use_cache=True)
    except (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError, IndexError) as error:
        raise Refusal("tap_unsupported", model=name, what=_first_line(error)) from error
    calls = one.calls or []
    unknown = sorted({key for call in calls for key in call.unknown})
    if unknown:
        raise Refusal("tap_unsupported", model=name, what=", ".join(unknown))
    if len(calls) != shape.layers:
        raise Refusal("tap_unsupported", model=name, what=f"{len(calls)}/{shape.layers} attention layers")
    actual = output.logits[0, -1].float()
    difference = float((actual - expected).norm() / expected.norm().clamp_min(1e-9))
    if not difference < (1e-3 if shape.dtype == torch.float32 else 6e-2):
        raise Refusal("tap_unsupported", model=name, what=f"logits differ by {difference:.2g}")
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
        context=int(getattr(config, "max_position_embeddings", 0) or 2048),
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
            ("torch", torch.__version__),
            ("transformers", transformers.__version__),
        ),
    )


def device_name(device: torch.device) -> str:
    """What a person calls the device."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _end_ids(network: Any, tokenizer: Any) -> frozenset[int]:
    listed = getattr(network.generation_config, "eos_token_id", None)
    ids = set(listed if isinstance(listed, list) else [listed]) | {tokenizer.eos_token_id}
    return frozenset(int(index) for index in ids if index is not None)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
