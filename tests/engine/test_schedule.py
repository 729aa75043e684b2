"""Who takes part in a turn: order of arrival, nobody starves, no step serves runs of two kinds; and real runs under
every policy answer as they do alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.measure import clock
from engine.run import Run, admit, step
from engine.run.schedule import Place, Turn, turn
from engine.settings import Batching
from engine.trace import Decoded, Event, Finished, Prefilled, Queued
from engine.trace.invariants import check
from tests.engine import tiny

KINDS: tuple[Batching, ...] = ("continuous", "static", "alone")


@dataclass
class Guest:
    """A run in miniature: passes of reading and words of writing that are left."""

    number: int
    batching: Batching
    comes: int
    chunks: int
    words: int
    begun: bool = False

    @property
    def place(self) -> Place:
        return Place(self.batching, self.begun, not self.chunks)


guests = st.lists(
    st.builds(
        Guest, st.just(0), st.sampled_from(KINDS), st.integers(0, 12), st.integers(1, 3), st.integers(1, 5)
    ),
    max_size=9,
)  # fmt: skip


def played(everybody: list[Guest]) -> list[tuple[list[Guest], Turn]]:
    """All turns until everybody is done, with who was there; a turn in which nothing is done would never end."""
    everybody = sorted(everybody, key=lambda guest: guest.comes)
    for number, guest in enumerate(everybody):
        guest.number = number
    told: list[tuple[list[Guest], Turn]] = []
    time = 0
    while any(guest.chunks or guest.words for guest in everybody):
        there = [guest for guest in everybody if guest.comes <= time and (guest.chunks or guest.words)]
        time += 1
        if not there:
            continue
        one = turn([guest.place for guest in there])
        told.append((there, one))
        for number in one.begins:
            there[number].begun = True
        assert one.reads is not None or one.writes, "a turn does something"
        for number in one.writes:
            there[number].words -= 1
        if one.reads is not None:
            there[one.reads].chunks -= 1
        assert time < 1000
    return told


@given(guests)
def test_everybody_is_served_in_the_order_in_which_they_came(everybody: list[Guest]) -> None:
    begun = [there[number].number for there, one in played(everybody) for number in one.begins]
    assert begun == list(range(len(everybody))), "each begins once, nobody overtakes"


@given(guests)
def test_kinds_are_never_mixed(everybody: list[Guest]) -> None:
    for there, one in played(everybody):
        part = [guest for number, guest in enumerate(there) if number not in one.waits]
        assert len({guest.batching for guest in part}) == 1
        if part[0].batching == "alone":
            assert len(part) == 1
        if part[0].batching == "static" and any(place.chunks for place in part):
            assert one.reads is not None


@given(guests)
def test_a_static_batch_begins_together_or_waits_for_all_of_the_one_before(everybody: list[Guest]) -> None:
    for there, one in played(everybody):
        begins = [there[number] for number in one.begins]
        if begins and begins[0].batching == "static":
            waiting = [guest for guest in there[len(begins) :] if guest.batching == "static"]
            ahead = [guest for guest in there if guest.batching != "static"]
            assert begins[0] is there[0], "the desk is free"
            assert not waiting or (ahead and ahead[0].number < waiting[0].number), "who waits with them begins too"


@given(guests)
def test_who_reads_and_writes_has_begun_and_does_one_thing(everybody: list[Guest]) -> None:
    for there, one in played(everybody):
        part = {*one.writes, *(() if one.reads is None else (one.reads,))}
        assert not part & {*one.waits}
        assert one.reads not in one.writes
        assert [*one.waits] == sorted(one.waits) and (not one.waits or one.waits[-1] == len(there) - 1)


def test_a_turn_worked_by_hand() -> None:
    writing = Place("continuous", True, True)
    assert turn([writing, Place(), Place("alone"), Place()]) == Turn((1,), (2, 3), 1, (0,))
    assert turn([Place("alone"), Place()]) == Turn((0,), (1,), 0, ())
    assert turn([Place("static", True, True), Place("static", True)]) == Turn((), (), 1, ())
    assert turn([Place("static"), Place("static"), Place()]) == Turn((0, 1), (2,), 0, ())
    assert turn([]) == Turn((), (), None, ())


def together(
    kind: str, exams: list[Any], press: dict[int, int] | None = None
) -> tuple[list[Run], dict[str, list[Event]]]:
    """Runs that come as `press` says (by turn; all at once without), driven as the engine process does."""
    runs = [admit(str(number), exam, tiny.model(kind), clock.now()) for number, exam in enumerate(exams)]
    told: dict[str, list[Event]] = {run.id: [] for run in runs}
    for run in runs:
        run.opening = False
    turns = 0
    while any(not run.finished for run in runs):
        there = [run for number, run in enumerate(runs) if (press or {}).get(number, 0) <= turns and not run.finished]
        if there:
            step(there[0].model, there, lambda run, event: told[run.id].append(event))
        turns += 1
    return runs, told


@pytest.mark.parametrize("batching", KINDS)
@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_answers_are_those_of_each_alone(kind: str, batching: Batching) -> None:
    papers = [tiny.PAPER, "Luna", tiny.PAPER[:25], "Max sleeps"]
    exams = [tiny.raw(text, batching=batching, max_new_tokens=6 + number) for number, text in enumerate(papers)]
    runs, told = together(kind, exams, {1: 2, 2: 3, 3: 9})
    for run, exam in zip(runs, exams, strict=True):
        check(told[run.id])
        assert tuple(run.chosen) == tiny.sit(kind, exam).output_ids


def test_kinds_may_meet_and_all_are_answered() -> None:
    exams = [tiny.raw(tiny.PAPER[:20], batching=one, max_new_tokens=5) for one in (*KINDS, *reversed(KINDS))]
    runs, told = together("llama", exams)
    for run, exam in zip(runs, exams, strict=True):
        assert tuple(run.chosen) == tiny.sit("llama", exam).output_ids
        check(told[run.id])
    widths = {run.settings.batching: {e.together for e in told[run.id] if isinstance(e, Decoded)} for run in runs}
    assert widths["alone"] <= {1}


def test_who_waits_says_how_many_are_before_it_and_starts_when_it_begins() -> None:
    runs = [tiny.exam("llama", tiny.raw(tiny.PAPER[:20], batching="alone", max_new_tokens=4), id=i) for i in "012"]
    told: dict[str, list[Event]] = {run.id: [] for run in runs}
    order: list[tuple[str, str]] = []
    for run in runs:
        run.opening = False

    def emit(run: Run, event: Event) -> None:
        told[run.id].append(event)
        order.append((run.id, event.type))

    while any(not run.finished for run in runs):
        step(runs[0].model, runs, emit)
    kinds = {name: [event.type for event in events] for name, events in told.items()}
    assert kinds["0"][0] == "started" and kinds["1"][:2] == ["queued", "started"]
    assert kinds["2"][:3] == ["queued", "queued", "started"]
    assert [event.ahead for event in told["2"] if isinstance(event, Queued)] == [2, 1]
    assert order.index(("1", "finished")) < order.index(("2", "started"))


def test_who_waits_for_anothers_paper_to_be_read_has_not_started_yet() -> None:
    runs = [tiny.exam("llama", tiny.raw(tiny.PAPER, chunk=16, max_new_tokens=4), id=name) for name in "ab"]
    order: list[tuple[str, str]] = []
    for run in runs:
        run.opening = False
    while any(not run.finished for run in runs):
        step(runs[0].model, [run for run in runs if not run.finished], lambda run, e: order.append((run.id, e.type)))
    assert [kind for name, kind in order if name == "b"][:2] == ["queued", "started"]
    assert order.index(("b", "queued")) < order.index(("a", "prefilled")) < order.index(("b", "started"))


def test_a_static_batch_reads_first_and_writes_in_step() -> None:
    exams = [tiny.raw(text, batching="static", max_new_tokens=5) for text in (tiny.PAPER, "Luna", "Max")]
    model = replace(tiny.model("llama"), end_ids=frozenset())
    runs = [admit(str(number), exam, model, clock.now()) for number, exam in enumerate(exams)]
    order: list[tuple[str, str]] = []
    while any(not run.finished for run in runs):
        step(model, runs, lambda run, event: order.append((run.id, event.type)))
    passes = [pair for pair in order if pair[1] in ("prefilled", "decoded")]
    assert passes[:3] == [("0", "prefilled"), ("1", "prefilled"), ("2", "prefilled")]
    assert passes[3:] == [(name, "decoded") for _ in range(4) for name in "012"]


@pytest.mark.parametrize("end", ["stopped", "timeout"])
def test_who_waits_can_be_stopped_and_runs_out_of_time(end: str) -> None:
    model, time = tiny.model("llama"), [0.0]
    first, second = (
        admit(name, tiny.raw(batching="alone", timeout=5), model, 0.0, now=lambda: time[0]) for name in ("a", "b")
    )
    first.settings = replace(first.settings, timeout=600)
    told: list[tuple[str, Event]] = []
    step(model, [first, second], lambda run, event: told.append((run.id, event)))
    assert first.chosen and not second.begun
    if end == "stopped":
        second.stop_reason = "stopped"
    else:
        time[0] = 6.0
    step(model, [first, second], lambda run, event: told.append((run.id, event)))
    assert second.finished and [e.reason for n, e in told if n == "b" and isinstance(e, Finished)] == [end]
    assert second.cache is None, "nothing was set aside for it"


@pytest.mark.parametrize("chunk", [1, 3, 7, 2**17])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_chunk_changes_nothing_of_either_answer(kind: str, chunk: int) -> None:
    """A second paper arrives while the first is answered, and is read in chunks."""
    exams = [tiny.raw("Luna"), tiny.raw(tiny.PAPER[:30], chunk=chunk)]
    runs, told = together(kind, exams, {1: 3})
    for run, exam in zip(runs, exams, strict=True):
        assert tuple(run.chosen) == tiny.sit(kind, replace(exam, chunk=0)).output_ids
    passes = [(event.start, event.stop) for event in told["1"] if isinstance(event, Prefilled)]
    n = len(runs[1].ids)
    assert passes == [(start, min(start + chunk, n)) for start in range(0, n, chunk)]
