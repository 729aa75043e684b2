"""Operator fusion: one layer's norm and MLP as separate operations, as the engine joins them, and compiled.

The model's own weights and its own hidden states on a paper. Operations are counted by torch's profiler; bytes follow
from the tensors each one reads and writes (`engine.labs.traffic`); times are taken in turns. And the engine's whole
pass with and without its joined linears and one-call norms (`engine.model.fuse`), which is a setting of every run.
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

ROWS = (1, 128, 512)
"""Positions that go through the layer at once: a decode step's, and two papers'."""
COMPILED = (1, 512)
"""Those of them that are compiled for: each takes the compiler several seconds."""
CONTEXTS = (128, 1024)
"""Positions of notes at which a decode step is timed."""
PAPERS = (128, 512)
"""Tokens of the papers whose prefill is timed."""
PROMPT = 128
"""Tokens of the prompt of the two answers that are compared."""
WAYS = ("separate", "fused", "compiled")
STEPS = 25
"""Passes each way, at most."""


class Fusion(Lab):
    """A piece for each number of rows of the layer, for each whole pass, for the answers; compiling comes last, since
    it takes longest and is not possible everywhere."""

    name = "fusion"
    stage = "both"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        """The pieces that are `compiled` tell what is lacking for it: the code of a sentence, or nothing."""
        from engine.labs.compiling import compiler, lacking
        from engine.labs.traffic import gated

        most = model.facts.context
        layer = gated(model) is not None
        return [
            *({"piece": f"layer/{n}", "kind": "layer", "rows": n} for n in ROWS if layer and n < most),
            *({"piece": f"decode/{n}", "kind": "decode", "n": n} for n in CONTEXTS if n < most),
            *({"piece": f"prefill/{n}", "kind": "prefill", "n": n} for n in PAPERS if n < most),
            {"piece": "ids", "kind": "ids", "n": min(PROMPT, most // 2)},
            *(
                {"piece": f"compiled/{n}", "kind": "compiled", "rows": n, "needed": False,
                 "lacking": lacking(model.shape.device), "compiler": compiler()}
                for n in COMPILED if layer and n < most
            ),
        ]  # fmt: skip

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """`layer`: see `engine.labs.traffic.compared`. `compiled`: see `engine.labs.compiling.compiled`. `decode`,
        `prefill`: `{"n", "apart", "fused": {"calls", "kernels", "seconds"}}`. `ids`: `{"n", "words", "same"}`."""
        if piece["kind"] == "layer":
            return _layer(model, piece["rows"])
        if piece["kind"] == "compiled":
            from engine.labs.compiling import compiled

            return compiled(model, piece["rows"])
        return _ids(model, piece["n"]) if piece["kind"] == "ids" else _pass(model, piece["kind"], piece["n"])

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"layer": [{"rows", "ways": {way: {"calls", "kernels", "steps", "allocated", "seconds", "difference",
        "weights", "memory": bytes read and written, of weights and of everything else, "time": how many times as fast
        as separate}}}], "compile": {"compiler", "seconds", "each": [{"rows", "seconds"}]} or None, "decode",
        "prefill": [as measured, with "time"], "ids", "gained"}`.

        Times of a layer are those of the piece in which most ways took turns.
        """
        compiled = [one for n in COMPILED if (one := results.get(f"compiled/{n}"))]
        found = {int(name.split("/")[1]): one for name, one in results.items() if name.startswith("layer/")}
        found |= {one["rows"]: one for one in compiled}
        decode, prefill = (_passes(results, kind) for kind in ("decode", "prefill"))
        return {
            "layer": [_told(found[rows]) for rows in sorted(found)],
            "compile": {
                "compiler": compiled[0]["compiler"], "seconds": sum(one["compile"] for one in compiled),
                "each": [{"rows": one["rows"], "seconds": one["compile"]} for one in compiled],
            } if compiled else None,
            "decode": decode, "prefill": prefill, "ids": results.get("ids"), "gained": _gained(decode),
        }  # fmt: skip

    def runs(self) -> dict[str, Settings]:
        paper = example("open-book")
        return {"apart": replace(paper, fused=False), "fused": paper}


LAB = Fusion()


def _told(one: Mapping[str, Any]) -> dict[str, Any]:
    """One layer's ways with what follows from their steps and times."""
    plain = one["ways"]["separate"]["seconds"]["middle"]
    ways = {}
    for way, measured in one["ways"].items():
        steps = measured["steps"]
        ways[way] = {
            **measured,
            "weights": sum(step["weights"] for step in steps) if steps else None,
            "memory": sum(step["reads"] + step["writes"] for step in steps) if steps else None,
            "time": plain / measured["seconds"]["middle"],
        }
    return {"rows": one["rows"], "hidden": one["hidden"], "inner": one["inner"], "ways": ways}


def _passes(results: Results, kind: str) -> list[dict[str, Any]]:
    of_kind = [dict(one) for name, one in results.items() if name.startswith(f"{kind}/")]
    found = sorted(of_kind, key=lambda one: one["n"])
    for one in found:
        one["time"] = one["apart"]["seconds"]["middle"] / one["fused"]["seconds"]["middle"]
    return found


def _gained(decode: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Said of the shortest notes: there the calls weigh most beside the bytes."""
    if not decode:
        return None
    one = decode[0]
    return {"n": one["n"], "before": one["apart"]["calls"], "after": one["fused"]["calls"], "time": one["time"]}


def _layer(model: LanguageModel, rows: int) -> dict[str, Any]:
    """The middle layer's norm and MLP on real hidden states, as separate operations and as the engine calls them."""
    from engine.labs.traffic import block_of, compared

    block, hidden = block_of(model, rows)
    return compared(block, hidden)


def _pass(model: LanguageModel, kind: str, n: int) -> dict[str, Any]:
    """The engine's own pass, a decode step behind n positions or a prefill of n, with its linears and norms apart and
    joined. Random notes and ids: they do not change how long a pass takes."""
    import torch

    from engine.cache import RunCache
    from engine.labs.timing import alternate
    from engine.labs.traffic import counted
    from engine.model.tap import Pass, Way

    cache = RunCache(model.shape, n + 1)
    chance = torch.Generator().manual_seed(n)
    cache.notes(slice(None), 0, n).copy_(torch.randn((model.shape.head_size,), generator=chance))
    cache.length, tokens = (n, 1) if kind == "decode" else (0, n)
    ids = torch.randint(model.facts.vocabulary, (tokens,), generator=chance).tolist()

    def once(fused: bool) -> float:
        one = Pass([cache], tokens, lambda *_: give_way(), ways=[Way(fused=fused)])
        model.forward([ids], one)
        one.marks.mark()
        return float(sum(one.marks.seconds()))

    sides = {"apart": lambda: once(False), "fused": lambda: once(True)}
    counts = {name: counted(side, model.shape.device) for name, side in sides.items()}
    taken = alternate(sides, model.shape.device, rounds=STEPS, seconds=2)
    return {"n": n, **{name: {**counts[name], "seconds": spread(taken[name])} for name in sides}}


def _ids(model: LanguageModel, n: int) -> dict[str, Any]:
    """The same paper answered both ways: whether all words are the same."""
    from engine.labs.papers import of_length
    from engine.labs.timing import sit

    paper = replace(of_length(model, n), max_new_tokens=16)
    answers = []
    for fused in (True, False):
        give_way()
        _, trace = sit(model, replace(paper, fused=fused))
        answers.append([chose.token.id for chose in trace.chosen])
    return {"n": n, "words": len(answers[0]), "same": answers[0] == answers[1]}
