"""What is told of the KV cache is what lies in the run's own tensors; an old column that changed is caught."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
import torch

from engine.jobs import notes
from engine.process import EngineProcess
from engine.run import Run, complete, step
from engine.settings import Refusal
from engine.trace import Chose, Decoded, Prefilled
from tests.engine import tiny
from tests.engine.test_process import Line, on, serve, submit

KINDS: tuple[notes.Kind, ...] = ("key", "value")


def finished(kind: str, tokens: int = 50) -> Run:
    run = tiny.exam(kind, tiny.raw(tiny.PAPER[:tokens]))
    complete(run)
    return run


def library(run: Run, kind: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """K and V `(kv_heads, n, head_size)` per layer as the library's own cache holds them (no window has slid in it)."""
    from transformers import DynamicCache

    cache = DynamicCache()
    with torch.inference_mode():
        tiny.network(kind)(torch.tensor([[*run.ids, *run.chosen[:-1]]]), cache=cache)
    return [(layer.keys[0], layer.values[0]) for layer in cache.layers]


def numbers(told: dict[str, Any]) -> np.ndarray[Any, Any]:
    values = np.frombuffer(told["values"], np.int8).reshape(told["positions"], told["size"])
    return values / np.float32(notes.FULL) * np.frombuffer(told["scales"], "<f4")


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_numbers_told_are_the_librarys_own_notes_to_eight_bits(kind: str) -> None:
    run = finished(kind)
    assert run.cache is not None
    for layer, pair in enumerate(library(run, kind)):
        for name, tensor in zip(KINDS, pair, strict=True):
            assert tensor.shape[0] == run.cache.shape.kv_heads
            for head in range(tensor.shape[0]):
                told = notes.values_of(run.cache, layer, name, head)
                assert (told["positions"], told["size"]) == (run.cache.length, tensor.shape[2])
                expected = tensor[head].numpy()
                scales = np.frombuffer(told["scales"], "<f4")
                np.testing.assert_allclose(scales, np.abs(expected).max(0), rtol=1e-4)
                assert (np.abs(numbers(told) - expected) <= scales * 0.501 / notes.FULL + 1e-4).all()


def test_a_dimension_of_zeros_is_zeros_and_not_a_division_by_nothing() -> None:
    run = finished("llama")
    assert run.cache is not None
    run.cache.keys[1][0, :, 3] = 0
    told = numbers(notes.values_of(run.cache, 1, "key", 0))
    assert (told[:, 3] == 0).all() and np.isfinite(told).all()


def test_a_window_that_slid_on_says_from_where_it_still_sees() -> None:
    run = finished("gemma3")
    assert run.cache is not None
    first = run.cache.length - (tiny.WINDOW - 1)
    assert [notes.values_of(run.cache, layer, "key", 0)["first"] for layer in range(3)] == [first, 0, first]
    assert [notes.first_seen(run.cache, layer) for layer in range(3)] == [first, 0, first]
    # What is still seen is what the engine itself lets the next position see beside itself.
    seen = [key.shape[2] - 1 for key, _ in run.cache.seen_next()]
    assert seen == [run.cache.length - notes.first_seen(run.cache, layer) for layer in range(3)]


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_tensors_take_what_formula_and_trace_say(kind: str) -> None:
    run = tiny.exam(kind, tiny.raw(tiny.PAPER[:50]))
    trace = complete(run)
    assert run.cache is not None
    told = notes.bytes_of(run.cache)
    last = [event for event in trace.events if isinstance(event, (Prefilled, Decoded))][-1].kv
    assert (told["length"], sum(told["layers"]), told["allocated"]) == (last.length, last.bytes, last.allocated)
    facts = run.model.facts
    per_note = 2 * facts.kv_heads * facts.head_size * facts.value_bytes
    kept = [min(last.length, facts.window - 1) if one == "sliding" else last.length for one in facts.layer_kinds]
    assert told["layers"] == [per_note * count for count in kept]
    assert told["held"] == facts.kv_bytes_per_token * last.length >= sum(told["layers"])
    assert told["allocated"] == facts.kv_bytes_per_token * told["capacity"]


@pytest.mark.parametrize(
    ("layer", "head", "code"), [(3, 0, "no_layer"), (-1, 0, "no_layer"), (0, 2, "no_kv_head"), (0, -1, "no_kv_head")]
)
def test_a_layer_or_head_that_is_not_there_is_refused(layer: int, head: int, code: str) -> None:
    run = finished("llama")
    assert run.cache is not None
    with pytest.raises(Refusal, match=code):
        notes.values_of(run.cache, layer, "key", head)


def stepped(run: Run, watch: notes.Watch) -> None:
    """One turn, and what the engine does after it."""
    step(run.model, [run], lambda _, event: None)
    watch.after_step()


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_every_column_has_the_same_sum_before_and_after_every_step(kind: str) -> None:
    run = tiny.exam(kind, tiny.raw(tiny.PAPER[:50]))
    step(run.model, [run], lambda _, event: None)
    watch = notes.Watch(run)
    watch.check(asked=True)
    while not run.finished:
        stepped(run, watch)
    assert [check.length for check in watch.checks] == list(range(len(run.ids), len(run.ids) + len(run.chosen)))
    assert [check.asked for check in watch.checks] == [True] + [False] * (len(run.chosen) - 1)
    last = watch.checks[-1].sums
    for check in watch.checks:
        assert len(check.sums) == check.length * notes.SUM_BYTES
        assert last.startswith(check.sums)
    sums = {last[at : at + notes.SUM_BYTES] for at in range(0, len(last), notes.SUM_BYTES)}
    assert len(sums) == watch.checks[-1].length, "no two columns are alike: keys are rotated by their position"


def test_a_sum_is_that_of_the_columns_bytes_in_all_layers() -> None:
    run = finished("llama", tokens=90)
    assert run.cache is not None and run.cache.length > notes.BLOCK
    sums = list(notes.column_sums(run.cache))
    assert len(sums) == run.cache.length
    for position in (0, 1, notes.BLOCK - 1, notes.BLOCK, run.cache.length - 1):
        pairs = zip(run.cache.keys, run.cache.values, strict=True)
        column = b"".join(tensor[:, position].numpy().tobytes() for pair in pairs for tensor in pair)
        assert sums[position] == blake2b(column, digest_size=8).digest()


@pytest.mark.parametrize(("layer", "head", "position", "dimension"), [(0, 0, 0, 0), (1, 1, 17, 5), (2, 0, 44, 7)])
@pytest.mark.parametrize("kind", KINDS)
def test_one_number_changed_in_an_old_column_is_seen(
    layer: int, head: int, position: int, dimension: int, kind: str
) -> None:
    """The proof can fail: the smallest change there is, in one number of one layer, changes that column's sum alone."""
    run = tiny.exam("llama", tiny.raw(tiny.PAPER[:70]))
    step(run.model, [run], lambda _, event: None)
    watch = notes.Watch(run)
    watch.check(asked=True)
    stepped(run, watch)
    assert run.cache is not None
    tensor = (run.cache.keys if kind == "key" else run.cache.values)[layer][head]
    tensor[position, dimension] = torch.nextafter(tensor[position, dimension], torch.tensor(torch.inf))
    stepped(run, watch)
    before, after = (watch.checks[number].sums for number in (1, 2))
    changed = [at for at in range(len(before) // 8) if before[8 * at : 8 * at + 8] != after[8 * at : 8 * at + 8]]
    assert changed == [position]


def test_a_watched_run_is_checked_by_the_engine_between_all_its_steps() -> None:
    watching = ("job", "1", "watch_columns", {"run": "a"})
    line = Line(submit("a", tiny.raw(tiny.PAPER[:50])), submit("b", tiny.raw("Luna")), reply=on(Chose, 1, watching))
    engine = serve(line)
    assert ("result", "1", 1) in line.heard
    answer = len([event for event in line.events("a") if isinstance(event, Chose)])
    checks, prompt = notes.columns(engine, "a", 0), len(engine.run("a").ids)
    assert [check[0] for check in checks] == list(range(prompt, prompt + answer))
    assert len(checks) > 5 and notes.columns(engine, "a", 3) == checks[3:] and notes.columns(engine, "b", 0) == []
    assert [check[2] for check in checks] == [True] + [False] * (answer - 1)
    assert all(seconds >= 0 and len(sums) == 16 * length for length, sums, _, seconds in checks)
    line.waiting += [("job", "2", "watch_columns", {"run": "a"}), ("release", "a")]
    with pytest.raises(EOFError):
        engine.serve()
    assert ("result", "2", answer + 1) in line.heard
    assert engine.watches == {}, "what is watched goes when its notes go"


def test_the_jobs_answer_for_a_kept_run_and_refuse_what_is_not_there() -> None:
    line = Line(submit("a", tiny.raw(tiny.PAPER[:50])))
    engine = serve(line)
    run = engine.run("a")
    assert run.cache is not None and run.tape is not None
    assert notes.note_values(engine, "a", 1, "value", 1) == notes.values_of(run.cache, 1, "value", 1)
    assert notes.note_bytes(engine, "a") == {**notes.bytes_of(run.cache), "queries": run.tape.bytes}
    with pytest.raises(Refusal, match="not_kept"):
        notes.note_bytes(engine, "never")


@pytest.mark.parametrize("work", [lambda e: notes.note_bytes(e, "a"), lambda e: notes.watch_columns(e, "a")])
def test_a_run_without_notes_says_so(work: Any) -> None:
    engine = EngineProcess.__new__(EngineProcess)
    run = tiny.exam("llama", tiny.raw(), id="a")
    engine.active, engine.kept, engine.watches = {"a": run}, {}, {}
    with pytest.raises(Refusal, match="no_notes"):
        work(engine)
    run.allocate()
    with pytest.raises(Refusal, match="no_notes"):
        work(engine)
    run.cache, run.finished = None, True
    with pytest.raises(Refusal, match="notes_not_kept"):
        work(engine)
    assert engine.watches == {}


def test_a_run_with_too_many_notes_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(submit("a", tiny.raw(tiny.PAPER[:50])))
    engine = serve(line)
    monkeypatch.setattr(notes, "MOST_WATCHED", 1000)
    with pytest.raises(Refusal, match="too_long_to_watch"):
        notes.watch_columns(engine, "a")
