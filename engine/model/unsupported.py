"""Why a model is not run here: the feature of its attention, or of its file, that is not supported, by its name.

What the library's code said when it was asked for what it cannot do is the refusal's cause and no sentence for a
person. All of them carry `model` and `architecture`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from transformers import AutoModelForMaskedLM

from engine.settings import Refusal

RECURRENT = ("mamba", "linear_attention", "recurrent", "conv", "rwkv", "mlstm", "slstm")
"""Beginnings of what configs call layers that carry a state along instead of notes."""
_NAMED = {"s_aux": "tap_sinks", "softcap": "tap_softcap"}
"""What models pass to their attention, and the feature it belongs to."""
_SHOWN = 3
"""Tensors that are named of those that are missing."""


def architecture(config: Any) -> str:
    """The name of the class it was made for, else of its kind."""
    names = getattr(config, "architectures", None) or [config.model_type]
    return str(names[0])


def attention(name: str, network: Any, passed: Collection[str] = (), called: bool = True) -> Refusal:
    """Why the probe of `network` failed. `passed`: what was passed to its attention and is not known here;
    `called`: whether every layer came to ours."""
    config = network.config.get_text_config()
    kind = architecture(network.config)
    named = sorted(_NAMED[each] for each in passed if each in _NAMED)
    if feature := named[0] if named else _of_config(config) or _of_class(network):
        return Refusal(feature, model=name, architecture=kind)
    if called:
        return Refusal("tap_unsupported", model=name, architecture=kind, what=", ".join(sorted(passed)) or kind)
    return Refusal("tap_no_interface", model=name, architecture=kind)


def _of_class(network: Any) -> str:
    return "tap_recurrent" if getattr(network, "_is_stateful", False) else ""


def _of_config(config: Any) -> str:
    """The feature that a config names."""
    inner = getattr(config, "attn_config", None)
    if config.model_type == "bloom" or getattr(config, "alibi", False) or getattr(inner, "alibi", False):
        return "tap_alibi"
    if getattr(config, "kv_lora_rank", None):
        return "tap_latent"
    kinds: Sequence[object] = getattr(config, "layer_types", None) or ()
    if any(str(kind).startswith(RECURRENT) for kind in kinds):
        return "tap_recurrent"
    return "tap_both_ways" if both_ways(config) else ""


def both_ways(config: Any) -> bool:
    """Whether tokens also look at what comes after them: such a model fills gaps, it does not go on with a text."""
    fills_gaps = type(config) in AutoModelForMaskedLM._model_mapping and not getattr(config, "is_decoder", False)
    return fills_gaps or bool(getattr(config, "use_bidirectional_attention", False))


def check_kind(name: str, config: Any, writes: bool) -> None:
    """Before anything is loaded: raises `Refusal` for a model that does not write a text word by word. `writes`:
    whether the library has a class of its kind that does."""
    kind = architecture(config)
    if getattr(config, "is_encoder_decoder", False):
        raise Refusal("model_encoder_decoder", model=name, architecture=kind)
    if both_ways(config.get_text_config()):
        raise Refusal("tap_both_ways", model=name, architecture=kind)
    if not writes:
        raise Refusal("model_writes_nothing", model=name, architecture=kind)


def check_weights(name: str, config: Any, told: dict[str, Any]) -> None:
    """Raises `Refusal` unless the files held every tensor in its shape: the library would draw the others at random.
    `told` is what the library tells of loading."""
    kind = architecture(config)
    if missing := sorted(told["missing_keys"]):
        names = ", ".join(missing[:_SHOWN]) + (" …" if len(missing) > _SHOWN else "")
        raise Refusal("weights_incomplete", model=name, architecture=kind, count=len(missing), names=names)
    if wrong := sorted(told["mismatched_keys"]):
        tensor, found, expected = wrong[0]
        raise Refusal(
            "weights_wrong_shape", model=name, architecture=kind, tensor=tensor, found=_shape(found),
            expected=_shape(expected),
        )  # fmt: skip


def _shape(sizes: Sequence[int]) -> str:
    return " × ".join(str(size) for size in sizes)
