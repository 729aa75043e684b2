"""`state_at` folds a trace; `tests/fixtures/states.json` holds it and its JavaScript twin to the same answers."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from engine.trace import Event, State, Trace, advance, codec, state_at
from engine.trace.invariants import check
from tests.engine.traces import traces

FIXTURE = Path(__file__).parents[1] / "fixtures" / "states.json"
CASES: list[dict[str, Any]] = json.loads(FIXTURE.read_text("utf-8"))


def events_of(case: dict[str, Any]) -> list[Event]:
    return [codec.from_json(json.dumps(event)) for event in case["events"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_state_at_each_step_is_as_written_by_hand(case: dict[str, Any]) -> None:
    events = events_of(case)
    check(events)
    assert [state["step"] for state in case["states"]] == list(range(len(events) + 1))
    for expected in case["states"]:
        assert asdict(state_at(events, expected["step"])) == expected["state"], expected["step"]


def test_the_fixtures_end_for_every_reason() -> None:
    reasons = {case["events"][-1]["reason"] for case in CASES}
    assert reasons == {"eos", "length", "stop_string", "stopped", "timeout", "out_of_memory", "error"}


@given(traces())
def test_state_is_a_fold_and_agrees_with_the_trace(trace: Trace) -> None:
    state = State()
    for step, event in enumerate(trace.events, 1):
        state = advance(state, event)
        assert state == state_at(trace.events, step)
    assert (state.ttft, state.tpot) == (trace.ttft, trace.tpot)
    assert state.text == trace.output_text
    assert state.chosen == len(trace.output_ids)
    assert (state.reason != "") == (trace.finished is not None)


@given(traces())
def test_the_cache_holds_prompt_and_chosen_but_one(trace: Trace) -> None:
    for step in range(len(trace.events) + 1):
        state = state_at(trace.events, step)
        assert state.columns == state.read + state.decoded
        if state.chosen > state.decoded:  # between steps: the newest chosen token has no K and V yet
            assert state.columns == state.prompt + state.chosen - 1


@given(traces())
def test_nothing_goes_back_but_the_layers_of_a_chunk(trace: Trace) -> None:
    states = [state_at(trace.events, step) for step in range(len(trace.events) + 1)]
    for before, after in pairwise(states):
        assert before.at <= after.at
        assert (before.read, before.columns, before.chosen) <= (after.read, after.columns, after.chosen)
        assert after.text.startswith(before.text)
        assert after.read <= after.prompt
