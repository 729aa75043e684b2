"""The story itself: prefill, then one decode step after another, for all active runs together.

`step(model, runs, emit, hear)` does one turn, in three verbs. *Schedule*: who begins, who waits, who reads, who writes
(`engine.run.schedule` decides). *Run*: at most one prefill pass (whole, or a chunk when others are writing) and one
decode pass that advances every writing run (`engine.run.passes`). *Tell*: what came of a pass, and the word each run
chooses from it. It returns nothing; what happened is told to `emit(run, event)`. `hear()` is called between layers of a
prefill, so that whoever drives the loop can hear a stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from engine.measure import clock
from engine.model import LanguageModel
from engine.run import forgetting, passes, prefix, reread, schedule, speculation
from engine.run import fork as forks
from engine.run.admit import admit
from engine.run.choosing import choose_one, tell
from engine.run.ending import Halt, fail, finish, forget, is_out_of_memory, reset_peak
from engine.run.passes import Done
from engine.run.run import Emit, Run
from engine.settings import Settings
from engine.trace import Event, Trace

Work = Callable[[Sequence[Run]], Done | None]
"""What one pass does for its runs; None where it has told by itself what came of it."""


def step(model: LanguageModel, runs: Sequence[Run], emit: Emit, hear: Callable[[], None] = lambda: None) -> None:
    """One turn for all `runs` of one model, in the order in which they came. Runs that are over are marked
    `finished`."""
    reading, writing = _schedule(runs, emit)
    for group, work in _work(model, reading, writing, emit, hear):
        for done in _run(group, work, emit):
            _tell(done, emit)


def complete(run: Run, cold: bool = False) -> Trace:
    """Drive one run alone to its end: its trace."""
    reset_peak(run.model.shape.device)
    events: list[Event] = [run.started(cold)]
    while not run.finished:
        step(run.model, [run], lambda _, event: events.append(event))
    return Trace(tuple(events))


def answer(model: LanguageModel, settings: Settings, **kwargs: Any) -> Trace:
    """One exam from start to end in this process: what the command line and the tests use."""
    return complete(admit("", settings, model, clock.now(), **kwargs))


def _schedule(runs: Sequence[Run], emit: Emit) -> tuple[Run | None, list[Run]]:
    """End who is due, let in whose turn it is; whose paper is read now, and who then write a word."""
    for run in runs:
        if not run.finished and (reason := run.due()):
            finish(run, reason, emit)
    going = [run for run in runs if not run.finished]
    turn = schedule.turn([run.place for run in going])
    _let_in(going, turn, emit)
    return None if turn.reads is None else going[turn.reads], [going[number] for number in turn.writes]


def _let_in(going: Sequence[Run], turn: schedule.Turn, emit: Emit) -> None:
    """Those whose turn it is begin. One paper is read at a time: whoever waits, to be let in or for the papers of those
    before it, is told how many are before it; it has started when its own is read."""
    for number in turn.begins:
        going[number].begun = True
    for number in turn.waits:
        going[number].wait(number, emit)
    for ahead, run in enumerate(run for run in going if run.begun and not run.chosen):
        if ahead:
            run.wait(ahead, emit)
        else:
            run.open(emit)


def _work(
    model: LanguageModel, reading: Run | None, writing: list[Run], emit: Emit, hear: Callable[[], None]
) -> Iterator[tuple[list[Run], Work]]:
    """The turn's passes, one after another, each with the runs it is for; who ended in one is not in the next."""
    if reading:
        if reading.parent:
            yield [reading], lambda _: _take_over(reading, emit)
        else:
            yield [reading], lambda _: passes.prefill(model, reading, bool(writing), emit, hear)
    for run in writing:
        if run.full:
            forget(run, emit, "notes_bound", bytes=run.settings.memory)
    drafted: list[Run] = []
    for run in writing:
        if not run.finished and run.settings.notes and run.settings.draft:
            yield [run], partial(_guess, emit=emit, drafted=drafted)
    plain = [run for run in writing if run.settings.notes and not run.finished and run not in drafted]
    for fused in (True, False):  # a pass goes one way for all of its runs
        if alike := [run for run in plain if run.way.fused is fused]:
            yield alike, partial(passes.decode, model)
    if forgetful := [run for run in writing if not run.settings.notes and not run.finished]:
        run = reread.next_of(forgetful)
        yield [run], lambda _: passes.read_again(model, run, hear)


def _run(runs: Sequence[Run], work: Work, emit: Emit) -> Iterator[Done]:
    """Do `work` for `runs`; a failure ends the guilty one only. In a batch the guilty is found by stepping alone;
    out of memory is put down to the run with the largest cache, which frees most."""
    try:
        done = work(runs)
    except Halt:
        for run in runs:
            finish(run, run.stop_reason or "stopped", emit)
    except Exception as error:  # noqa: BLE001 - whatever a model raises must reach the person as a sentence
        if len(runs) == 1:
            fail(runs[0], error, emit)
        elif is_out_of_memory(error):
            fail(max(runs, key=lambda run: run.cache.capacity if run.cache else 0), error, emit)
        else:
            for run in runs:
                yield from _run([run], work, emit)
    else:
        if done is not None:
            yield done


def _tell(done: Done, emit: Emit) -> None:
    """What came of a pass, then the word that each of its runs chooses; who cannot choose ends alone."""
    for run, event in zip(done.runs, done.events, strict=True):
        emit(run, event)
    if done.logits is None:
        return
    for row, run in enumerate(done.runs):
        try:
            _choose(run, done, row, emit)
        except Exception as error:  # noqa: BLE001 - as above; its neighbours have taken the step
            fail(run, error, emit)


def _choose(run: Run, done: Done, row: int, emit: Emit) -> None:
    assert done.logits is not None and done.measured is not None
    if run.settings.notes and (forgot := forgetting.let_go(run)):
        emit(run, forgot)
    choose_one(run, done.logits[row], done.measured, row, emit)


def _guess(runs: Sequence[Run], emit: Emit, drafted: list[Run]) -> None:
    """For a run with drafts: what is guessed to come next is read in one pass; nothing is done where nothing is."""
    (run,) = runs
    if draft := speculation.draft_of(run):
        drafted.append(run)
        speculation.step(run, draft, emit)


def _take_over(run: Run, emit: Emit) -> None:
    """Another run's notes; for a fork its words too, and the word put in place of its."""
    parent, fork = run.parent, run.settings.fork
    if fork is None:
        emit(run, prefix.take_over(run))
        run.parent = None
        return
    assert parent is not None
    run.parent = None
    reused, chose, released = forks.take_over(run, parent, fork)
    emit(run, reused)
    tell(run, chose, released, emit)
