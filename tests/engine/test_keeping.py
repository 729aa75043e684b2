"""Other ways to keep notes: what they change, what they must not, and what they take."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cache import RunCache
from engine.cache.forgetting import ForgettingCache
from engine.cache.keeping import bytes_at, make
from engine.cache.paged import PagedCache, Pool
from engine.cache.quantised import BITS, QuantisedCache, read_back, squeeze
from engine.jobs import attention
from engine.measure import clock
from engine.run import Run, admit, complete
from engine.run.prefix import look_for
from engine.settings import Fork, Keeping, Refusal
from engine.trace import Decoded, Forgot, Layer, Prefilled, Reused, Trace
from engine.trace.invariants import check
from tests.engine import tiny

pytestmark = pytest.mark.slow

PAPER = tiny.PAPER[:60]
ALL = [Keeping(dtype="fp8"), Keeping(dtype="int8"), Keeping(dtype="int4"), Keeping(dtype="int2"),
       Keeping(last=6, first=2), Keeping(last=4, first=2, heavy=5), Keeping(block=4), Keeping(block=16)]  # fmt: skip


def exam(kind: str, keeping: Keeping, paper: str = PAPER, **how: Any) -> Run:
    return tiny.exam(kind, tiny.raw(paper, keeping=keeping, **how), "first")


@pytest.mark.parametrize("keeping", ALL, ids=str)
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_every_way_gives_an_ordinary_trace_with_its_own_bytes(kind: str, keeping: Keeping) -> None:
    run = exam(kind, keeping)
    trace = complete(run)
    check(trace.events)
    assert trace.finished is not None and trace.finished.reason == "length"
    assert run.cache is not None
    told = [event.kv for event in trace.events if isinstance(event, (Prefilled, Decoded, Forgot))]
    if not keeping.block:
        assert told[-1].bytes == bytes_at(run.model.shape, keeping)(run.cache.length)
    assert all(kv.bytes <= kv.allocated for kv in told)
    assert attention.looks_of(run)["lens"]


@pytest.mark.parametrize("keeping", ALL, ids=str)
def test_the_last_word_read_once_more_on_the_notes_says_the_same(keeping: Keeping) -> None:
    """What a later look at a run is made from: the notes as they were before its last position."""
    from engine.jobs.choices import read_again

    run = exam("llama", keeping)
    complete(run)
    # the paper's last position was read while the others' notes were not squeezed yet
    first = 1 if keeping.dtype != "model" else 0
    for step in (first, first + 1, len(run.chosen) - 1):
        assert int(read_again(run, step).argmax()) == run.chosen[step]


@pytest.mark.parametrize("keeping", ALL, ids=str)
@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_the_lens_shows_what_was_read(kind: str, keeping: Keeping) -> None:
    """Rows sum to 1; what was forgotten has no weight in the rows after it."""
    run = exam(kind, keeping)
    trace = complete(run)
    gone = {position: event.at for event in trace.events if isinstance(event, Forgot) for position in event.positions}
    steps = [event for event in trace.events if isinstance(event, Decoded)]
    for step in steps:
        row = run.lens.row(2, 1, step.position)
        assert float(row.sum()) == pytest.approx(1, abs=1e-5)
        dead = [position for position, at in gone.items() if at < step.at]
        assert float(row[dead].sum()) == 0
    assert bool(gone) == bool(keeping.last)


@pytest.mark.parametrize("size", [1, 4, 16])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_blocks_change_no_word(kind: str, size: int) -> None:
    usual = tiny.sit(kind, tiny.raw(PAPER)).output_ids
    run = exam(kind, Keeping(block=size))
    trace = complete(run)
    assert trace.output_ids == usual
    cache = run.cache
    assert isinstance(cache, PagedCache)
    assert len(cache.table) == -(-cache.length // size)
    last = [event.kv for event in trace.events if isinstance(event, Decoded)][-1]
    assert last.allocated == len(cache.table) * cache.pool.block_bytes


def test_blocks_are_shared_by_a_fork_and_copied_when_written() -> None:
    parent = exam("llama", Keeping(block=4))
    parent.pool = Pool(parent.model.shape, 64, 4)
    complete(parent)
    cache = parent.cache
    assert isinstance(cache, PagedCache)
    before = [cache.notes(slice(None), 0, cache.length).clone(), list(cache.table)]
    for kept in (1, 4, 6):
        exam_ = replace(parent.settings, fork=Fork("first", kept, parent.chosen[kept]))
        run = admit("second", exam_, parent.model, clock.now(), parent=parent)
        run.pool = parent.pool
        assert complete(run).output_ids == tuple(parent.chosen)
        mine = run.cache
        assert isinstance(mine, PagedCache)
        whole = (len(run.ids) + kept) // 4
        assert mine.table[:whole] == cache.table[:whole]
        assert not set(mine.table[whole:]) & set(cache.table)
        assert torch.equal(cache.notes(slice(None), 0, cache.length), before[0]) and cache.table == before[1]


def test_blocks_come_back() -> None:
    pool = Pool(tiny.model("llama").shape, 40, 4)
    runs = [exam("llama", Keeping(block=4), PAPER[: 10 + 7 * k]) for k in range(3)]
    for run in runs:
        run.pool = pool
    tiny.drive([replace_id(run, str(k)) for k, run in enumerate(runs)])
    assert pool.free < 40
    del run
    runs.clear()
    gc.collect()
    assert pool.free == 40 and not any(pool.holders)


def replace_id(run: Run, id: str) -> Run:
    run.id = id
    return run


def test_no_block_left_is_out_of_memory_with_a_sentence_and_the_neighbour_goes_on() -> None:
    pool = Pool(tiny.model("llama").shape, 22, 4)
    runs = [replace_id(exam("llama", Keeping(block=4), PAPER[:30]), str(k)) for k in range(3)]
    for run in runs:
        run.pool = pool
    told = tiny.drive(runs)
    ends = [told[run.id][-1] for run in runs]
    codes = sorted(f"{end.reason} {end.code}" for end in ends)  # type: ignore[union-attr]
    assert "out_of_memory no_blocks" in codes and "length " in codes
    usual = tiny.sit("llama", tiny.raw(PAPER[:30])).output_ids
    for run, end in zip(runs, ends, strict=True):
        if end.reason == "length":  # type: ignore[union-attr]
            assert tuple(run.chosen) == usual


@given(
    st.lists(st.tuples(st.sampled_from(["grow", "fork", "drop"]), st.integers(0, 5), st.integers(1, 9)), max_size=40)
)
@settings(deadline=None, max_examples=60)
def test_no_block_is_lost_nor_shared_by_accident(actions: list[tuple[str, int, int]]) -> None:
    """Whatever grows, forks and goes: every cache reads what it wrote, and holders are those that hold."""
    shape = replace(tiny.model("llama").shape, layers=1, kv_heads=1, head_size=2, heads=1, windows=(0,))
    pool = Pool(shape, 64, 4)
    caches: list[tuple[PagedCache, list[float]]] = [(PagedCache(shape, 99, pool), [])]
    number = 0.0
    for action, which, count in actions:
        cache, written = caches[which % len(caches)] if caches else (PagedCache(shape, 99, pool), [])
        if action == "grow" and pool.free > 4 and cache.length + count < 99:
            values = [number + k for k in range(count)]
            number += count
            notes = torch.tensor(values)[None, :, None].expand(1, count, 2)
            cache.write(0, notes, -notes)
            cache.commit(count)
            written += values
        elif action == "fork" and written:
            caches.append((PagedCache(shape, 99, pool), written[: min(count, cache.length)]))
            caches[-1][0].take(cache, min(count, cache.length))
        elif action == "drop" and len(caches) > 1:
            caches.remove((cache, written))
        del cache, written
        _hold_what_they_wrote(pool, caches)


def _hold_what_they_wrote(pool: Pool, caches: list[tuple[PagedCache, list[float]]]) -> None:
    for held, values in caches:
        assert held.keys[0][0, : held.length, 0].tolist() == values
        assert held.values[0][0, : held.length, 1].tolist() == [-value for value in values]
    tables = [block for held, _ in caches for block in held.table]
    assert [pool.holders[block] for block in range(64)] == [tables.count(block) for block in range(64)]
    assert pool.free == 64 - len(set(tables))


@pytest.mark.parametrize("size", [2, 16, 64, 80, 128])
@pytest.mark.parametrize("dtype", BITS)
def test_what_is_squeezed_is_read_back_within_half_a_step(dtype: str, size: int) -> None:
    generator = torch.Generator().manual_seed(3)
    notes = torch.randn((2, 3, 5, size), generator=generator) * 4 + 1
    notes[0, 0, 0] = 0.0
    codes, scales = squeeze(notes, dtype)
    back = read_back(codes, scales, dtype, size)
    assert codes.dtype == torch.uint8 and codes.shape[-1] == -(-size * BITS[dtype] // 8)
    for first in range(0, size, 64):
        part = slice(first, min(first + 64, size))
        spread = notes[..., part].amax(-1) - notes[..., part].amin(-1)
        most = notes[..., part].abs().amax(-1)
        bound = most / 14 if dtype == "fp8" else spread / (2 ** BITS[dtype] - 1) / 2 * 1.01 + most * 2e-3
        assert bool(((back[..., part] - notes[..., part]).abs().amax(-1) <= bound + 1e-6).all())


def test_fewer_bits_are_fewer_bytes_and_more_error() -> None:
    usual = tiny.exam("llama", tiny.raw(PAPER), "x")
    complete(usual)
    assert usual.cache is not None
    exact, sizes, errors = usual.cache.notes(slice(None), 0, 20), [], []
    for dtype in ("int8", "int4", "int2"):
        cache = make(usual.model.shape, 40, Keeping(dtype=dtype))  # type: ignore[arg-type]
        assert isinstance(cache, QuantisedCache)
        cache.take(usual.cache, 20)
        sizes.append(cache.snapshot().bytes)
        errors.append(float((cache.notes(slice(None), 0, 20) - exact).square().mean()))
    assert sizes == sorted(sizes, reverse=True) and errors == sorted(errors)
    assert 0 < errors[0] < errors[2] / 100


def test_eight_bits_hardly_change_what_is_said() -> None:
    usual, squeezed = (complete(exam("llama", keeping)) for keeping in (Keeping(), Keeping(dtype="int8")))
    assert usual.chosen[0].probability == squeezed.chosen[0].probability  # the paper itself is read as it is
    assert usual.chosen[1].probability == pytest.approx(squeezed.chosen[1].probability, abs=0.02)
    assert usual.chosen[1].probability != squeezed.chosen[1].probability


def kept_of(trace: Trace, upto: int) -> set[int]:
    """Positions that are still there after the first `upto` events."""
    there: set[int] = set()
    for event in trace.events[:upto]:
        if isinstance(event, (Prefilled, Decoded)):
            there |= set(range(event.kv.length)) - {
                p for e in trace.events[:upto] if isinstance(e, Forgot) for p in e.positions
            }
    return there


def test_a_window_with_a_sink_keeps_the_first_and_the_newest() -> None:
    run = exam("llama", Keeping(first=2, last=6))
    trace = complete(run)
    for number, event in enumerate(trace.events, 1):
        if isinstance(event, Forgot):
            length = event.kv.length
            assert kept_of(trace, number) == {0, 1, *range(length - 6, length)}
            assert event.kv.bytes == run.model.shape.bytes_at(8)


def test_what_was_looked_at_most_stays() -> None:
    run = exam("llama", Keeping(first=1, last=4, heavy=3))
    trace = complete(run)
    usual = exam("llama", Keeping())
    complete(usual)
    prompt = len(run.ids)
    looked = sum(usual.lens.rows(layer, prompt - 32, prompt).sum((0, 1)) for layer in range(3))
    rest = range(1, prompt - 4)
    heavy = set(sorted(rest, key=lambda position: -float(looked[position]))[:3])  # type: ignore[index]
    first = next(number for number, event in enumerate(trace.events, 1) if isinstance(event, Forgot))
    assert kept_of(trace, first) == {0, *heavy, *range(prompt - 4, prompt)}


def test_words_are_chosen_from_what_is_left() -> None:
    """The library's model over the kept positions alone, each at its own place, says the same."""
    keeping = Keeping(first=2, last=6)
    run = exam("llama", keeping)
    trace = complete(run)
    cache = run.cache
    assert isinstance(cache, ForgettingCache)
    plain = RunCache(run.model.shape, 90)
    plain.take(cache, len(run.ids))
    kept = [0, 1, *range(len(run.ids) - 6, len(run.ids))]
    from transformers import DynamicCache

    theirs = DynamicCache()
    for layer in range(run.model.shape.layers):
        theirs.update(plain.keys[layer][None, :, kept], plain.values[layer][None, :, kept], layer)
    place = torch.tensor([[len(run.ids)]])
    network = tiny.network("llama", "sdpa")
    with torch.inference_mode():
        logits = network(torch.tensor([[run.chosen[0]]]), position_ids=place, cache=theirs).logits[0, -1]
    assert int(logits.argmax()) == trace.output_ids[1]


PREFIX = "The cat sat on the mat. "


def beside(first: Run, paper: str, **how: Any) -> tuple[Run, Trace]:
    run = tiny.exam("llama", replace(first.settings, prompt=paper, reuse=True, **how), "second")
    run.pool = first.pool
    look_for(run, [first])
    return run, complete(run)


@pytest.mark.parametrize("keeping", [Keeping(), Keeping(block=4)], ids=str)
def test_a_beginning_that_is_known_is_not_read_again(keeping: Keeping) -> None:
    first = exam("llama", keeping, PREFIX + "Who?")
    first.pool = Pool(first.model.shape, 64, 4) if keeping.block else None
    complete(first)
    assert first.cache is not None
    before = first.cache.notes(slice(None), 0, first.cache.length).clone()
    run, trace = beside(first, PREFIX + "Where?")
    check(trace.events)
    same = next(k for k, pair in enumerate(zip(run.ids, first.ids, strict=False)) if pair[0] != pair[1])
    reused = trace.reused
    assert isinstance(reused, Reused)
    assert reused.stop == (same // 4 * 4 if keeping.block else same) and reused.written == ()
    lengths = [event.stop - event.start for event in trace.events if isinstance(event, Prefilled)]
    assert lengths == [len(run.ids) - reused.stop]
    assert trace.output_ids == tiny.sit("llama", tiny.raw(PREFIX + "Where?")).output_ids
    assert torch.equal(first.cache.notes(slice(None), 0, first.cache.length), before)
    for row in (3, reused.stop, len(run.ids)):
        usual = tiny.exam("llama", tiny.raw(PREFIX + "Where?"))
        complete(usual)
        assert torch.allclose(run.lens.row(2, 1, row), usual.lens.row(2, 1, row), atol=1e-5)


def test_the_same_paper_still_reads_its_last_position() -> None:
    first = exam("llama", Keeping(), PREFIX)
    complete(first)
    run, trace = beside(first, PREFIX)
    layers = [event for event in trace.events if isinstance(event, Layer)]
    assert {(event.start, event.stop) for event in layers} == {(len(run.ids) - 1, len(run.ids))}
    assert trace.output_ids == tuple(first.chosen)


def test_what_was_written_can_be_a_beginning_too() -> None:
    first = exam("llama", Keeping(), PREFIX)
    complete(first)
    text = first.model.text
    assert text.prompt(first.settings).text == PREFIX
    run = tiny.exam("llama", replace(first.settings, reuse=True), "second")
    run.ids = [*first.ids, *first.chosen[:5], 40]
    look_for(run, [first])
    assert run.taken == len(first.ids) + 5


@pytest.mark.parametrize(
    "how",
    [{"heads_off": ((0, 0),)}, {"keeping": Keeping(dtype="int8")}, {"keeping": Keeping(block=4)}, {"notes": False}],
)
def test_notes_that_would_be_others_are_not_taken(how: dict[str, Any]) -> None:
    first = exam("llama", Keeping(), PREFIX + "Who?")
    complete(first)
    run = tiny.exam("llama", replace(first.settings, prompt=PREFIX + "Where?", reuse=True, **how), "second")
    look_for(run, [first])
    assert run.parent is None and complete(run).reused is None


def test_nothing_alike_nothing_taken() -> None:
    first = exam("llama", Keeping(), "xyz")
    complete(first)
    run, trace = beside(first, PREFIX)
    assert trace.reused is None and trace.output_ids == tiny.sit("llama", tiny.raw(PREFIX)).output_ids
    look_for(run, [])


def test_who_forgets_cannot_be_gone_on_from() -> None:
    first = exam("llama", Keeping(last=4))
    complete(first)
    with pytest.raises(Refusal) as refused:
        admit(
            "second",
            replace(first.settings, fork=Fork("first", 2, first.chosen[2])),
            first.model,
            clock.now(),
            parent=first,
        )
    assert refused.value.code == "fork_forgets"
