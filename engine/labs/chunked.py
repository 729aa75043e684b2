"""Chunked prefill (Agrawal et al. 2023): a long paper arrives while somebody is being answered. Read whole it makes the
other's words stall for all of its prefill; in chunks they stall for one chunk, and the newcomer's first word comes
later. Each chunk size is really run: both traces on one clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from engine.labs.base import Lab, Results, spread
from engine.labs.lessons import paper
from engine.labs.papers import example, of_length
from engine.settings import RANGES, Settings

if TYPE_CHECKING:
    from engine.model import LanguageModel

LENGTHS = (1024, 2048)
"""Tokens of the paper that arrives."""
CHUNKS = (0, 512, 256, 128, 64, 32)
"""Tokens read in one pass; 0: all of them."""
MOST = 16
"""Chunks that a paper is cut into: beyond, a piece takes too long, and the other's answer would be over first."""
WHOLE = int(RANGES["chunk"][1])
"""As a setting: 0 would mean 256 while others write."""
AFTER = 8
"""Words the first has written when the second comes."""
SECONDS = 5.0
"""Patience for one chunk size; at least one sitting, at most `ROUNDS`."""
ROUNDS = 3
WORDS, WORDS_LATE = 40, 4
"""That the first and the second write, end tokens or not."""
LIVE = 64
"""The chunk size of the run to watch."""
TOLD = 128
"""The chunk size the entry page tells of."""


class Chunked(Lab):
    """A piece for each length and chunk size."""

    name = "chunked"
    stage = "prefill"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        most = model.facts.context - WORDS_LATE - 1
        lengths = [n for n in LENGTHS if n <= most] or [most // 2]
        return [
            {
                "piece": f"{n}/{chunk or 'whole'}", "n": n, "chunk": chunk,
                "needed": n == lengths[-1] and chunk in (0, TOLD),
            }
            for n in lengths
            for chunk in chunks_of(n)
        ]  # fmt: skip

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """See `arrival_of`."""
        return arrival_of(model, piece["n"], piece["chunk"])

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"lengths": [{"n", "quiet": seconds between two words of the first before, "points": [{"chunk", "stall",
        "between", "ttft": spreads, "passes", "reading": seconds of all passes, "sitting": the one to draw, "same": both
        answers are those of the paper read whole, or None, "difference": of their words' probabilities}]}], "answers":
        {"of", "same", "difference"} or None, "gained"}`; points from whole to the smallest chunk, those measured."""
        lengths = [_length(results, n) for n in sorted({one["n"] for one in results.values()})]
        proofs = [point for one in lengths for point in one["points"] if point["same"] is not None]
        answers = {
            "of": len(proofs), "same": sum(point["same"] for point in proofs),
            "difference": max((point["difference"] for point in proofs if point["same"]), default=None),
        }  # fmt: skip
        return {"lengths": lengths, "answers": answers if proofs else None, "gained": _gained(lengths)}

    def runs(self) -> dict[str, Settings]:
        """Two of each: the first is being answered when the second comes."""
        first, second = paper(self.name, "first").settings(), replace(example("long-paper"), max_new_tokens=24)
        whole, chunked = replace(second, chunk=WHOLE), replace(second, chunk=LIVE)
        return {"whole_a": first, "whole_b": whole, "chunked_a": first, "chunked_b": chunked}


LAB = Chunked()


def chunks_of(n: int) -> list[int]:
    return [chunk for chunk in CHUNKS if chunk < n and (not chunk or n <= MOST * chunk)]


def arrival_of(model: LanguageModel, n: int, chunk: int) -> dict[str, Any]:
    """The first writes; after its 8th word a paper of n tokens comes and is read in chunks: `{"n", "chunk", "quiet":
    median seconds between two of the first's words before, "stall": the longest gap, "between": the median gap, both
    while the second waited for its first word, "ttft": the second's; spreads, "passes": that read it, "reading": their
    seconds, "sitting": `sitting_of` that of the median stall, "ids", "probabilities": of both answers}`."""
    from engine.labs.company import member

    model = replace(model, end_ids=frozenset())
    first = replace(paper("chunked", "first").settings(), mode="raw", max_new_tokens=WORDS)
    second = of_length(model, n, Settings("x", mode="raw", max_new_tokens=WORDS_LATE, chunk=chunk or WHOLE))
    sat: list[tuple[dict[str, Any], dict[str, Any]]] = []
    seconds = 0.0
    while len(sat) < ROUNDS and (not sat or seconds + seconds / len(sat) <= SECONDS):
        company = sat_with(model, first, second)
        sat.append((member(company, "A"), member(company, "B")))
        seconds += company.turns[-1].stop
    told = [sitting_of(*both) for both in sat]
    middle = sorted(range(len(told)), key=lambda number: told[number]["stall"])[(len(told) - 1) // 2]
    return {
        "n": n, "chunk": chunk,
        "quiet": median(one["quiet"] for one in told),
        **{name: spread([one[name] for one in told]) for name in ("stall", "between", "ttft")},
        "passes": len(told[middle]["chunks"]), "reading": told[middle]["reading"], "sitting": told[middle],
        "ids": [one["ids"] for one in sat[middle]], "probabilities": [one["probabilities"] for one in sat[middle]],
    }  # fmt: skip


def sat_with(model: LanguageModel, first: Settings, second: Settings) -> Any:
    """The `Company` of both, over."""
    from engine.labs.company import Arrival, Company
    from engine.measure.quiet import undisturbed

    with undisturbed():
        return Company(model, [Arrival("A", first), Arrival("B", second, after=("A", AFTER))]).sit()


def sitting_of(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both on one clock: `{"words": when each of the first's was there, "arrived", "chunks": [[start, stop, first
    position, end]], "late": when each of the second's words was there, "quiet", "stall", "between", "ttft", "reading":
    seconds}`."""
    words, arrived, late = first["words"], second["arrived"], second["words"]
    gaps = list(pairwise(words))
    meanwhile = [stop - start for start, stop in gaps if stop > arrived and start < late[0]]
    before = [stop - start for start, stop in gaps if stop <= arrived]
    return {
        "words": words, "arrived": arrived, "chunks": second["chunks"], "late": late,
        "quiet": median(before), "stall": max(meanwhile), "between": median(meanwhile), "ttft": late[0] - arrived,
        "reading": second["reading"],
    }  # fmt: skip


def _length(results: Results, n: int) -> dict[str, Any]:
    found = [one for chunk in chunks_of(n) if (one := results.get(f"{n}/{chunk or 'whole'}"))]
    whole = results.get(f"{n}/whole")
    keys = ("chunk", "stall", "between", "ttft", "passes", "reading", "sitting")
    points = [{**{key: one[key] for key in keys}, **_proof(one, whole)} for one in found]
    return {"n": n, "quiet": median(one["quiet"] for one in found), "points": points}


def _proof(one: Mapping[str, Any], whole: Mapping[str, Any] | None) -> dict[str, Any]:
    """Whether both answers are those of the paper read whole, and by how much a word's probability differs at most."""
    if whole is None or one is whole:
        return {"same": None, "difference": None}
    pairs = zip(_flat(one["probabilities"]), _flat(whole["probabilities"]), strict=True)
    same = one["ids"] == whole["ids"]
    return {"same": same, "difference": max(abs(mine - its) for mine, its in pairs) if same else None}


def _flat(lists: Sequence[Sequence[float]]) -> list[float]:
    return [value for values in lists for value in values]


def _gained(lengths: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Of the longest paper measured both ways."""
    for one in reversed(lengths):
        points = {point["chunk"]: point for point in one["points"]}
        if 0 in points and TOLD in points:
            before, after = points[0], points[TOLD]
            return {
                "n": one["n"], "chunk": TOLD,
                "before": 1000 * before["stall"]["middle"], "after": 1000 * after["stall"]["middle"],
                "later": after["ttft"]["middle"] / before["ttft"]["middle"],
            }  # fmt: skip
    return None
