"""PagedAttention (Kwon et al. 2023): notes in blocks against one piece per run: what is set aside and not used, what a
word takes (blocks are gathered before each product here, which a kernel that knows the table would not do), and the
same words. A scenario of several runs on one pool is told frame by frame (`engine.labs.blocks`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.labs.base import Lab, Results, give_way, spread
from engine.labs.lessons import paper, papers
from engine.settings import Keeping, Settings

if TYPE_CHECKING:
    from engine.model import LanguageModel

BLOCKS = (1, 16, 64)
"""Positions of a block."""
CONTEXTS = (128, 512)
"""Positions of notes a word is timed at."""
WORDS = 14
"""Words timed each way; the first does not count."""
COUNT = 24
"""Blocks of the scenario's pool, of `SIZE` positions."""
SIZE = 16
SCENE = {
    "A": "The ferry to the island leaves at nine. It is blue and carries forty people. The captain said that",
    "B": "Anna's cat is called Luna. Her dog is called Max. Luna sleeps on the stove, Max under the table. "
    "In summer both of them sleep in the garden, and in winter nobody else may come near the stove. Luna is",
    "D": "Anna's cat is called Luna. Her dog is called Max. Luna sleeps on the stove, Max under the table. "
    "In summer both of them sleep in the garden, and in winter nobody else may come near the stove. Max is",
    "E": "Three things are needed to bake bread: flour, water and time. First the flour is weighed, then the water is "
    "warmed, and both are stirred until no dry flour is left in the bowl. Then",
}
"""What the scenario's runs read; D's paper begins as B's."""


class Paged(Lab):
    """A piece for each paper's room, for each block size and context, and one for the scenario."""

    name = "paged"
    stage = "both"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        most = model.facts.context - WORDS - 1
        return [
            {"piece": "scenario", "kind": "scenario"},
            *(
                {"piece": f"room/{one.name}/{block}", "kind": "room", "paper": one.name, "block": block}
                for one in papers(self.name)
                for block in (0, *BLOCKS)
            ),
            *({"piece": f"time/{n}", "kind": "time", "n": n} for n in CONTEXTS if n <= most),
        ]

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """`scenario`: see `Desk.told`. `room`: see `room_of`. `time`: see `time_of`."""
        if piece["kind"] == "scenario":
            from engine.labs.blocks import scenario

            return scenario(model, SIZE, COUNT, SCENE, 24)
        if piece["kind"] == "room":
            return room_of(model, piece["paper"], piece["block"])
        return time_of(model, piece["n"])

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"scenario", "room": {"papers": [{"paper", "prompt", "answer", "limit", "text", "ways": {way: {"bytes",
        "allocated", "positions", "room", "blocks"}}}], "total": {way: {"bytes", "allocated", "used": share}} or None},
        "time": [time_of(…) with "slower": {block: middle against middle}], "answers": {"of", "same"} or None,
        "gained"}`; a way is `contiguous` or a block's size as text; only papers sat every way are told."""
        rooms = [one for each in papers(self.name) if (one := _room(results, each.name))]
        times = [_slower(found) for n in CONTEXTS if (found := results.get(f"time/{n}"))]
        proofs = [same for one in (*rooms, *times) for same in one["same"].values()]
        total = _total(rooms)
        return {
            "scenario": results.get("scenario"),
            "room": {"papers": rooms, "total": total},
            "time": times,
            "answers": {"of": len(proofs), "same": sum(proofs)} if proofs else None,
            "gained": self._gained(total, len(rooms), times),
        }

    def _gained(self, total: dict[str, Any] | None, runs: int, times: list[dict[str, Any]]) -> dict[str, Any] | None:
        slower = [one["slower"][str(SIZE)] for one in times if one["slower"][str(SIZE)]]
        if total is None or runs < len(papers(self.name)) or not slower:
            return None
        before, after = total["contiguous"], total[str(SIZE)]
        return {
            "runs": runs, "times": before["allocated"] / after["allocated"], "before": 100 * before["used"],
            "after": 100 * after["used"], "slower": max(slower),
        }  # fmt: skip

    def runs(self) -> dict[str, Settings]:
        plain = papers(self.name)[-1].settings()
        return {"contiguous": plain, "blocks": replace(plain, keeping=Keeping(block=SIZE))}


LAB = Paged()


def _room(results: Results, name: str) -> dict[str, Any] | None:
    """One paper, when it was sat every way."""
    found = {_way(block): results.get(f"room/{name}/{block}") for block in (0, *BLOCKS)}
    sat = {way: one for way, one in found.items() if one}
    if len(sat) < len(found):
        return None
    plain = sat["contiguous"]
    return {
        **{key: plain[key] for key in ("paper", "prompt", "answer", "limit", "text")},
        "ways": {way: one["kept"] for way, one in sat.items()},
        "same": {way: one["ids"] == plain["ids"] for way, one in sat.items() if way != "contiguous"},
    }


def _slower(one: Mapping[str, Any]) -> dict[str, Any]:
    middles = {way: spread_["middle"] if spread_ else None for way, spread_ in one["ways"].items()}
    plain = middles.pop("contiguous")
    return {**one, "slower": {way: value / plain if value and plain else None for way, value in middles.items()}}


def _way(block: int) -> str:
    return str(block) if block else "contiguous"


def _total(rooms: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not rooms:
        return None
    total = {}
    for way in rooms[0]["ways"]:
        used, allocated = (sum(one["ways"][way][what] for one in rooms) for what in ("bytes", "allocated"))
        total[way] = {"bytes": used, "allocated": allocated, "used": used / allocated}
    return total


def room_of(model: LanguageModel, name: str, block: int) -> dict[str, Any]:
    """One paper sat with blocks of that size, or in one piece (0): `{"paper", "block", "prompt", "answer": tokens,
    "limit", "text", "ids", "kept": {"bytes": notes, "allocated": set aside, "positions": notes, "room": positions set
    aside, "blocks"}}`, as the cache itself told it after the last step."""
    from engine.cache.paged import PagedCache
    from engine.labs.timing import sit

    settings = replace(paper("paged", name).settings(model=model), keeping=Keeping(block=block))
    run, trace = sit(model, settings)
    assert run.cache is not None
    kv, blocks = run.cache.snapshot(), len(run.cache.table) if isinstance(run.cache, PagedCache) else 0
    kept = {
        "bytes": kv.bytes, "allocated": kv.allocated, "positions": kv.length,
        "room": blocks * block if block else run.cache.capacity, "blocks": blocks,
    }  # fmt: skip
    return {
        "paper": name, "block": block, "prompt": len(run.ids), "answer": len(run.chosen), "limit": run.limit,
        "text": trace.output_text, "ids": list(trace.output_ids), "kept": kept,
    }  # fmt: skip


def time_of(model: LanguageModel, n: int) -> dict[str, Any]:
    """Runs with the same prompt of n tokens write a word in turns, one with its notes in one piece, the others in
    blocks, copied from it but for the last position: `{"n", "ways": {way: spread of seconds a word, or None where none
    was written}, "same": {block: whether the ids are those of the one piece}}`."""
    from engine.labs.papers import of_length
    from engine.measure import clock
    from engine.measure.quiet import undisturbed
    from engine.run import admit, step

    text = of_length(model, n, Settings("x", mode="raw", max_new_tokens=WORDS + 1))
    runs = {
        _way(block): admit(_way(block), replace(text, keeping=Keeping(block=block)), model, clock.now())
        for block in (0, *BLOCKS)
    }
    plain = runs["contiguous"]
    for run in runs.values():
        if run is not plain:
            run.parent, run.taken = plain, n - 1
        while run.reading:
            step(model, [run], lambda *_: None, give_way)
    taken: dict[str, list[float]] = {name: [] for name in runs}
    with undisturbed():
        for word in range(WORDS):
            if any(run.finished for run in runs.values()):
                break
            for name in runs if word % 2 else reversed(runs):
                give_way()
                begin = clock.now()
                step(model, [runs[name]], lambda *_: None)
                clock.synchronise(model.shape.device)
                taken[name].append(clock.now() - begin)
    return {
        "n": n,
        "ways": {way: spread(values[1:]) if len(values) > 1 else None for way, values in taken.items()},
        "same": {way: run.chosen == plain.chosen for way, run in runs.items() if run is not plain},
    }
