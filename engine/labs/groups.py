"""Shared notes: ordinary, grouped (Ainslie et al. 2023), multi-query (Shazeer 2019), latent (DeepSeek-V2 2024).

What the cache of this very model takes and would take; and the engine's decode step with each KV head read once for the
query heads that share it, against K and V repeated for every query head first, as the library's `repeat_kv` does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.labs.base import Lab, Results, give_way, spread
from engine.labs.papers import example
from engine.settings import Settings

if TYPE_CHECKING:
    from engine.model import LanguageModel
    from engine.trace import Facts

CONTEXTS = (256, 1024, 2048, 4096, 8000)
"""Positions a decode step sees."""
PROMPT = 256
"""Tokens of the prompt of the two answers that are compared."""
HELD = 1024
"""Positions of the caches that are really allocated."""
SIDES = ("grouped", "repeated")
STEPS = 15
"""Decode steps of each side at one context."""


class Groups(Lab):
    name = "groups"
    stage = "decode"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        """The first piece tells already what follows from the model's sizes: `variants`, computed."""
        most = model.facts.context
        return [
            {"piece": "cache", "kind": "cache", "variants": variants(model.facts)},
            *({"piece": f"decode/{n}", "kind": "decode", "n": n} for n in CONTEXTS if n < most),
            {"piece": "ids", "kind": "ids", "n": min(PROMPT, most // 2)},
        ]

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """`cache`: `{"positions", "allocated": bytes of a real cache, by variant; the latent's is not built here}`.
        `decode`: `{"n", "grouped", "repeated": spreads of a step's forward pass}`. `ids`: `{"n", "words", "same"}`."""
        if piece["kind"] == "cache":
            return _allocated(model, piece["variants"])
        return _decode(model, piece["n"]) if piece["kind"] == "decode" else _ids(model, piece["n"])

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"cache": as measured or None, "decode": [{"n", "grouped", "repeated", "time": how many times as fast}],
        "ids", "gained"}`."""
        steps = [dict(one) for name, one in results.items() if name.startswith("decode/")]
        decode = sorted(steps, key=lambda one: one["n"])
        for one in decode:
            one["time"] = one["repeated"]["middle"] / one["grouped"]["middle"]
        cache = results.get("cache")
        gained = None
        if cache and decode and decode[-1]["n"] >= 1024:
            bytes_of = cache["allocated"]
            gained = {"bytes": bytes_of["ordinary"] / bytes_of["own"], "n": decode[-1]["n"], "time": decode[-1]["time"]}
        return {"cache": cache, "decode": decode, "ids": results.get("ids"), "gained": gained}

    def runs(self) -> dict[str, Settings]:
        paper = example("long-paper")
        return {"repeated": replace(paper, grouped=False), "grouped": paper}


LAB = Groups()


def variants(facts: Facts) -> list[dict[str, Any]]:
    """The model's own cache and those it would have: `{"name", "kv_heads", "values": of one position in one layer,
    "per_token": bytes in all layers}`, by `engine.plan.memory`.

    `latent` is as DeepSeek-V2 chose it: 4 head sizes for the compressed K and V, and half a head size for the rotated
    key that all heads share.
    """
    from engine.plan.architecture import Layer
    from engine.plan.formats import cache_format
    from engine.plan.memory import position_bytes

    form = cache_format({4: "float32", 2: facts.dtype}.get(facts.value_bytes, facts.dtype))
    size = facts.head_size
    told = []
    for name, kv_heads, latent in (
        ("ordinary", facts.heads, 0), ("own", facts.kv_heads, 0), ("multi", 1, 0), ("latent", 0, 4 * size + size // 2),
    ):  # fmt: skip
        layer = Layer("full", facts.heads, kv_heads, size, size, latent=latent)
        per_token = facts.layers * position_bytes(layer, form)
        values = latent or layer.kv_values
        told.append({"name": name, "kv_heads": kv_heads, "values": values, "per_token": per_token})
    return told


def _allocated(model: LanguageModel, told: list[dict[str, Any]]) -> dict[str, Any]:
    """Real caches of these shapes, made and thrown away: what their tensors take."""
    from engine.cache import RunCache

    positions = min(HELD, model.facts.context)
    allocated = {
        one["name"]: RunCache(replace(model.shape, kv_heads=one["kv_heads"]), positions).allocated
        for one in told if one["kv_heads"]
    }  # fmt: skip
    return {"positions": positions, "allocated": allocated}


def _decode(model: LanguageModel, n: int) -> dict[str, Any]:
    """One decode step on notes of n positions. Their values are random: they do not change how long a step takes."""
    import torch

    from engine.cache import RunCache
    from engine.labs.timing import alternate
    from engine.model.tap import Pass, Way

    cache = RunCache(model.shape, n + 1)
    chance = torch.Generator().manual_seed(n)
    cache.notes(slice(None), 0, n).copy_(torch.randn((model.shape.head_size,), generator=chance))
    cache.length = n

    def step(grouped: bool) -> float:
        one = Pass([cache], 1, ways=[Way(grouped=grouped)])
        model.forward([[0]], one)
        one.marks.mark()
        return float(sum(one.marks.seconds()))

    sides = {"grouped": lambda: step(True), "repeated": lambda: step(False)}
    taken = alternate(sides, model.shape.device, rounds=STEPS, seconds=2)
    return {"n": n, **{side: spread(taken[side]) for side in SIDES}}


def _ids(model: LanguageModel, n: int) -> dict[str, Any]:
    """The same paper answered both ways: whether all words are the same."""
    from engine.labs.papers import of_length
    from engine.labs.timing import sit

    paper = replace(of_length(model, n), max_new_tokens=16)
    answers = []
    for grouped in (True, False):
        give_way()
        _, trace = sit(model, replace(paper, grouped=grouped))
        answers.append([chose.token.id for chose in trace.chosen])
    return {"n": n, "words": len(answers[0]), "same": answers[0] == answers[1]}
