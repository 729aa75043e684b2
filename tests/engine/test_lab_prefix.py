"""Prefix caching's lab: only equal ids match, the last token is always read, blocks are whole, nothing changes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from engine.labs import prefix
from engine.labs.jobs import measured
from engine.labs.lessons import Paper
from engine.labs.prefix import BLOCK, LAB, PAIRS, match_of, second_of
from engine.settings import Keeping
from tests.engine import tiny

pytestmark = pytest.mark.slow

PASSAGE = "Anna's cat is called Luna. "
PAPERS = (Paper("who", PASSAGE + "Who?", (), "", 5), Paper("what", PASSAGE + "What cat?", (), "", 5))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "LENGTHS", (16, 40, 4096))
    monkeypatch.setattr(prefix, "papers", lambda lab: PAPERS)
    monkeypatch.setattr(Paper, "settings", lambda one, keeping=None, model=None: tiny.raw(
        one.prompt, max_new_tokens=5, keeping=keeping or Keeping()))  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS[:3], ids=lambda pair: pair[0])
def test_only_equal_ids_match_and_the_last_is_always_read(pair: tuple[str, str, str]) -> None:
    told = match_of(tiny.model("llama"), *pair)
    first, second = ([token["id"] for token in side] for side in told["tokens"])
    match = told["match"]
    assert first[:match] == second[:match]
    assert match in (len(first), len(second)) or first[match] != second[match]
    assert told["taken"] == min(match, len(second) - 1)
    assert told["blocks"] == told["taken"] // BLOCK * BLOCK
    if pair[0] == "same":
        assert match == len(second) and told["taken"] == match - 1
    if pair[0] == "first":
        assert told["taken"] == 0


@pytest.mark.parametrize("block", [0, 4, 16])
@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_the_rest_is_read_and_the_answer_stays(kind: str, block: int) -> None:
    first, second = (tiny.raw(one.prompt, max_new_tokens=5, keeping=Keeping(block=block)) for one in PAPERS)
    told = second_of(tiny.model(kind), first, second)
    taken = told["match"] // block * block if block else told["match"]
    assert 0 < told["reused"] == taken and told["reused"] + told["read"] == told["prompt"]
    words = len(told["queries"]["plain"]) - 1
    assert told["queries"] == {"plain": [told["prompt"], *[1] * words], "reuse": [told["read"], *[1] * words]}
    assert told["same"] and told["unchanged"] == told["columns"] > 0


def test_a_changed_column_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof can fail: one number of the lender's notes is touched while the second paper is sat."""
    sat = prefix._sat

    def touch(model, settings, pool, lender=None):  # type: ignore[no-untyped-def]
        found = sat(model, settings, pool, lender)
        if lender:
            lender.cache.keys[1][0, 3, 0] += 1
        return found

    monkeypatch.setattr(prefix, "_sat", touch)
    told = second_of(tiny.model("llama"), *(tiny.raw(one.prompt, max_new_tokens=2) for one in PAPERS))
    assert told["unchanged"] == told["columns"] - 1


def test_every_piece_is_measured_and_makes_figures(small: None) -> None:
    model = tiny.model("llama")
    plan = [piece["piece"] for piece in LAB.plan(model)]
    assert plan == ["pairs", "lesson/0", f"lesson/{BLOCK}", "length/16", "length/40"]
    results = {piece: measured(LAB, model, piece) for piece in plan if piece != "pairs"}
    results["pairs"] = measured(LAB, model, "pairs") if tiny.CONTEXT > 200 else {"pairs": []}
    figures = LAB.figures(json.loads(json.dumps(results)))
    lesson, blocks = figures["lesson"], figures["blocks"]
    assert lesson["times"] == lesson["plain"]["middle"] / lesson["reuse"]["middle"]
    assert blocks["reused"] == lesson["reused"] // BLOCK * BLOCK
    assert [one["reused"] for one in figures["lengths"]] == [16, 40]
    assert figures["gained"] == {key: lesson[key] for key in ("prompt", "read", "times")}
    assert LAB.figures({})["gained"] is None


def test_the_runs_are_one_passage_with_two_questions() -> None:
    first, reuse, plain = LAB.runs().values()
    assert reuse == replace(plain, reuse=True) and not first.reuse and first.prompt != plain.prompt
    same = next(k for k, pair in enumerate(zip(first.prompt, plain.prompt, strict=False)) if pair[0] != pair[1])
    assert same > 500
