"""Every rule of a trace: legal ones pass, and one small change that breaks each rule is found where it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from engine.trace import Candidate, Event, Finished, Queued, Started, Trace, state_at
from engine.trace.invariants import BrokenTrace, check
from tests.engine.traces import FACTS, chunk, decoded, kv, run, started, token, traces

EVENTS = list(run([0.5, 0.75]).events)
STARTED, LAYER, SECOND_LAYER, PREFILLED, CHOSE, WROTE, DECODED = range(7)
FINISHED = len(EVENTS) - 1


@given(traces())
def test_legal_traces_pass(trace: Trace) -> None:
    assert check(trace.events) == state_at(trace.events)


def changed(number: int, **fields: Any) -> list[Event]:
    events = list(EVENTS)
    events[number] = replace(events[number], **fields)
    return events


def with_facts(**fields: Any) -> list[Event]:
    return changed(STARTED, facts=replace(FACTS, **fields))


def with_token(number: int, **fields: Any) -> list[Event]:
    broken = replace(token("H"), **fields)
    rest = (token("i", 1), token("!", 2))
    return changed(number, **({"prompt": (broken, *rest)} if number == STARTED else {"token": broken}))


def without(number: int) -> list[Event]:
    return EVENTS[:number] + EVENTS[number + 1 :]


def again(number: int) -> list[Event]:
    return EVENTS[: number + 1] + EVENTS[number:]


BROKEN: dict[str, tuple[int, list[Event]]] = {
    "time goes back": (WROTE, changed(WROTE, at=0.25)),
    "time before the start": (STARTED, changed(STARTED, at=-1.0)),
    "not started": (0, without(STARTED)),
    "started twice": (1, again(STARTED)),
    "queued after the start": (1, [EVENTS[0], Queued(0.0, 1)]),
    "fewer than none ahead": (0, [Queued(0.0, -1)]),
    "finished twice": (FINISHED + 1, again(FINISHED)),
    "goes on after the end": (1, [Finished(0.0, "stopped"), EVENTS[0]]),
    "a negative peak": (FINISHED, changed(FINISHED, peak_bytes=-1)),
    "no layers": (STARTED, with_facts(layers=0, layer_kinds=())),
    "heads in no groups": (STARTED, with_facts(kv_heads=3)),
    "a layer without a kind": (STARTED, with_facts(layer_kinds=("full",))),
    "a prompt longer than the context": (STARTED, with_facts(context=2)),
    "no prompt": (0, [started(0.0, "")]),
    "own words outside": (STARTED, changed(STARTED, own_stop=4)),
    "own words backwards": (STARTED, changed(STARTED, own_start=2, own_stop=1)),
    "a flag outside": (STARTED, changed(STARTED, flagged=(3,))),
    "tokenised in no time at all": (STARTED, changed(STARTED, tokenise_seconds=-0.1)),
    "a prompt token not in the vocabulary": (STARTED, with_token(STARTED, id=300)),
    "a span backwards": (STARTED, with_token(STARTED, start=1, stop=0)),
    "a span past the text": (STARTED, with_token(STARTED, stop=4)),
    "a layer too many": (SECOND_LAYER + 1, again(SECOND_LAYER)),
    "a layer missing": (LAYER, without(LAYER)),
    "a chunk that leaves a gap": (LAYER, changed(LAYER, start=1, key_norms=b"ab", value_norms=b"ab")),
    "an empty chunk": (LAYER, changed(LAYER, stop=0, key_norms=b"", value_norms=b"")),
    "a chunk past the prompt": (LAYER, changed(LAYER, stop=4, key_norms=b"abcd", value_norms=b"abcd")),
    "layers of two chunks": (SECOND_LAYER, changed(SECOND_LAYER, stop=2, key_norms=b"ab", value_norms=b"ab")),
    "a norm too few": (LAYER, changed(LAYER, key_norms=b"ab")),
    "a norm too many": (LAYER, changed(LAYER, value_norms=b"abcd")),
    "a layer in negative time": (LAYER, changed(LAYER, seconds=-0.1)),
    "a chunk with a layer to go": (SECOND_LAYER, without(SECOND_LAYER)),
    "a pass over other positions": (PREFILLED, changed(PREFILLED, start=1)),
    "a pass shorter than its layers": (PREFILLED, changed(PREFILLED, stop=2, kv=kv(2))),
    "a pass in negative time": (PREFILLED, changed(PREFILLED, rest_seconds=-0.1)),
    "a cache too short": (PREFILLED, changed(PREFILLED, kv=kv(2))),
    "notes larger than their paper": (PREFILLED, changed(PREFILLED, kv=replace(kv(3), allocated=1))),
    "a token before the prompt is read": (PREFILLED, without(PREFILLED)),
    "two tokens in one step": (CHOSE + 1, again(CHOSE)),
    "a token not in the vocabulary": (CHOSE, with_token(CHOSE, id=-1)),
    "a rank past the vocabulary": (CHOSE, changed(CHOSE, rank=300)),
    "more than certain": (CHOSE, changed(CHOSE, probability=1.01)),
    "a candidate not in the vocabulary": (CHOSE, changed(CHOSE, candidates=(Candidate(300, "a", 0.5),))),
    "a candidate more than certain": (CHOSE, changed(CHOSE, candidates=(Candidate(7, "a", 1.5),))),
    "a step without a token": (CHOSE, [*EVENTS[:CHOSE], replace(decoded(0.5, 3), kv=kv(3))]),
    "a prefill after the first token": (WROTE + 1, [*EVENTS[: WROTE + 1], *chunk(0.5, 0, 3)]),
    "a position skipped": (DECODED, changed(DECODED, position=4)),
    "a layer without a time": (DECODED, changed(DECODED, layer_seconds=(0.1,))),
    "a step in negative time": (DECODED, changed(DECODED, seconds=-0.1)),
    "a layer without a norm": (DECODED, changed(DECODED, value_norms=b"a")),
    "a step of nobody": (DECODED, changed(DECODED, together=0)),
    "a column missing": (DECODED, changed(DECODED, kv=kv(3))),
    "text from nothing": (1, [EVENTS[STARTED], EVENTS[WROTE]]),
}


@pytest.mark.parametrize(("number", "events"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_is_found_where_it_is(number: int, events: list[Event]) -> None:
    with pytest.raises(BrokenTrace) as broken:
        check(events)
    assert broken.value.number == number


def test_the_example_itself_is_legal() -> None:
    assert isinstance(EVENTS[STARTED], Started)
    assert check(EVENTS).phase == "done"
