"""Continuous batching's lab: eight people really served in three ways, whose answers are the same; a result made by
hand; the library's own in a process of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.labs import batching, reference
from engine.labs.base import giving_way
from engine.labs.batching import BATCHES, LAB, WAYS, batch_of, company_of
from engine.labs.jobs import measured
from engine.labs.lessons import Paper
from engine.labs.reference import library
from engine.settings import Refusal
from tests.engine import tiny

pytestmark = pytest.mark.slow

PAPERS = tuple(Paper(name, tiny.PAPER[: 4 + 5 * number], (), "", 4 + number) for number, name in enumerate("ABCD"))
FACTS = replace(tiny.model("llama").facts, threads=1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "papers", lambda lab: PAPERS)
    monkeypatch.setattr(batching, "BATCHES", (1, 3))
    monkeypatch.setattr(batching, "CONTEXT", 20)
    monkeypatch.setattr(batching, "reference_of", lambda model: {"ours": told(8), "library": told(4)})


def told(seconds: float, ids: tuple[int, ...] = (1, 2)) -> dict[str, Any]:
    return {"seconds": seconds, "ids": [list(ids)] * 4, "ttft": [1.0] * 4, "tpot": [0.5] * 3 + [None], "version": "5"}


def test_each_way_serves_everybody_as_it_says(small: None) -> None:
    found = {way: company_of(tiny.model("llama"), way) for way in WAYS}
    for way, one in found.items():
        assert [each["name"] for each in one["members"]] == list("ABCD")
        arrived = [each["arrived"] for each in one["members"]]
        assert arrived == pytest.approx([number * one["gap"] for number in range(4)]) and one["gap"] > 0
        assert one["tokens"] == sum(len(each["ids"]) for each in one["members"])
        assert one["seconds"] == max(each["words"][-1] for each in one["members"])
        assert {name for turn in one["turns"] for name in turn["writes"]} <= set("ABCD")
        if way == "alone":
            assert all(len(turn["writes"]) + bool(turn["reads"]) <= 1 for turn in one["turns"])
    answers = [[each["ids"] for each in one["members"]] for one in found.values()]
    assert answers[0] == answers[1] == answers[2]


def test_a_step_is_timed_with_so_many_in_it(small: None) -> None:
    one = batch_of(tiny.model("llama"), 3, 20)
    shape = tiny.model("llama").shape
    assert one["tpot"]["repeats"] >= batching.LEAST and one["tpot"]["middle"] > 0
    steps = one["tpot"]["repeats"] + 1
    assert one["notes"] == 3 * shape.bytes_at(20 + steps), "everyone wrote in every step"


def test_every_piece_is_measured_and_makes_figures(small: None) -> None:
    model = tiny.model("gpt2")
    plan = [piece["piece"] for piece in LAB.plan(model)]
    assert plan == ["company/alone", "company/static", "company/continuous", "batch/1", "batch/3", "reference"]
    results = {piece: measured(LAB, model, piece) for piece in plan}
    figures = LAB.figures(json.loads(json.dumps(results)))
    assert figures["answers"] == {"of": 8, "same": 8}
    assert [one["way"] for one in figures["ways"]] == list(WAYS)
    for one in figures["ways"]:
        assert one["rate"] == one["tokens"] / one["seconds"] and one["ttft"]["repeats"] == 4
    for one in figures["batches"]:
        assert one["rate"] == one["batch"] / one["tpot"]["middle"]
    gained = figures["gained"]
    assert gained["people"] == 4 and gained["batch"] == 3
    assert gained["times"] == figures["batches"][1]["rate"] / figures["batches"][0]["rate"]
    needed = {piece["piece"]: results[piece["piece"]] for piece in LAB.plan(model) if piece.get("needed", True)}
    assert needed.keys() == {"company/alone", "company/static", "company/continuous", "batch/1", "batch/3"}
    assert LAB.figures(needed)["gained"] == gained
    del results["company/static"]
    assert LAB.figures(results)["gained"] is None
    del results["company/alone"]
    assert LAB.figures(results)["answers"] is None


def test_figures_of_the_reference_worked_by_hand() -> None:
    same = LAB.figures({"reference": {"ours": told(8), "library": told(4)}})["reference"]
    assert (same["same"], same["of"], same["ours"]["rate"], same["library"]["rate"]) == (4, 4, 1.0, 2.0)
    assert same["library"]["tpot"]["repeats"] == 3 and same["library"]["version"] == "5"
    other = LAB.figures({"reference": {"ours": told(8), "library": told(4, (1, 3))}})["reference"]
    assert other["same"] == 0
    refused = {"refused": "MemoryError: too little", "version": "5"}
    none = LAB.figures({"reference": {"ours": told(8), "library": refused}})["reference"]
    assert none["same"] is None and none["library"] == refused
    assert LAB.figures({}) == {"ways": [], "batches": [], "reference": None, "answers": None, "gained": None}


def test_the_librarys_own_gives_the_same_words_or_says_why_not(tmp_path: Path) -> None:
    """It needs more of the machine than we ask for elsewhere; where it runs its answers are ours."""
    tiny.network("llama").save_pretrained(tmp_path)
    exams = [tiny.raw(text, max_new_tokens=5) for text in ("Luna", tiny.PAPER[:25])]
    runs = [tiny.exam("llama", exam) for exam in exams]
    ids, limits = [run.ids for run in runs], [run.limit for run in runs]
    found = library(tmp_path, FACTS, ids, limits, sorted(tiny.model("llama").end_ids))
    if "refused" in found:
        assert found["refused"]
    else:
        assert found["ids"] == [list(tiny.sit("llama", exam).output_ids) for exam in exams]
        assert found["seconds"] >= max(found["ttft"]) > 0
    assert found["version"]


def test_weights_that_are_not_there_are_its_reason(tmp_path: Path) -> None:
    found = library(tmp_path, FACTS, [[5]], [1], [])
    assert "refused" in found and "ids" not in found


def test_a_process_that_says_nothing_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "PATIENCE", 0.0)
    with pytest.raises(Refusal, match="job_failed"):
        library(tmp_path, FACTS, [[5]], [1], [])


def test_its_process_gives_way(tmp_path: Path) -> None:
    def nobody_waits() -> None:
        raise Refusal("job_cancelled")

    with giving_way(nobody_waits), pytest.raises(Refusal, match="job_cancelled"):
        library(tmp_path, FACTS, [[5]], [1], [])


def test_the_runs_to_watch_differ_in_how_they_are_served_alone() -> None:
    runs = LAB.runs()
    assert list(runs) == [f"{way}_{number}" for way in ("alone", "continuous") for number in (1, 2, 3)]
    for number in (1, 2, 3):
        assert runs[f"alone_{number}"].prompt == runs[f"continuous_{number}"].prompt
        assert runs[f"alone_{number}"].batching == "alone" and runs[f"continuous_{number}"].batching == "continuous"
    assert len(BATCHES) == 6
