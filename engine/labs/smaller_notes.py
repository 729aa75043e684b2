"""Notes squeezed to 8, 4 or 2 bits, or to fp8 (`engine.cache.quantised`): how many bytes, how far from exact, and at
how many bits a fact that stands in the notes is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.labs.base import Lab, Results
from engine.labs.lessons import Paper, paper, papers
from engine.settings import Keeping, Settings

if TYPE_CHECKING:
    from engine.cache import RunCache
    from engine.labs.forcing import Beside
    from engine.model import LanguageModel

DTYPES = ("fp8", "int8", "int4", "int2")
COUNTED = ("int8", "int4", "int2")
"""From many bits to few: at which of them is the fact lost?"""


class SmallerNotes(Lab):
    """One piece for each paper and each way, and one that shows a group of 64 numbers squeezed."""

    name = "smaller_notes"
    stage = "decode"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        pieces: list[dict[str, Any]] = [{"piece": "group", "paper": papers(self.name)[0].name}]
        for one in papers(self.name):
            pieces += [{"piece": f"{one.name}/{dtype}", "paper": one.name, "dtype": dtype} for dtype in DTYPES]
        return pieces

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        chosen = paper(self.name, piece["paper"])
        return groups(model, chosen) if piece["piece"] == "group" else squeezed(model, chosen, piece["dtype"])

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"papers": {name: {"lost": at which of `COUNTED` an answer that was right is not any more, None where it
        never is or not all were measured, "known": whether that can be told, "ways": {dtype: the piece's result with
        "share" of the exact bytes, "kl_mean", "kl_most", "agreed" share}}},
        "group", "gained"}`."""
        told = {one.name: self._paper(one, results) for one in papers(self.name)}
        first = next(iter(told.values()))["ways"]
        int8 = first.get("int8")
        return {"papers": told, "group": results.get("group"), "gained": gained(int8) if int8 else None}

    def _paper(self, one: Paper, results: Results) -> dict[str, Any]:
        ways = {dtype: summed(found) for dtype in DTYPES if (found := results.get(f"{one.name}/{dtype}"))}
        counted = [ways[dtype] for dtype in COUNTED if dtype in ways]
        known = len(counted) == len(COUNTED) and all(way["exact_right"] for way in counted)
        lost = next((dtype for dtype in COUNTED if known and not ways[dtype]["right"]), None)
        return {"prompt": one.prompt, "right": list(one.right), "ways": ways, "known": known, "lost": lost}

    def runs(self) -> dict[str, Settings]:
        first = papers(self.name)[0]
        return {"exact": first.settings(), **{dtype: first.settings(Keeping(dtype=dtype)) for dtype in DTYPES}}  # type: ignore[arg-type]


def gained(way: Mapping[str, Any]) -> dict[str, Any] | None:
    """For the entry page: percent of the exact bytes, of words that stay the likeliest, and times as long a word."""
    if not way["slower"]:
        return None
    return {"share": round(100 * way["share"]), "agreed": round(100 * way["agreed"]), "slower": way["slower"]}


def summed(found: Mapping[str, Any]) -> dict[str, Any]:
    """A result of `engine.labs.forcing.Beside.told` with what follows from it."""
    kl, agree = found["kl"], found["agree"]
    return {
        **found,
        "share": found["bytes"] / found["exact_bytes"] if found["exact_bytes"] else None,
        "kl_mean": sum(kl) / len(kl) if kl else None,
        "kl_most": max(kl, default=None),
        "agreed": sum(agree) / len(agree) if agree else None,
    }


def squeezed(model: LanguageModel, chosen: Paper, dtype: str) -> dict[str, Any]:
    """One paper with its notes squeezed: `Beside.told`, `"dtype"`, `"codes"` and `"scales"`: bytes of the tensors
    themselves, and `"error": {"key", "value"}`, per layer ‖read back − exact‖ / ‖exact‖ over the prompt's notes."""
    from engine.cache.quantised import QuantisedCache
    from engine.labs.forcing import beside

    both = beside(model, chosen.settings(model=model), Keeping(dtype=dtype))  # type: ignore[arg-type]
    cache = both.kept.run.cache
    assert isinstance(cache, QuantisedCache)
    codes, scales = cache.parts()
    error = {"key": errors(both, "keys"), "value": errors(both, "values")}
    return {"paper": chosen.name, "dtype": dtype, **both.told(chosen.right), "codes": codes, "scales": scales,
            "error": error}  # fmt: skip


def errors(both: Beside, which: str) -> list[float]:
    """Per layer, over the prompt's positions: relative error in the Frobenius norm. Both runs made these notes in one
    pass over the prompt, before anything was squeezed, so what differs is the squeezing alone."""
    exact, kept = both.exact.run.cache, both.kept.run.cache
    assert exact is not None and kept is not None
    stop = len(both.exact.run.ids)
    found = []
    for one, other in zip(getattr(exact, which), getattr(kept, which), strict=True):
        true = one[:, :stop].double()
        found.append(float((other[:, :stop].double() - true).norm() / true.norm().clamp_min(1e-30)))
    return found


def groups(model: LanguageModel, chosen: Paper) -> dict[str, Any]:
    """A group of K's numbers squeezed each way: of KV head 0, at the first token of the paper's fact, in the first, the
    middle and the last layer.

    `{"position", "token", "head", "layers": [{"layer", "exact": numbers, "ways": {dtype: {"codes", "low": the zero or
    None, "scale", "read": numbers, "bytes": with scales, "exact_bytes", "levels": the numbers a code can stand for, for
    4 bits and less}}}]}`.
    """
    from engine.labs.forcing import sit

    sat = sit(model, chosen.settings(model=model))
    run, cache = sat.run, sat.run.cache
    assert cache is not None
    position = first_of(run.prompt.tokens, run.prompt.text, chosen.fact)
    layers = sorted({0, model.shape.layers // 2, model.shape.layers - 1})
    return {
        "position": position, "token": run.prompt.tokens[position].text, "head": 0,
        "layers": [{"layer": layer, **_group(cache, layer, position)} for layer in layers],
    }  # fmt: skip


def _group(cache: RunCache, layer: int, position: int) -> dict[str, Any]:
    from engine.cache.quantised import GROUP

    exact = cache.keys[layer][0, position][:GROUP].float()
    ways: dict[str, Any] = {}
    for dtype in DTYPES:
        ways[dtype] = _squeezed_group(exact, dtype, cache.shape.dtype.itemsize)
    return {"exact": exact.tolist(), "ways": ways}


def _squeezed_group(exact: Any, dtype: str, itemsize: int) -> dict[str, Any]:
    from engine.cache.quantised import BITS, read_back, squeeze, unpack

    size = exact.shape[-1]
    codes, scales = squeeze(exact[None], dtype)
    read = read_back(codes, scales, dtype, size)[0].tolist()
    zero = None if dtype == "fp8" else float(scales[0, 0, 1])
    scale = float(scales[0, 0, 0])
    numbers = codes[0] if dtype == "fp8" else unpack(codes, BITS[dtype])[0, :size]
    levels = None if zero is None or BITS[dtype] > 4 else [zero + scale * code for code in range(2 ** BITS[dtype])]
    return {"codes": numbers.tolist(), "low": zero, "scale": scale, "read": read, "levels": levels,
            "bytes": codes.nbytes + scales.nbytes, "exact_bytes": size * itemsize}  # fmt: skip


def first_of(tokens: Any, text: str, fact: str) -> int:
    """The first position whose token holds a part of the fact; 0 where it does not stand in the prompt."""
    return next(iter(fact_positions(tokens, text, fact)), 0)


def fact_positions(tokens: Any, text: str, fact: str) -> list[int]:
    """Positions whose tokens hold the fact where it first stands."""
    begin = text.find(fact)
    end = begin + len(fact)
    return [i for i, token in enumerate(tokens) if begin >= 0 and token.start < end and token.stop > begin]


LAB = SmallerNotes()
