"""Squeezed notes measured: identities on tiny models; the figures follow from the pieces alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.cache.quantised import QuantisedCache, squeezed_bytes
from engine.labs import forcing, smaller_notes
from engine.labs.lessons import Paper, papers
from engine.settings import Keeping, Refusal
from tests.engine import tiny

pytestmark = pytest.mark.slow

PAPER = Paper("cat", tiny.PAPER[:60], ("Luna",), "Luna", 6)
LAB = smaller_notes.LAB


@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_forcing_a_run_to_its_own_words_is_the_run_itself(kind: str) -> None:
    model = tiny.model(kind)
    free = forcing.sit(model, tiny.raw(PAPER.prompt))
    assert free.ids == list(tiny.sit(kind, tiny.raw(PAPER.prompt)).output_ids)
    forced = forcing.sit(model, tiny.raw(PAPER.prompt), free.ids)
    assert forced.ids == free.ids == [int(row.argmax()) for row in forced.logits]
    assert all(torch.equal(one, two) for one, two in zip(free.logits, forced.logits, strict=True))
    assert forcing.divergence(free.logits, forced.logits) == [0.0] * len(free.ids)
    assert all(forcing.agreement(free.logits, forced.logits))


def test_other_words_can_be_forced() -> None:
    """A run that chose for itself says other words: the test above would not see a sampler that is never asked."""
    model = tiny.model("llama")
    free = forcing.sit(model, tiny.raw(PAPER.prompt))
    others = [index + 3 for index in free.ids[:5]]
    forced = forcing.sit(model, tiny.raw(PAPER.prompt), others)
    assert forced.ids == others
    assert torch.equal(forced.logits[0], free.logits[0]) and not torch.equal(forced.logits[1], free.logits[1])


def test_divergence_is_kullback_and_leibler_s_in_bits() -> None:
    one = torch.tensor([0.5, 0.25, 0.25]).log()
    two = torch.tensor([0.25, 0.5, 0.25]).log()
    assert forcing.divergence([one], [two]) == [pytest.approx(0.5 * 1 + 0.25 * -1, abs=1e-6)]
    assert forcing.agreement([one, one], [two, one]) == [False, True]
    ruled_out = torch.tensor([0.0, float("-inf")])
    assert forcing.divergence([ruled_out], [ruled_out]) == [0.0]


@pytest.mark.parametrize("dtype", smaller_notes.DTYPES)
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_paper_squeezed(kind: str, dtype: str) -> None:
    model = tiny.model(kind)
    told = smaller_notes.squeezed(model, PAPER, dtype)
    assert len(told["kl"]) == len(told["agree"]) == len(told["words"]) == 6
    assert told["bytes"] == told["codes"] + told["scales"] == squeezed_bytes(model.shape, dtype, told["columns"])
    assert told["exact_bytes"] == model.shape.bytes_at(told["columns"])
    assert told["kl"][0] == 0 and told["agree"][0]  # the paper itself is read before anything is squeezed
    assert max(told["kl"]) > 0
    assert told["slower"] > 0
    assert told["before"]["repeats"] == told["after"]["repeats"] == 5
    errors = [value for which in told["error"].values() for value in which]
    assert len(errors) == 2 * model.shape.layers and all(0 < value < 1 for value in errors)


def test_fewer_bits_are_further_off() -> None:
    model = tiny.model("llama")
    errors = {
        dtype: sum(smaller_notes.squeezed(model, PAPER, dtype)["error"]["key"]) for dtype in ("int8", "int4", "int2")
    }
    assert errors["int8"] * 8 < errors["int4"] and errors["int4"] * 3 < errors["int2"]


def test_the_error_is_that_of_the_tensors_a_run_reads() -> None:
    model = tiny.model("llama")
    both = forcing.beside(model, PAPER.settings(model=model), Keeping(dtype="int4"))
    exact, kept = both.exact.run.cache, both.kept.run.cache
    assert exact is not None and isinstance(kept, QuantisedCache)
    stop = len(both.exact.run.ids)
    for layer, error in enumerate(smaller_notes.errors(both, "keys")):
        true, read = exact.keys[layer][:, :stop], kept.keys[layer][:, :stop]
        assert error == pytest.approx(float((read - true).norm() / true.norm()), rel=1e-4)


def test_a_group_of_numbers_squeezed_is_what_the_cache_holds() -> None:
    model = tiny.model("llama")
    told = smaller_notes.groups(model, PAPER)
    run = forcing.sit(model, PAPER.settings(model=model)).run
    assert "L" in told["token"] and told["layers"][-1]["layer"] == model.shape.layers - 1
    assert run.cache is not None
    for one in told["layers"]:
        exact = run.cache.keys[one["layer"]][0, told["position"]]
        assert one["exact"] == pytest.approx(exact.tolist())
        for dtype, way in one["ways"].items():
            cache = QuantisedCache(replace(model.shape, layers=1, windows=(0,)), 1, dtype)
            both = exact.expand(1, 1, -1).expand(model.shape.kv_heads, 1, -1)
            cache.write(0, both, both)
            assert way["read"] == pytest.approx(cache.keys[0][0, 0].tolist())
            if way["levels"]:
                assert all(
                    way["levels"][code] == pytest.approx(read)
                    for code, read in zip(way["codes"], way["read"], strict=True)
                )
            assert max(abs(a - b) for a, b in zip(one["exact"], way["read"], strict=True)) <= _step(way, dtype)


def _step(way: dict[str, Any], dtype: str) -> float:
    """The most a number can be off: half a step of the grid, a little more since scale and zero are fp16."""
    most: float = max(map(abs, way["read"]))
    return most / 16 if dtype == "fp8" else 0.51 * way["scale"] + most * 2e-3


def test_plan_pieces_are_named_once_and_every_one_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("llama")
    monkeypatch.setattr(smaller_notes, "papers", lambda lab: (PAPER,))
    monkeypatch.setattr(smaller_notes, "paper", lambda lab, name: PAPER)
    plan = LAB.plan(model)
    assert len({piece["piece"] for piece in plan}) == len(plan) == 5
    results = {piece["piece"]: LAB.measure(model, piece) for piece in plan}
    figures = LAB.figures(results)
    ways = figures["papers"]["cat"]["ways"]
    assert set(ways) == set(smaller_notes.DTYPES) and figures["group"] == results["group"]
    assert ways["int4"]["share"] == results["cat/int4"]["bytes"] / results["cat/int4"]["exact_bytes"]
    assert ways["int4"]["kl_mean"] == pytest.approx(sum(results["cat/int4"]["kl"]) / 6)


def piece(exact_right: bool, right: bool) -> dict[str, Any]:
    return {
        "exact_right": exact_right, "right": right, "kl": [0.0, 1.0], "agree": [True, False], "bytes": 1,
        "exact_bytes": 4, "before": {"middle": 1.0}, "after": {"middle": 2.0}, "slower": 2.0,
    }  # fmt: skip


def test_lost_is_the_first_of_fewer_bits_at_which_the_fact_is_missing() -> None:
    names = [one.name for one in papers("smaller_notes")]
    results = {f"{names[0]}/{dtype}": piece(True, dtype != "int2") for dtype in smaller_notes.DTYPES}
    results |= {f"{names[1]}/{dtype}": piece(True, dtype == "int8") for dtype in ("int8", "int4")}
    results |= {f"{names[2]}/{dtype}": piece(False, False) for dtype in smaller_notes.DTYPES}
    told = LAB.figures(results)["papers"]
    assert [(told[name]["lost"], told[name]["known"]) for name in names] == [
        ("int2", True),
        (None, False),
        (None, False),
    ]
    assert told[names[0]]["ways"]["int4"] == {
        **piece(True, True),
        "share": 0.25,
        "kl_mean": 0.5,
        "kl_most": 1.0,
        "agreed": 0.5,
    }
    assert LAB.figures(results)["gained"] == {"share": 25, "agreed": 50, "slower": 2.0}
    assert LAB.figures({})["gained"] is None and LAB.figures({})["group"] is None


def test_papers_hold_their_facts_and_runs_begin_without_the_remedy() -> None:
    for lab in ("smaller_notes", "forgetting"):
        assert all(one.fact in one.prompt and one.right for one in papers(lab))
    runs = LAB.runs()
    assert next(iter(runs.values())).keeping.plain and {one.keeping.dtype for one in runs.values()} == {
        "model",
        *smaller_notes.DTYPES,
    }
    assert len({replace(one, keeping=Keeping()) for one in runs.values()}) == 1


def test_a_paper_that_is_too_long_for_a_model_is_refused() -> None:
    model = tiny.model("llama")
    with pytest.raises(Refusal, match="too_many_tokens"):
        smaller_notes.squeezed(model, replace(PAPER, prompt=tiny.PAPER * 3), "int8")


def test_how_much_slower_is_told_word_beside_word() -> None:
    """A machine that gets ten times slower in the middle does so for both: the ratio stays."""
    assert forcing.paired([1.0, 1.0, 10.0, 10.0], [1.5, 1.5, 15.0, 15.0]) == pytest.approx(1.5)
    assert forcing.paired([], []) is None
