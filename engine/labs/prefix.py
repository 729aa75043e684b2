"""Prefix caching: the same passage, another question. What is read, how long the first word takes, what of two papers
matches and what does not, and that the notes that were lent are left as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.labs.base import Lab, Results, spread
from engine.labs.lessons import papers
from engine.settings import Keeping, Settings

if TYPE_CHECKING:
    from engine.cache.paged import Pool
    from engine.model import LanguageModel
    from engine.run import Run
    from engine.trace import Trace

BLOCK = 16
LENGTHS = (64, 256, 768)
"""Tokens that the second paper has in common with the first."""
ASKED = " What rolled, and why?"
"""What follows them."""
SIDES = ("plain", "reuse")
PAIRS = (
    ("test", "I am test", "I am testing"),
    ("same", "The orange fell off the table.", "The orange fell off the table."),
    ("first", "The orange fell off the table.", "An orange fell off the table."),
    (
        "question",
        "Anna's cat is called Luna. Her dog is called Max. What is the name of Anna's cat?",
        "Anna's cat is called Luna. Her dog is called Max. What is the name of Anna's dog?",
    ),
    (
        "fact",
        "Luna, Anna's cat, is seven years old and sleeps on the stove all day. How old is Luna?",
        "Luna, Anna's cat, is eight years old and sleeps on the stove all day. How old is Luna?",
    ),
)
"""Two papers each, by name."""


class Prefix(Lab):
    """A piece for the lesson with whole notes, one with blocks, one for each length, one for the pairs."""

    name = "prefix"
    stage = "prefill"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        most = model.facts.context - 24
        pairs = [{"name": name, "first": first, "second": second} for name, first, second in PAIRS]
        return [
            {"piece": "pairs", "kind": "pairs", "pairs": pairs},
            {"piece": "lesson/0", "kind": "lesson", "block": 0},
            {"piece": f"lesson/{BLOCK}", "kind": "lesson", "block": BLOCK},
            *({"piece": f"length/{n}", "kind": "length", "n": n} for n in LENGTHS if n <= most),
        ]

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """`pairs`: `{"pairs": [match_of(…)]}`; the others: see `second_of`."""
        if piece["kind"] == "pairs":
            return {"pairs": [match_of(model, *pair) for pair in PAIRS]}
        if piece["kind"] == "lesson":
            first, second = (one.settings(Keeping(block=piece["block"]), model) for one in papers(self.name)[:2])
            return second_of(model, first, second)
        from engine.labs.papers import of_length

        first = of_length(model, piece["n"], Settings("x", mode="raw", max_new_tokens=2))
        return {**second_of(model, first, replace(first, prompt=first.prompt + ASKED)), "n": piece["n"]}

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"lesson", "blocks": second_of(…) with "times": how many times as soon, or None; "lengths": [the same],
        "pairs": [match_of(…)] or None, "gained"}`."""

        def told(piece: str) -> dict[str, Any] | None:
            one = results.get(piece)
            return {**one, "times": one["plain"]["middle"] / one["reuse"]["middle"]} if one else None

        lesson = told("lesson/0")
        pairs = results.get("pairs")
        keys = ("prompt", "read", "times")
        return {
            "lesson": lesson, "blocks": told(f"lesson/{BLOCK}"),
            "lengths": [one for n in LENGTHS if (one := told(f"length/{n}"))],
            "pairs": pairs["pairs"] if pairs else None,
            "gained": {key: lesson[key] for key in keys} if lesson else None,
        }  # fmt: skip

    def runs(self) -> dict[str, Settings]:
        first, second = (one.settings() for one in papers(self.name)[:2])
        return {"first": first, "reuse": replace(second, reuse=True), "plain": second}


LAB = Prefix()


def second_of(model: LanguageModel, first: Settings, second: Settings) -> dict[str, Any]:
    """The first paper is sat once and its notes are kept; the second is sat in turns, reading all of it and taking over
    what matches: `{"prompt": its tokens, "match": equal ids, "block", "reused": positions taken over, "read": the query
    length of what is left, "plain", "reuse": spreads of TTFT, "queries": {side: query length of each forward pass},
    "same": the same ids either way, "columns": of the first run, "unchanged": how many have the checksum they had,
    "text": the answer}`."""
    from engine.labs.timing import alternate

    pool = _pool(model, second)
    lender, _ = _sat(model, replace(first, max_new_tokens=2), pool)
    before = _sums(lender)

    def sit(settings: Settings, side: str) -> Trace:
        return _sat(model, settings, pool, lender if side == "reuse" else None)[1]

    whole = {side: sit(second, side) for side in SIDES}
    brief = replace(second, max_new_tokens=1)
    waits = {side: lambda side=side: sit(brief, side).ttft for side in SIDES}
    taken = alternate(waits, model.shape.device, seconds=3)
    ids = [token.id for token in model.text.prompt(second).tokens]
    reused = whole["reuse"].reused
    stop = reused.stop if reused else 0
    return {
        "prompt": len(ids),
        "match": _equal(ids, lender.ids),
        "block": second.keeping.block,
        "reused": stop,
        "read": len(ids) - stop,
        **{side: spread(taken[side]) for side in SIDES},
        "queries": {side: queries(whole[side]) for side in SIDES},
        "same": whole["plain"].output_ids == whole["reuse"].output_ids,
        "columns": len(before),
        "unchanged": sum(one == other for one, other in zip(before, _sums(lender), strict=True)),
        "text": whole["plain"].output_text,
    }


def match_of(model: LanguageModel, name: str, first: str, second: str) -> dict[str, Any]:
    """Two papers token by token, and what the engine takes over when the second comes after the first: `{"name",
    "tokens": [[{"id", "text"}] of each], "match": equal ids from the start, "taken", "blocks": taken where notes lie in
    blocks of `BLOCK`}`."""
    from engine.run import admit
    from engine.run.prefix import shared

    taken = []
    for block in (0, BLOCK):
        how = Settings(first, mode="raw", max_new_tokens=1, keeping=Keeping(block=block))
        pool = _pool(model, how)
        lender, _ = _sat(model, how, pool)
        run = admit("second", replace(how, prompt=second, reuse=True), model, 0.0)
        taken.append(shared(run, lender))
    both = [[{"id": token.id, "text": token.text} for token in one.prompt.tokens] for one in (lender, run)]
    return {
        "name": name, "tokens": both, "match": _equal(run.ids, lender.ids), "taken": taken[0], "blocks": taken[1],
    }  # fmt: skip


def queries(trace: Trace) -> list[int]:
    """The query length of each forward pass of a run, in order."""
    from engine.trace import Decoded, Prefilled

    passes = (event for event in trace.events if isinstance(event, (Prefilled, Decoded)))
    return [event.stop - event.start if isinstance(event, Prefilled) else 1 for event in passes]


def _equal(mine: list[int], theirs: list[int]) -> int:
    pairs = enumerate(zip(mine, theirs, strict=False))
    return next((k for k, (one, other) in pairs if one != other), min(len(mine), len(theirs)))


def _pool(model: LanguageModel, settings: Settings) -> Pool | None:
    """One pool for a few runs of such a length, as runs of the service have: only then are blocks shared."""
    from engine.cache.paged import Pool

    size = settings.keeping.block
    if not size:
        return None
    tokens = len(model.text.prompt(settings).tokens) + settings.max_new_tokens
    return Pool(model.shape, 4 * (-(-tokens // size) + 2), size)


def _sat(model: LanguageModel, settings: Settings, pool: Pool | None, lender: Run | None = None) -> tuple[Run, Trace]:
    """One run from start to end for nobody, with the notes that `lender` can lend."""
    from engine.labs.timing import finish
    from engine.measure import clock
    from engine.run import admit
    from engine.run.prefix import look_for

    run = admit("second" if lender else "first", replace(settings, reuse=bool(lender)), model, clock.now())
    run.pool = pool
    if lender:
        look_for(run, [lender])
    return run, finish(run)


def _sums(run: Run) -> list[bytes]:
    from engine.jobs.notes import column_sums

    assert run.cache is not None
    return list(column_sums(run.cache))
