"""The trace's own arithmetic: times from arrivals (case 6 of the field), norms as bytes, sizes of the cache."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace import Chose, State, Trace, Wrote, advance, itl, norm_byte, norm_of, state_at, tpot, ttft
from tests.engine.traces import FACTS, chose, run, started


def test_a_fake_clock() -> None:
    trace = run([0.50, 0.60, 0.75, 0.80])
    assert trace.ttft == 0.50
    assert trace.itl == pytest.approx([0.10, 0.15, 0.05])
    assert trace.tpot == pytest.approx(0.10)


def test_one_token_has_no_time_per_output_token() -> None:
    trace = run([0.50])
    assert (trace.ttft, trace.tpot, trace.itl) == (0.50, None, ())
    assert state_at(trace.events).tpot is None


def test_before_the_first_token_there_are_no_times() -> None:
    trace = Trace((started(0.25, "Hi!"),))
    assert (trace.ttft, trace.tpot, trace.itl, trace.output_ids, trace.output_text) == (None, None, (), (), "")
    assert (ttft([]), tpot([]), itl([])) == (None, None, ())


def test_three_tokens_released_together_are_still_three_tokens() -> None:
    whole = run([0.50, 0.60, 0.70, 0.80])
    first, *rest = [event for event in whole.events if isinstance(event, Wrote)]
    silent = [event for event in whole.events[:-1] if event not in rest]
    trace = Trace((*silent, Wrote(0.80, "aaa"), whole.events[-1]))
    assert first.at == 0.50
    assert trace.tpot == pytest.approx(0.10)
    assert trace.output_text == whole.output_text


def test_tokens_that_arrive_together() -> None:
    arrivals = [0.50, 0.80, 0.80, 0.80]
    assert tpot(arrivals) == pytest.approx(0.10)
    assert itl(arrivals) == pytest.approx([0.30, 0.0, 0.0])


def test_prompt_tokens_per_second() -> None:
    """1,024 prompt tokens in 0.50 s: 2,048 a second."""
    trace = run([0.50], words="a" * 1024)
    assert trace.ttft is not None
    assert state_at(trace.events).prompt / trace.ttft == 2048


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=20).map(sorted))
def test_tpot_is_the_mean_of_the_latencies(arrivals: list[float]) -> None:
    gaps = itl(arrivals)
    assert all(gap >= 0 for gap in gaps)
    assert tpot(arrivals) == pytest.approx(sum(gaps) / len(gaps), abs=1e-6)


def test_one_prefill() -> None:
    """7 prompt tokens, 4 new: the last chosen token has no K and V, so the cache ends with 10."""
    state = state_at(run([0.1, 0.2, 0.3, 0.4], words="seven!!").events)
    assert (state.prompt, state.chosen, state.decoded, state.columns) == (7, 4, 3, 10)
    assert state.kv_bytes == 10 * FACTS.kv_bytes_per_token


@pytest.mark.parametrize(
    ("layers", "kv_heads", "head_size", "tokens", "expected"),
    [
        (80, 8, 128, 131_072, 42_949_672_960),
        (80, 64, 128, 131_072, 343_597_383_680),
        (80, 1, 128, 131_072, 5_368_709_120),
        (36, 8, 128, 1, 147_456),
    ],
)
def test_bytes_of_the_cache(layers: int, kv_heads: int, head_size: int, tokens: int, expected: int) -> None:
    facts = replace(FACTS, layers=layers, kv_heads=kv_heads, head_size=head_size, value_bytes=2)
    assert facts.kv_bytes_per_token * tokens == expected


@given(st.floats(2**-7.9, 2**7.9))
def test_a_norm_survives_its_byte(norm: float) -> None:
    assert norm_of(norm_byte(norm)) == pytest.approx(norm, rel=0.022)


def test_norms_at_the_edges() -> None:
    assert norm_of(0) == 0.0
    assert norm_byte(0.0) == norm_byte(-1.0) == 0
    assert norm_byte(1e-30) == 1
    assert norm_byte(1e30) == 255


def test_a_special_token_is_not_held_back() -> None:
    word = chose(0.5)
    end = Chose(0.5, replace(word.token, special=True), 0.5, 0, 1.0, ())
    assert advance(State(), word).held == 1
    assert advance(State(), end).held == 0


def test_the_trace_needs_the_standard_library_only() -> None:
    code = (
        "import sys; import engine.trace, engine.trace.invariants, engine.trace.summary, engine.words\n"
        "print(sorted({'torch', 'pydantic', 'numpy', 'transformers'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
