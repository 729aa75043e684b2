"""`python -m engine plan --model NAME|config.json`: will it fit? Weights, KV cache and activations, without a model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from engine.plan import MOST_BATCH, MOST_CONTEXT, Plan, Term, differs, plan, terms
from engine.plan.architecture import Architecture
from engine.plan.configs import configs, from_disk, kept
from engine.plan.formats import BFLOAT16, CACHES, SHORT, WEIGHTS, cache_format, readable, weight_format
from engine.plan.read import read
from engine.settings import Refusal
from engine.weights.catalogue import DEFAULT
from engine.words import say

_MIB = 1024**2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, how much of it, in which numbers."""
    parser.add_argument("--model", default=DEFAULT, metavar="NAME|FILE|FOLDER", help=say("command.plan.model"))
    parser.add_argument("--context", default="", metavar="N", help=say("command.plan.context"))
    parser.add_argument("--batch", default="1", metavar="N", help=say("command.plan.batch"))
    parser.add_argument("--dtype", default="", help=say("command.plan.dtype", known=", ".join(WEIGHTS)))
    parser.add_argument("--kv-dtype", default="", help=say("command.plan.kv_dtype", known=", ".join(CACHES)))
    parser.add_argument("--overhead", default="0", metavar="MIB", help=say("command.plan.overhead"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))


def run(options: argparse.Namespace) -> int:
    """Raises `Refusal`: for a config that is not understood, and numbers that are none or out of range."""
    architecture = read(_config(options.model))
    usual = architecture.dtype if SHORT.get(architecture.dtype, architecture.dtype) in WEIGHTS else BFLOAT16.name
    weights = weight_format(options.dtype or usual)
    kv = cache_format(options.kv_dtype or (weights.name if weights.bits >= 16 else BFLOAT16.name))
    context = _whole("--context", options.context or str(min(4096, architecture.context or 4096)), 1, MOST_CONTEXT)
    batch = _whole("--batch", options.batch, 1, MOST_BATCH)
    overhead = _whole("--overhead", options.overhead, 0, 1024**3) * _MIB
    made = plan(architecture, context, batch, weights, kv, overhead)
    shown = to_plain(made, options.model, options.lang)
    print(json.dumps(shown, ensure_ascii=False, indent=2) if options.json else _readable(made, options.lang))
    return 0


def _config(model: str) -> dict[str, Any]:
    """A kept config by its name, or one from a file or a folder."""
    if model in configs():
        return kept(model)
    try:
        there = Path(model).exists()
    except (OSError, ValueError):  # a name no file can have
        there = False
    if not there:
        raise Refusal("unknown_config", known=", ".join(configs()))
    try:
        return from_disk(Path(model))
    except Refusal as refusal:
        if refusal.code != "config_unreadable":
            raise
        file = Path(model) / "config.json" if Path(model).is_dir() else Path(model)
        raise Refusal("no_config", file=str(file), known=", ".join(configs())) from None


def _whole(field: str, given: str, least: int, most: int) -> int:
    try:
        value = int(given)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise Refusal("out_of_range", field=field, least=least, most=most)
    return value


def to_plain(made: Plan, model: str, lang: str) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "weights_bytes": made.weights_bytes,
        "kv_bytes": made.kv_bytes,
        "kv_bytes_per_token": made.kv_bytes_per_token,
        "kv_bytes_upper": made.kv_bytes_upper,
        "activation_bytes": made.activation_bytes,
        "activation_bytes_upper": made.activation_bytes_upper,
        "overhead_bytes": made.overhead_bytes,
        "total_bytes": made.total_bytes,
        "total_bytes_upper": made.total_bytes_upper,
        "facts": {"model": model, **facts(made.architecture), "batch": made.batch, "context": made.context,
                  "dtype": made.weights.name, "kv_dtype": made.kv.name},
        "formulas": {part: " + ".join(spelt(term, lang) for term in terms(made) if term.part == part)
                     for part in ("weights", "kv", "activation")},
        "differs": list(differs(made)),
    }  # fmt: skip


def facts(architecture: Architecture) -> dict[str, Any]:
    """The sizes every figure follows from."""
    first = architecture.first
    most = max(architecture.layers, key=lambda layer: layer.experts)
    return {
        "family": architecture.family,
        "parameters": architecture.parameters,
        "active_parameters": architecture.active_parameters,
        "layers": len(architecture.layers),
        "layer_kinds": architecture.kinds,
        "heads": first.heads,
        "kv_heads": first.kv_heads,
        "head_size": first.head_size,
        "value_size": first.value_size,
        "latent": first.latent,
        "window": architecture.window,
        "hidden": architecture.hidden,
        "intermediate": architecture.intermediate,
        "vocabulary": architecture.vocabulary,
        "tied": architecture.tied,
        "experts": most.experts,
        "experts_active": most.experts_active,
        "experts_shared": most.experts_shared,
        "model_context": architecture.context,
        "assumed": list(architecture.assumed),
    }


def spelt(term: Term, lang: str) -> str:
    """A formula in words, its numbers in it."""
    return say(f"memory.formula_{term.key}", lang, **{name: f"{value:,}" for name, value in term.values.items()})


def _readable(made: Plan, lang: str) -> str:
    figures = [("weights", made.weights_bytes), ("kv", made.kv_bytes), ("activation", made.activation_bytes),
               ("overhead", made.overhead_bytes), ("total", made.total_bytes)]  # fmt: skip
    lines = [f"{say(f'memory.{name}', lang)}: {readable(count)} ({count:,} B)" for name, count in figures]
    lines += ["", *(f"{spelt(term, lang)} = {term.bytes:,} B" for term in terms(made))]
    if made.kv_bytes_upper != made.kv_bytes:
        reasons = "; ".join(say(f"memory.differs_{reason}", lang) for reason in differs(made))
        lines += ["", say("memory.upper", lang, size=readable(made.kv_bytes_upper), reasons=reasons)]
    if made.architecture.assumed:
        lines += ["", say("memory.assumed", lang, fields=", ".join(made.architecture.assumed))]
    return "\n".join(lines)
