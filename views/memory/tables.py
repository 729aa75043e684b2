"""The page's tables, as data frames: they can be sorted and downloaded."""

from __future__ import annotations

from functools import cache, lru_cache

import pandas as pd

from engine.plan import Plan, largest_context, memory, terms
from engine.plan.architecture import Architecture
from engine.plan.configs import configs, kept
from engine.plan.formats import Format, readable
from engine.plan.read import read
from engine.words import Lang, say


def parts(made: Plan, lang: Lang) -> pd.DataFrame:
    """What takes memory: readable, exact, and where implementations differ, at most."""
    rows = [
        ("weights", made.weights_bytes, made.weights_bytes),
        ("kv", made.kv_bytes, made.kv_bytes_upper),
        ("activation", made.activation_bytes, made.activation_bytes_upper),
        ("overhead", made.overhead_bytes, made.overhead_bytes),
        ("total", made.total_bytes, made.total_bytes_upper),
    ]
    return pd.DataFrame(
        [(say(f"memory.{part}", lang), readable(count), count, most) for part, count, most in rows],
        columns=[say(f"memory.column_{name}", lang) for name in ("part", "size", "bytes", "upper")],
    )


def formulas(made: Plan, part: str, lang: Lang) -> list[str]:
    """The formulas of a figure, their numbers in them, with what each comes to."""
    return [
        f"{say(f'memory.formula_{term.key}', lang, **{name: f'{value:,}' for name, value in term.values.items()})}"
        f" = {term.bytes:,}"
        for term in terms(made)
        if term.part == part
    ]


def saving(architecture: Architecture) -> float | None:
    """The share of the KV cache that attention layers save against ordinary attention (as many KV heads as heads):
    1 - KV heads ÷ heads for grouped attention. None where no layer attends."""
    layers = [layer for layer in architecture.layers if layer.heads]
    ordinary = sum(layer.heads * (layer.head_size + layer.value_size) for layer in layers)
    return 1 - sum(layer.latent or layer.kv_values for layer in layers) / ordinary if ordinary else None


def attention(architecture: Architecture) -> str:
    """`ordinary`, `grouped`, `multi_query` or `latent`: how its attention layers keep K and V."""
    first = architecture.first
    if first.latent:
        return "latent"
    if first.kv_heads == first.heads:
        return "ordinary"
    return "multi_query" if first.kv_heads == 1 else "grouped"


@cache
def _known() -> dict[str, Architecture]:
    return {name: read(kept(name)) for name in configs()}


@lru_cache(maxsize=64)
def models(context: int, weights: Format, kv: Format, room: int, lang: Lang) -> pd.DataFrame:
    """All kept models: sizes, their cache at this context (at their own where that is less), and the longest context
    that fits in `room` bytes."""
    rows = []
    for name, made in _known().items():
        length = min(context, made.context or context)
        first = made.first
        rows.append({
            "name": configs()[name].title,
            "parameters": made.parameters,
            "active": made.active_parameters,
            "layers": len(made.layers),
            "heads": first.heads,
            "kv_heads": first.kv_heads,
            "attention": say(f"memory.attention_{attention(made)}", lang),
            "kinds": " · ".join(f"{count} {say(f'memory.kind_{kind}', lang)}" for kind, count in made.kinds.items()),
            "saving": None if (saved := saving(made)) is None else 100 * saved,
            "per_token": memory.kv_bytes_per_token(made, kv),
            "length": length,
            "kv_gib": memory.kv_bytes(made, length, 1, kv) / 1024**3,
            "weights_gib": memory.weights(made, weights).total / 1024**3,
            "longest": largest_context(made, 1, weights, kv, room),
            "source": f"{configs()[name].source} ({configs()[name].version[:12]})",
        })  # fmt: skip
    return pd.DataFrame(rows)


def savings() -> pd.DataFrame:
    """What each kept model's cache saves against ordinary attention, in percent."""
    found = ((configs()[name].title, saving(made)) for name, made in _known().items())
    return pd.DataFrame(
        [(title, 100 * saved) for title, saved in found if saved is not None], columns=["name", "saving"]
    )
