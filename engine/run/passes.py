"""The forward passes of a run: over its paper, over its newest token (with others' at once), or over everything again.

Each gives what came of it (`Done`); nothing is chosen here, and only a prefill's layers are told, while it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.cache import RunCache
from engine.model import LanguageModel
from engine.model.tap import Pass
from engine.run import reread, sampling
from engine.run.ending import Halt
from engine.run.run import Emit, Run
from engine.settings import Refusal
from engine.trace import Decoded, Event, Layer, Prefilled

CHUNK = 256
"""Prompt tokens per prefill pass while others are writing: their words wait for one chunk, not for the paper."""


@dataclass(frozen=True, slots=True)
class Done:
    """A pass that is over: an event for each run, and what its next token is chosen from, a row of `logits` and its
    measures each. Both are None while the paper is not read whole."""

    runs: Sequence[Run]
    events: Sequence[Event]
    logits: Tensor | None
    measured: sampling.Measured | None


def prefill(model: LanguageModel, run: Run, chunked: bool, emit: Emit, hear: Callable[[], None]) -> Done:
    """One pass over the prompt, or over its next chunk. Its layers are told while it goes on."""
    cache, tape = run.allocate()
    if run.full:
        raise Refusal("notes_bound", bytes=run.settings.memory)
    start = cache.length
    chunk = run.settings.chunk or (CHUNK if chunked else len(run.ids))
    stop = min(start + chunk, len(run.ids)) if run.settings.notes else len(run.ids)
    live = model.shape.device.type == "cpu"

    def on_layer(index: int, seconds: float) -> None:
        if live:
            emit(run, _layer(run, cache, index, start, stop, seconds))
        hear()
        if run.due():
            raise Halt

    one = Pass([cache], stop - start, on_layer, ways=[run.way])
    logits = model.forward([run.ids[start:stop]], one)
    one.marks.mark()
    seconds = one.marks.seconds()
    if not live:  # the device runs ahead of us: only now its times are known
        for index in range(model.shape.layers):
            emit(run, _layer(run, cache, index, start, stop, seconds[index]))
    one.commit_chunk(tape)
    event = Prefilled(run.at, start, stop, sum(seconds), seconds[-1], reread.snapshot(run))
    if stop < len(run.ids):
        return Done([run], [event], None, None)
    return Done([run], [event], logits, sampling.measure(logits))


def _layer(run: Run, cache: RunCache, index: int, start: int, stop: int, seconds: float) -> Layer:
    at = run.at
    keys, values = cache.norm_bytes(slice(index, index + 1), start, stop)
    return Layer(at, index, start, stop, seconds, keys[0].numpy().tobytes(), values[0].numpy().tobytes())


def decode(model: LanguageModel, runs: Sequence[Run]) -> Done:
    """One forward pass for all runs that are writing: each one's newest token goes through the model.

    All that can fail is done before the pass is committed: each run then has taken the step, or none has.
    """
    pairs = [run.allocate() for run in runs]
    one = Pass([cache for cache, _ in pairs], 1, ways=[run.way for run in runs])
    logits = model.forward([[run.chosen[-1]] for run in runs], one)
    one.marks.mark()
    told = sampling.measure(logits)
    norms = [cache.norm_bytes(slice(None), cache.length, cache.length + 1) for cache, _ in pairs]
    seconds = tuple(one.marks.seconds())
    one.commit_rows([tape for _, tape in pairs])
    events = [
        Decoded(
            run.at, cache.length - 1, sum(seconds), seconds[:-1], seconds[-1], cache.snapshot(),
            keys.numpy().tobytes(), values.numpy().tobytes(), len(runs),
        )
        for run, (cache, _), (keys, values) in zip(runs, pairs, norms, strict=True)
    ]  # fmt: skip
    return Done(runs, events, logits, told)


def read_again(model: LanguageModel, run: Run, hear: Callable[[], None]) -> Done:
    """For one word of a run without notes: everything so far goes through the model once more."""

    def on_layer(index: int, seconds: float) -> None:
        hear()
        if run.due():
            raise Halt

    ids = reread.forget(run)
    cache, _ = run.allocate()
    one = Pass([cache], len(ids), on_layer, ways=[run.way])
    logits = model.forward([ids], one)
    one.marks.mark()
    event, told = reread.told(run, one, logits)
    return Done([run], [event], logits, told)
