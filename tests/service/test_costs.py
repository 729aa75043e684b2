"""What a run's passes cost: computed from its model's sizes, one entry per pass that its trace tells of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.plan import cost
from engine.plan.read import of_run
from engine.settings import Refusal
from engine.trace import Decoded, Prefilled, Trace
from service.costs import config_of, costs_of, lengths
from tests.engine import tiny

CONFIG = tiny.CONFIGS["llama"]().to_dict()


@pytest.fixture(scope="module")
def trace() -> Trace:
    return tiny.sit("llama", tiny.raw(max_new_tokens=5))


def test_every_pass_of_the_trace_has_its_cost(trace: Trace) -> None:
    told = costs_of(trace, CONFIG)
    steps = [event for event in trace.events if isinstance(event, Decoded)]
    assert len(told["steps"]) == len(steps) == 4 and len(told["chunks"]) == 1
    assert [one["context"] for one in told["steps"]] == [event.position + 1 for event in steps]
    prompt = told["prompt"]
    assert told["chunks"][0] == told["prefill"] and told["prefill"]["tokens"] == prompt
    assert told["decode"] == told["steps"][0]


def test_the_numbers_are_those_of_the_one_cost_model(trace: Trace) -> None:
    assert trace.started is not None
    architecture = of_run(trace.started.facts, CONFIG)
    told = costs_of(trace, CONFIG)
    prompt = told["prompt"]
    whole = cost.prefill(architecture, prompt)
    hidden = cost.masked(architecture, prompt)
    assert told["prefill"]["total"] == whole.total - hidden == sum(told["prefill"]["flops"].values())
    assert told["prefill"]["flops"]["attention"] == whole.attention - hidden
    assert told["decode"]["total"] == cost.decode(architecture, prompt).total, "one row sees all there is"
    for one in (told["prefill"], told["decode"], *told["curve"], *told["batches"].values()):
        assert one["moved"] == sum(one["bytes"].values()) and one["intensity"] == one["total"] / one["moved"]


def test_a_batch_fetches_the_weights_once(trace: Trace) -> None:
    batches = costs_of(trace, CONFIG)["batches"]
    weights, row = {name: one["bytes"]["weights"] for name, one in batches.items()}, 32 * 4
    assert weights == {name: weights["1"] + (int(name) - 1) * row for name in weights}, "but for the embedding's rows"
    assert batches["32"]["total"] == 32 * batches["1"]["total"]
    assert batches["32"]["bytes"]["cache_read"] == 32 * batches["1"]["bytes"]["cache_read"] > 0
    assert batches["32"]["intensity"] > 4 * batches["1"]["intensity"]


def test_chunks_are_passes_of_their_own(trace: Trace) -> None:
    events = []
    for event in trace.events:
        if isinstance(event, Prefilled):
            from dataclasses import replace

            events += [replace(event, stop=5), replace(event, start=5)]
        else:
            events.append(event)
    told = costs_of(Trace(tuple(events)), CONFIG)
    first, second = told["chunks"]
    assert (first["tokens"], second["tokens"]) == (5, told["prompt"] - 5)
    assert second["bytes"]["cache_read"] > 0 == first["bytes"]["cache_read"]
    assert first["flops"]["mlp"] + second["flops"]["mlp"] == told["prefill"]["flops"]["mlp"]
    assert first["flops"]["attention"] + second["flops"]["attention"] == told["prefill"]["flops"]["attention"]


def test_the_race_counts_prefill_on_both_sides(trace: Trace) -> None:
    told = costs_of(trace, CONFIG)
    notes, none = told["race"]["notes"], told["race"]["none"]
    assert len(notes) == len(none) == 5
    assert notes[0] == none[0] == told["prefill"]["total"]
    assert notes[1:] == [one["total"] for one in told["steps"]]
    assert none == sorted(set(none))
    assert all(many > few for few, many in zip(notes[1:], none[1:], strict=True))


def test_a_run_without_notes_reads_everything_in_every_step() -> None:
    trace = tiny.sit("llama", tiny.raw(max_new_tokens=5, notes=False))
    told = costs_of(trace, CONFIG)
    assert [one["total"] for one in told["steps"]] == told["race"]["none"][1:]
    assert {one["bytes"]["cache_read"] for one in told["steps"]} == {0}


def test_a_config_is_read_where_the_model_lies(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert config_of(str(tmp_path)) == {"model_type": "llama"}
    assert config_of(str(tmp_path / "nowhere")) is None
    (tmp_path / "config.json").write_text("{")
    assert config_of(str(tmp_path)) is None


def test_a_run_that_has_not_started_has_no_costs() -> None:
    with pytest.raises(Refusal) as refusal:
        costs_of(Trace(()))
    assert refusal.value.code == "unfinished"


def test_the_slider_has_both_ends() -> None:
    assert lengths(1) == [1] and lengths(96)[0] == 1 and lengths(96)[-1] == 96
    found = lengths(8192)
    assert found == sorted(set(found)) and 40 < len(found) < 60
