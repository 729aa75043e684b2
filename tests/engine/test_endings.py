"""Every way a run can end; the others go on, the desk is free, and the next run works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.cache import RunCache
from engine.jobs import attention
from engine.measure import clock
from engine.model import LanguageModel
from engine.model.tap import Pass
from engine.run import Run, admit, complete, passes, step
from engine.run.sampling import Sampler
from engine.settings import Refusal
from engine.trace import Chose, Event, Finished, Layer, Prefilled, Trace
from tests.engine import tiny

KIND = "qwen3"
LENGTH = 12


def finished(events: list[Event]) -> Finished:
    last = events[-1]
    assert isinstance(last, Finished) and sum(isinstance(event, Finished) for event in events) == 1
    return last


def reason(trace: Trace) -> str:
    assert trace.finished is not None
    return trace.finished.reason


def test_length() -> None:
    trace = tiny.sit(KIND, tiny.raw())
    assert (reason(trace), len(trace.output_ids)) == ("length", LENGTH)


def test_the_context_is_a_length_too() -> None:
    """A paper that fills all but three positions leaves room for three words; one that fills all is refused."""
    trace = tiny.sit(KIND, tiny.raw("a" * (tiny.CONTEXT - 3), max_new_tokens=40))
    assert (reason(trace), len(trace.output_ids)) == ("length", 3)
    with pytest.raises(Refusal) as refused:
        tiny.exam(KIND, tiny.raw("a" * tiny.CONTEXT))
    assert refused.value.code == "too_many_tokens"
    assert refused.value.values == {"tokens": tiny.CONTEXT, "bound": tiny.CONTEXT - 1}


def test_eos_is_chosen_and_ends_the_answer() -> None:
    ids = tiny.sit(KIND, tiny.raw()).output_ids
    end = ids[4]
    model = replace(tiny.model(KIND), end_ids=frozenset({end, 1}))
    trace = complete(admit("", tiny.raw(), model, clock.now()))
    assert reason(trace) == "eos"
    assert trace.output_ids == ids[: ids.index(end) + 1]


def test_a_stop_string_is_not_part_of_the_answer() -> None:
    whole = tiny.sit(KIND, tiny.raw()).output_text
    stop = whole[5:7]
    trace = tiny.sit(KIND, tiny.raw(stop=("never this", stop)))
    assert reason(trace) == "stop_string"
    assert trace.output_text == whole[: whole.index(stop)]
    assert len(trace.output_ids) < LENGTH


@pytest.mark.parametrize("at", [0, 1])
def test_a_stop_takes_effect_within_one_layer_of_a_prefill(at: int) -> None:
    run, events = tiny.exam(KIND, tiny.raw()), []

    def hear() -> None:
        if sum(isinstance(event, Layer) for event in events) == at + 1:
            run.stop_reason = "stopped"

    step(run.model, [run], lambda _, event: events.append(event), hear)
    assert [event.type for event in events] == ["layer"] * (at + 1) + ["finished"]
    assert finished(events).reason == "stopped"
    assert run.cache is not None and run.cache.length == 0 and run.tape is not None and run.tape.length == 0
    with pytest.raises(Refusal, match="not_kept"):
        attention.looks_of(run)
    assert tiny.sit(KIND, tiny.raw()).output_ids == tiny.sit(KIND, tiny.raw()).output_ids


def test_a_stop_between_two_chunks_keeps_the_chunks_that_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "CHUNK", 10)
    writer, reader = tiny.exam(KIND, tiny.raw("Luna"), "writer"), tiny.exam(KIND, tiny.raw(), "reader")
    told: dict[str, list[Event]] = {"writer": [], "reader": []}
    emit: Callable[[Run, Event], None] = lambda run, event: told[run.id].append(event)  # noqa: E731
    step(writer.model, [writer], emit)
    step(writer.model, [writer, reader], emit)
    reader.stop_reason = "stopped"
    tiny.drive([writer, reader], told)
    assert [event.type for event in told["reader"]] == ["layer"] * 3 + ["prefilled", "finished"]
    assert reader.cache is not None and reader.cache.length == reader.lens.length == 10
    with pytest.raises(Refusal, match="not_kept"):
        attention.looks_of(reader)
    assert tuple(writer.chosen) == tiny.sit(KIND, tiny.raw("Luna")).output_ids


def test_a_stop_while_writing_ends_before_the_next_word() -> None:
    run, events = tiny.exam(KIND, tiny.raw()), []
    while len(run.chosen) < 3:
        step(run.model, [run], lambda _, event: events.append(event))
    run.stop_reason = "stopped"
    step(run.model, [run], lambda _, event: events.append(event))
    assert (finished(events).reason, len(run.chosen)) == ("stopped", 3)


class Time:
    """A clock that goes on by a second each time somebody looks."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        self.seconds += 1
        return self.seconds


def test_a_timeout_while_reading_and_while_writing() -> None:
    reading = complete(admit("", tiny.raw(timeout=6), tiny.model(KIND), 100.0, now=Time()))
    assert reason(reading) == "timeout" and not reading.output_ids
    assert [event.type for event in reading.events].count("layer") == 2
    writing = complete(admit("", tiny.raw(timeout=40), tiny.model(KIND), 100.0, now=Time()))
    assert reason(writing) == "timeout" and 1 < len(writing.output_ids) < LENGTH
    assert writing.finished is not None and writing.finished.at >= 40


def test_a_run_that_waits_for_its_turn_times_out_too() -> None:
    first = tiny.exam(KIND, tiny.raw(), "first")
    late = admit("late", tiny.raw(timeout=5), first.model, clock.now() - 6)
    told = tiny.drive([first, late])
    assert [event.type for event in told["late"]] == ["finished"] and finished(told["late"]).reason == "timeout"
    assert finished(told["first"]).reason == "length"


def together(count: int = 3) -> list[Run]:
    return [tiny.exam(KIND, tiny.raw(tiny.PAPER[: 10 + 10 * number]), str(number)) for number in range(count)]


def alone(run: Run) -> tuple[int, ...]:
    return tiny.sit(KIND, run.settings).output_ids


def test_no_room_for_a_cache_ends_the_guilty_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = together()
    make = RunCache.__init__

    def full(self: RunCache, shape: Any, capacity: int) -> None:
        if capacity == len(runs[1].ids) + LENGTH:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
        make(self, shape, capacity)

    with monkeypatch.context() as patch:
        patch.setattr(RunCache, "__init__", full)
        told = tiny.drive(runs)
    assert [finished(told[run.id]).reason for run in runs] == ["length", "out_of_memory", "length"]
    assert finished(told["1"]).code == "out_of_memory"
    assert [tuple(run.chosen) for run in runs] == [alone(runs[0]), (), alone(runs[2])]


class Faulty:
    """A model whose forward raises when `guilty` says so of a pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception, guilty: Callable[[Pass], bool]) -> None:
        real, self.raised = LanguageModel.forward, 0

        def forward(model: LanguageModel, ids: list[list[int]], one: Pass) -> Tensor:
            logits = real(model, ids, one)
            if guilty(one):
                self.raised += 1
                raise error
            return logits

        monkeypatch.setattr(LanguageModel, "forward", forward)


def test_memory_that_runs_out_while_many_write_ends_the_largest_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = together()
    with monkeypatch.context() as patch:
        error = RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory")
        fault = Faulty(patch, error, lambda one: len(one.caches) == 3)
        told = tiny.drive(runs)
    assert fault.raised == 1
    assert [finished(told[run.id]).reason for run in runs] == ["length", "length", "out_of_memory"]
    assert [tuple(run.chosen) for run in runs[:2]] == [alone(runs[0]), alone(runs[1])]
    assert runs[2].cache is None and runs[2].tape is None


@pytest.mark.parametrize("tokens", [1, 20], ids=["writing", "reading"])
def test_an_error_inside_a_forward_ends_the_run_that_caused_it(monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    runs = together()

    def guilty(one: Pass) -> bool:
        return any(cache.capacity == len(runs[1].ids) + LENGTH for cache in one.caches) and (one.tokens == 1) == (
            tokens == 1
        )

    with monkeypatch.context() as patch:
        Faulty(patch, ValueError("index 7 is out of bounds"), guilty)
        told = tiny.drive(runs)
    assert [finished(told[run.id]).reason for run in runs] == ["length", "error", "length"]
    end = finished(told["1"])
    assert (end.code, dict(end.values)) == ("model_failed", {"why": "ValueError: index 7 is out of bounds"})
    assert [tuple(run.chosen) for run in (runs[0], runs[2])] == [alone(runs[0]), alone(runs[2])]
    again = tiny.exam(KIND, runs[1].settings)
    assert reason(complete(again)) == "length"


def test_who_cannot_choose_ends_alone_and_nobody_takes_a_step_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass was kept when the second of three runs fails: the third must not take it again."""
    runs = together()
    real = Sampler.choose

    def choose(self: Sampler, logits: Tensor, ids: Sequence[int]) -> int:
        if self is runs[1].sampler and len(runs[1].chosen) == 4:
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        return real(self, logits, ids)

    with monkeypatch.context() as patch:
        patch.setattr(Sampler, "choose", choose)
        told = tiny.drive(runs)
    assert [finished(told[run.id]).reason for run in runs] == ["length", "error", "length"]
    for run in (runs[0], runs[2]):
        assert tuple(run.chosen) == alone(run)
        assert run.lens.length == len(run.ids) + LENGTH - 1
    assert len(attention.looks_of(runs[1])["looks"]) > 0


def test_logits_that_are_no_numbers_are_an_error_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = LanguageModel.forward
    with monkeypatch.context() as patch:
        patch.setattr(LanguageModel, "forward", lambda model, ids, one: real(model, ids, one) * float("nan"))
        trace = tiny.sit(KIND, tiny.raw())
    assert trace.finished is not None and not trace.output_ids
    assert (trace.finished.reason, trace.finished.code) == ("error", "not_finite")
    assert any(isinstance(event, Prefilled) for event in trace.events)
    assert not any(isinstance(event, Chose) for event in trace.events)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"prompt": ""}, "empty_prompt"),
        ({"prompt": " \n\t "}, "empty_prompt"),
        ({"prompt": "a" * 100_000}, "prompt_too_long"),
        ({"prompt": "half \ud83d"}, "lone_surrogate"),
        ({"temperature": float("nan")}, "out_of_range"),
        ({"max_new_tokens": 0}, "out_of_range"),
        ({"stop": ("",)}, "stop_length"),
    ],
)
def test_what_cannot_be_sat_is_refused_before_anything_is_reserved(settings: dict[str, Any], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        tiny.exam(KIND, tiny.raw(**settings))
    assert refused.value.code == code
