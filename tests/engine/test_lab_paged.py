"""PagedAttention's lab: the scenario's tables are the pool's own, room is what the caches say, words stay the same."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from engine.cache.paged import Pool
from engine.labs import paged
from engine.labs.blocks import Desk, scenario
from engine.labs.jobs import measured
from engine.labs.lessons import Paper
from engine.labs.paged import LAB, room_of, time_of
from engine.settings import Keeping, Refusal, Settings
from tests.engine import tiny

pytestmark = pytest.mark.slow

SHORT = {
    "A": "The ferry leaves at",
    "B": "Anna's cat is called Luna and",
    "D": "Anna's cat is called Max but",
    "E": "Three",
}
PAPERS = (Paper("one", "Who?", (), "", 20), Paper("two", tiny.PAPER[:30], (), "", 20))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged, "CONTEXTS", (24, 4096))
    monkeypatch.setattr(paged, "SCENE", SHORT)
    monkeypatch.setattr(paged, "SIZE", 4)
    monkeypatch.setattr(paged, "BLOCKS", (1, 4))
    monkeypatch.setattr(paged, "papers", lambda lab: PAPERS)
    monkeypatch.setattr(paged, "paper", lambda lab, name: next(one for one in PAPERS if one.name == name))


def sound(told: dict[str, Any]) -> None:
    """Every frame: nobody's block is another's by accident, and what is not held is free."""
    for frame in told["frames"]:
        held = Counter(block for table in frame["tables"].values() for block in table)
        assert frame["holders"] == [held[block] for block in range(told["count"])]
        assert frame["free"] == told["count"] - len(held)
        for run, table in frame["tables"].items():
            assert len(set(table)) == len(table) == -(-frame["lengths"][run] // told["size"])


@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_the_scenario_is_told_as_the_pool_had_it(kind: str) -> None:
    told = scenario(tiny.model(kind), 4, 60, SHORT, 12)
    sound(json.loads(json.dumps(told)))
    frames = told["frames"]
    kinds = [frame["what"] for frame in frames]
    assert kinds[0] == "waits" and {"arrives", "grows", "parts", "copies", "shares", "ends"} <= set(kinds)
    assert frames[0]["free"] == frames[-1]["free"] == 60, "all come back"
    for before, frame in pairwise(frames):
        if frame["what"] in ("parts", "shares"):
            theirs, mine = before["tables"][frame["of"]], frame["tables"][frame["run"]]
            assert mine == theirs[: len(mine)] and frame["free"] == before["free"], "nothing new is taken"
        if frame["what"] == "copies":
            shared, own = frame["blocks"]
            assert own in frame["tables"][frame["run"]] and before["holders"][shared] > 1
    for run in "ABDE":
        last = [frame["lengths"][run] for frame in frames if run in frame["lengths"]][-1]
        assert len(told["tokens"][run]) == last


def test_its_runs_say_what_they_would_say_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, tuple[list[int], list[int]]] = {}
    leave = Desk.leave

    def keep(desk: Desk, name: str) -> None:
        said[name] = (desk.runs[name].ids, list(desk.runs[name].chosen))
        leave(desk, name)

    monkeypatch.setattr(Desk, "leave", keep)
    scenario(tiny.model("llama"), 4, 60, SHORT, 12)
    for name, paper in SHORT.items():
        chosen = said[name][1]
        alone = tiny.sit("llama", tiny.raw(paper)).output_ids
        assert tuple(chosen) == alone[: len(chosen)] and len(chosen) >= 3
    assert said["C"][0] == said["A"][0] and said["C"][1] != said["A"][1][: len(said["C"][1])]


def test_too_few_blocks_are_refused() -> None:
    with pytest.raises(Refusal, match="no_blocks"):
        scenario(tiny.model("llama"), 4, 6, SHORT, 12)
    desk = Desk(tiny.model("llama"), Pool(tiny.model("llama").shape, 2, 4))
    with pytest.raises(Refusal, match="no_blocks"):
        desk.arrive("A", Settings(SHORT["B"], mode="raw", keeping=Keeping(block=4)))


@pytest.mark.parametrize("block", [0, 1, 4, 16])
def test_room_is_what_was_set_aside(small: None, block: int) -> None:
    told = room_of(tiny.model("llama"), "two", block)
    kept, shape = told["kept"], tiny.model("llama").shape
    assert kept["positions"] == told["prompt"] + told["answer"] - 1
    assert kept["bytes"] == shape.bytes_at(kept["positions"]) and kept["allocated"] == shape.bytes_at(kept["room"])
    if block:
        assert kept["room"] == kept["blocks"] * block and 0 <= kept["room"] - kept["positions"] < block
    else:
        assert kept["room"] == told["prompt"] + told["limit"]


def test_words_are_the_same_whatever_the_blocks(small: None) -> None:
    told = time_of(tiny.model("llama"), 24)
    assert told["same"] == {"1": True, "4": True}
    assert told["ways"].keys() == {"contiguous", "1", "4"}
    assert all(one["repeats"] >= 1 for one in told["ways"].values())


def test_every_piece_is_measured_and_makes_figures(small: None) -> None:
    model = tiny.model("llama")
    plan = [piece["piece"] for piece in LAB.plan(model)]
    assert plan == ["scenario", *(f"room/{name}/{block}" for name in ("one", "two") for block in (0, 1, 4)), "time/24"]
    results = {piece: measured(LAB, model, piece) for piece in plan}
    figures = LAB.figures(json.loads(json.dumps(results)))
    sound(figures["scenario"])
    assert figures["answers"] == {"of": 6, "same": 6}
    assert len(figures["room"]["papers"]) == 2
    total = figures["room"]["total"]
    for way in ("contiguous", "1", "4"):
        assert total[way]["allocated"] == sum(one["ways"][way]["allocated"] for one in figures["room"]["papers"])
    assert total["contiguous"]["used"] < total["4"]["used"] <= total["1"]["used"] == 1
    gained = figures["gained"]
    assert gained["runs"] == 2 and gained["times"] == total["contiguous"]["allocated"] / total["4"]["allocated"]
    assert gained["slower"] == figures["time"][0]["slower"]["4"]
    del results["room/two/4"]
    partly = LAB.figures(results)
    assert len(partly["room"]["papers"]) == 1 and partly["gained"] is None


def test_both_runs_are_one_paper_kept_two_ways() -> None:
    plain, blocks = LAB.runs().values()
    assert blocks.keeping == Keeping(block=16) and plain.keeping == Keeping() and plain.prompt == blocks.prompt
