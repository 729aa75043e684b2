"""Chunked prefill's lab: both on one clock, a chunk changes no word, and the figures of a result made by hand."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from engine.labs import chunked
from engine.labs.chunked import LAB, WHOLE, arrival_of, chunks_of, sitting_of
from engine.labs.company import Arrival, Company, member
from engine.labs.jobs import measured
from engine.labs.lessons import Paper
from engine.trace import Queued
from tests.engine import tiny

pytestmark = pytest.mark.slow


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "LENGTHS", (40, 4096))
    monkeypatch.setattr(chunked, "CHUNKS", (0, 16, 8))
    monkeypatch.setattr(chunked, "WORDS", 24)
    monkeypatch.setattr(chunked, "ROUNDS", 1)
    monkeypatch.setattr(chunked, "paper", lambda lab, name: Paper("first", "Luna sleeps", (), "", 24))


def test_the_entry_page_needs_the_longest_paper_whole_and_in_one_chunk_size() -> None:
    facts = SimpleNamespace(facts=SimpleNamespace(context=8192))
    needed = [piece["piece"] for piece in LAB.plan(facts) if piece["needed"]]  # type: ignore[arg-type]
    assert needed == ["2048/whole", "2048/128"]


def test_chunk_sizes_that_cut_a_paper_into_no_more_parts_than_the_other_has_words() -> None:
    assert chunks_of(1024) == [0, 512, 256, 128, 64] and chunks_of(2048) == [0, 512, 256, 128]
    assert chunks_of(64) == [0, 32]


class Clock:
    """Time that goes on only while somebody sleeps, and by a step at each look."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        self.time += 1e-6
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def test_people_come_when_they_are_to_and_everything_is_on_one_clock() -> None:
    clock = Clock()
    arrivals = [
        Arrival("A", tiny.raw("Luna", max_new_tokens=9)),
        Arrival("B", tiny.raw("Max", max_new_tokens=3), after=("A", 4)),
        Arrival("C", tiny.raw(tiny.PAPER[:20], max_new_tokens=3), at=50.0),
    ]
    company = Company(tiny.model("llama"), arrivals, clock.now, clock.sleep).sit()
    told = {name: member(company, name) for name in "ABC"}
    assert told["B"]["arrived"] == told["A"]["words"][3], "B came with A's fourth word"
    assert told["C"]["arrived"] == 50.0 and clock.slept == [pytest.approx(50.0, abs=1e-2)]
    assert told["C"]["words"][0] >= 50.0 and told["C"]["ttft"] == pytest.approx(told["C"]["words"][0] - 50.0)
    for name, one in told.items():
        assert one["arrived"] <= one["began"] <= one["chunks"][0][1] <= one["words"][0]
        assert all(before < after for before, after in pairwise(one["words"]))
        assert tuple(one["ids"]) == tiny.sit("llama", company.runs[name].settings).output_ids
    reads = [turn.reads for turn in company.turns if turn.reads]
    assert reads == ["A", "B", "C"]
    assert all(before.stop <= after.start for before, after in pairwise(company.turns))


def test_who_waits_for_somebody_who_stops_early_comes_when_that_one_is_over() -> None:
    arrivals = [Arrival("A", tiny.raw("Luna", max_new_tokens=2)), Arrival("B", tiny.raw("Max"), after=("A", 9))]
    company = Company(tiny.model("llama"), arrivals).sit()
    over = company.traces["A"].events[-1].at + company.pressed["A"]
    assert company.pressed["B"] >= over and company.runs["B"].finished


def test_a_wait_for_ones_turn_is_in_the_trace() -> None:
    alone = [Arrival(name, tiny.raw("Luna", batching="alone", max_new_tokens=3)) for name in "AB"]
    company = Company(tiny.model("llama"), alone).sit()
    trace = company.traces["B"]
    assert [event.ahead for event in trace.events if isinstance(event, Queued)] == [1]
    assert any("B" in turn.waits for turn in company.turns)
    assert trace.ttft is not None and trace.ttft > (company.traces["A"].chosen[-1].at)


@pytest.mark.parametrize("chunk", [0, 16, 8])
def test_the_paper_is_really_read_in_parts_while_the_other_writes(small: None, chunk: int) -> None:
    told = arrival_of(tiny.model("llama"), 40, chunk)
    size = chunk or 40
    sitting = told["sitting"]
    assert [one[2:] for one in sitting["chunks"]] == [[at, min(at + size, 40)] for at in range(0, 40, size)]
    assert told["passes"] == len(sitting["chunks"]) == -(-40 // size)
    assert len(sitting["words"]) == 24 and len(sitting["late"]) == 4, "end tokens or not"
    assert sitting["arrived"] == sitting["words"][7]
    between = [at for at in sitting["words"] if sitting["chunks"][0][1] < at < sitting["chunks"][-1][0]]
    assert len(between) == max(0, told["passes"] - 1), "a word between two parts"
    assert told["stall"]["middle"] >= told["between"]["middle"] > 0


def test_every_piece_is_measured_and_a_chunk_changes_no_word(small: None) -> None:
    model = tiny.model("llama")
    plan = [piece["piece"] for piece in LAB.plan(model)]
    assert plan == ["40/whole", "40/16", "40/8"], "no paper that the model has no room for"
    results = {piece: measured(LAB, model, piece) for piece in plan}
    figures = LAB.figures(json.loads(json.dumps(results)))
    assert figures["answers"]["of"] == figures["answers"]["same"] == 2
    assert figures["answers"]["difference"] < 1e-5
    assert [point["chunk"] for point in figures["lengths"][0]["points"]] == [0, 16, 8]


def by_hand(chunk: int, stall: float, ttft: float, ids: list[int]) -> dict[str, Any]:
    spread = {name: {"middle": value, "low": value, "high": value, "repeats": 1}
              for name, value in (("stall", stall), ("between", stall / 2), ("ttft", ttft))}  # fmt: skip
    sitting = {"words": [0.1], "arrived": 0.1, "chunks": [], "late": [ttft]}
    return {
        "n": 1024, "chunk": chunk, "quiet": 0.02, **spread, "passes": 1, "reading": ttft, "sitting": sitting,
        "ids": [[1], ids], "probabilities": [[0.5], [0.25 + chunk / 1e6]],
    }  # fmt: skip


def test_figures_worked_by_hand() -> None:
    results = {"1024/whole": by_hand(0, 0.8, 0.8, [2]), "1024/128": by_hand(128, 0.1, 1.2, [2]),
               "1024/64": by_hand(64, 0.06, 1.4, [3])}  # fmt: skip
    figures = LAB.figures(results)
    whole, some, small = figures["lengths"][0]["points"]
    assert (whole["same"], some["same"], small["same"]) == (None, True, False)
    assert some["difference"] == pytest.approx(128e-6) and small["difference"] is None
    assert figures["answers"] == {"of": 2, "same": 1, "difference": some["difference"]}
    assert figures["gained"] == {"n": 1024, "chunk": 128, "before": 800.0, "after": 100.0, "later": pytest.approx(1.5)}
    del results["1024/whole"]
    partly = LAB.figures(results)
    assert partly["gained"] is None and partly["answers"] is None
    assert LAB.figures({}) == {"lengths": [], "answers": None, "gained": None}


def test_a_sitting_worked_by_hand() -> None:
    """A's words at 1, 2, 3 (B comes), 7, 8, then B's first at 8.5. A gap counts while B waits in any part of it."""
    first = {"words": [1.0, 2.0, 3.0, 7.0, 8.0, 20.0]}
    second = {"arrived": 3.0, "words": [8.5, 9.0], "chunks": [], "reading": 3.5}
    told = sitting_of(first, second)
    assert (told["quiet"], told["stall"], told["ttft"]) == (1.0, 12.0, 5.5)
    assert told["between"] == 4.0


def test_the_runs_to_watch_differ_in_the_chunk_alone() -> None:
    runs = LAB.runs()
    assert list(runs) == ["whole_a", "whole_b", "chunked_a", "chunked_b"]
    assert runs["whole_a"] == runs["chunked_a"]
    assert (runs["whole_b"].chunk, runs["chunked_b"].chunk) == (WHOLE, 64)
    assert runs["whole_b"].prompt == runs["chunked_b"].prompt
