"""The story itself: prefill, then one decode step after another, for all active runs together.

`step(model, runs, emit, hear)` does one turn: at most one prefill pass (whole, or a chunk when others are writing)
and one decode pass that advances every writing run; `engine.schedule` says who takes part. It yields nothing and
returns nothing; what happened is told to `emit(run, event)`. `hear()` is called between layers of a prefill, so that
whoever drives the loop can hear a stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from engine import clock, drafting, forgetting, keeping, prefix, reread, sampling, schedule, speculation
from engine import fork as forks
from engine.cache import RunCache, Tape
from engine.lens import Lens
from engine.model import LanguageModel
from engine.paged import Pool
from engine.settings import Refusal, Settings, check
from engine.tap import Pass, Way
from engine.text import StreamDecoder
from engine.trace import (
    Candidate,
    Chose,
    Decoded,
    Event,
    Finished,
    Layer,
    Prefilled,
    Queued,
    Reason,
    Started,
    Trace,
    Wrote,
)

CHUNK = 256
"""Prompt tokens per prefill pass while others are writing: their words wait for one chunk, not for the paper."""

Emit = Callable[["Run", Event], None]


class Halt(Exception):
    """Raised between two layers to give a forward pass up."""


class Run:
    """One person's exam. Everything of it is in here; the model knows nothing of it.

    `parent` is the run that `settings.fork` names, if it is kept; `drafts` the model that `settings.draft_model` names.
    Raises `Refusal` when the run cannot be taken: those of `engine.settings.check`, `engine.fork.check`,
    `engine.reread.check` and `engine.drafting.drafter`, `too_many_tokens`, `no_chat_template`, `no_layer`, `no_head`.
    """

    def __init__(
        self,
        run_id: str,
        settings: Settings,
        model: LanguageModel,
        pressed: float,
        now: Callable[[], float] = clock.now,
        parent: Run | None = None,
        drafts: LanguageModel | None = None,
    ) -> None:
        self.id = run_id
        self.settings = settings
        self.model = model
        self._pressed = pressed
        self._now = now
        check(settings)
        begin = now()
        self.prompt = model.text.prompt(settings)
        self.tokenise_seconds = now() - begin
        self.ids = [token.id for token in self.prompt.tokens]
        context = model.facts.context
        if not self.ids:
            raise Refusal("empty_prompt")
        if len(self.ids) >= context:
            raise Refusal("too_many_tokens", tokens=len(self.ids), bound=context - 1)
        self.limit = min(settings.max_new_tokens, context - len(self.ids))
        self.way = Way(_heads_off(settings, model), settings.kernel == "math", settings.grouped, settings.fused)
        self.chosen: list[int] = []
        self.told: list[Chose] = []
        """What was told of each chosen token; a fork goes on from there."""
        self.sampler = sampling.Sampler(settings)
        self.decoder = StreamDecoder(model.text, settings.stop)
        self.cache: RunCache | None = None
        self.tape: Tape | None = None
        self.finished = False
        self.stop_reason: Reason | None = None
        self.pool: Pool | None = None
        """Where blocks come from, for notes that are kept in blocks."""
        self.parent = parent if settings.fork else None
        """The run whose notes are taken over at the beginning: a fork's, or the one `engine.prefix` found."""
        self.taken = 0
        if settings.fork:
            forks.check(self, parent, settings.fork)
            self.limit = max(self.limit, settings.fork.kept + 1)
        self.begun = False
        """Whether `engine.schedule` has let it in; until then it waits."""
        self.opening: bool | None = None
        """For a run whose beginning, and wait before it, `step` is to tell: whether it is the model's first. None for
        one whose `Started` is told by who drives it."""
        self._ahead = 0
        self.read_at = 0.0
        """When a run without notes last read everything."""
        reread.check(self)
        self.drafter = drafting.drafter(settings, model, drafts, len(self.ids) + self.limit)
        """The smaller model that guesses ahead, where one was asked for."""

    @property
    def at(self) -> float:
        """Seconds since the person pressed start."""
        return self._now() - self._pressed

    @property
    def reading(self) -> bool:
        return not self.finished and not self.chosen

    @property
    def writing(self) -> bool:
        return not self.finished and bool(self.chosen)

    @property
    def full(self) -> bool:
        """Whether the notes have reached the bound that was set for them, so that the next pass has no room."""
        return self.cache is not None and self.cache.capacity < len(self.ids) + len(self.chosen)

    @property
    def lens(self) -> Lens:
        """Raises `Refusal("not_kept")` when the run's tensors are gone."""
        if self.cache is None or self.tape is None or not self.cache.length:
            raise Refusal("not_kept")
        return Lens(self.cache, self.tape, self.model.scaling)

    def due(self) -> Reason | None:
        """Why this run should end now, if it should."""
        if self.stop_reason is None and self.at > self.settings.timeout:
            self.stop_reason = "timeout"
        return self.stop_reason

    @property
    def place(self) -> schedule.Place:
        return schedule.Place(self.settings.batching, self.begun, bool(self.chosen))

    def open(self, emit: Emit) -> None:
        """Its paper is read from now on."""
        if self.opening is not None:
            emit(self, self.started(self.opening))
            self.opening = None

    def wait(self, ahead: int, emit: Emit) -> None:
        """Its paper is not read yet; `ahead` runs are before it."""
        if self.opening is not None and ahead != self._ahead:
            self._ahead = ahead
            emit(self, Queued(self.at, ahead))

    def started(self, cold: bool) -> Started:
        prompt = self.prompt
        return Started(
            self.at, self.model.facts, self.settings, prompt.text, prompt.tokens, prompt.own_start, prompt.own_stop,
            self.tokenise_seconds, cold, prompt.flagged,
        )  # fmt: skip

    def allocate(self) -> tuple[RunCache, Tape]:
        """The cache and the tape, on first use. Raises out-of-memory errors."""
        if self.cache is None or self.tape is None:
            capacity, memory = len(self.ids) + self.limit, self.settings.memory if self.settings.notes else 0
            shape, kept = self.model.shape, self.settings.keeping
            capacity = keeping.fitting(shape, kept, memory, capacity) if memory else capacity
            self.cache = keeping.make(shape, capacity, kept, self.pool)
            self.tape = Tape(self.model.shape, self.limit)
        return self.cache, self.tape


def step(model: LanguageModel, runs: Sequence[Run], emit: Emit, hear: Callable[[], None] = lambda: None) -> None:
    """One turn for all `runs` of one model, in the order in which they came. Runs that are over are marked
    `finished`."""
    for run in runs:
        if not run.finished and (reason := run.due()):
            finish(run, reason, emit)
    going = [run for run in runs if not run.finished]
    turn = schedule.turn([run.place for run in going])
    _let_in(going, turn, emit)
    writing = [going[number] for number in turn.writes]
    if turn.reads is not None:
        reading = going[turn.reads]
        begin = _take_over if reading.parent else partial(_prefill, model, chunked=bool(writing), hear=hear)
        _guard([reading], emit, partial(begin, run=reading, emit=emit))
    for run in writing:
        if run.full:
            _forget(run, emit, "notes_bound", bytes=run.settings.memory)
    forgetful = [run for run in writing if not run.settings.notes]
    writing = [run for run in writing if not run.finished and run.settings.notes]
    drafts: list[tuple[Run, list[int]]] = []
    for run in [run for run in writing if run.settings.draft]:
        _guard([run], emit, partial(_guess, run, drafts))
    for run, draft in drafts:
        _guard([run], emit, partial(speculation.step, run, draft, emit))
    drafted = [run for run, _ in drafts]
    writing = [run for run in writing if not run.finished and run not in drafted]
    for alike in ([run for run in writing if run.way.fused is fused] for fused in (True, False)):
        if alike:  # a pass goes one way for all of its runs
            _guard(alike, emit, partial(_decode, model, alike, emit))
    if forgetful:
        run = reread.next_of(forgetful)
        _guard([run], emit, partial(_read_again, model, run, emit, hear))


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


def complete(run: Run, cold: bool = False) -> Trace:
    """Drive one run alone to its end: its trace."""
    reset_peak(run.model.shape.device)
    events: list[Event] = [run.started(cold)]
    while not run.finished:
        step(run.model, [run], lambda _, event: events.append(event))
    return Trace(tuple(events))


def finish(run: Run, reason: Reason, emit: Emit, code: str = "", **values: str | int | float) -> None:
    """End a run: release what the decoder held back, then say why."""
    if text := run.decoder.flush():
        emit(run, Wrote(run.at, text))
    run.finished = True
    run.drafter = None  # its notes are of no use to anybody any more
    device = run.model.shape.device
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    emit(run, Finished(run.at, reason, code, tuple(values.items()), peak))


def reset_peak(device: torch.device) -> None:
    """Begin to watch peak memory anew; for a run that has the device to itself (others would lose their peak)."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def _guard(runs: list[Run], emit: Emit, work: Callable[[], None]) -> None:
    """Do `work` for `runs`; a failure ends the guilty one only. In a batch the guilty is found by stepping alone;
    out of memory is put down to the run with the largest cache, which frees most."""
    try:
        work()
    except Halt:
        for run in runs:
            finish(run, run.stop_reason or "stopped", emit)
    except Exception as error:  # noqa: BLE001 - whatever a model raises must reach the person as a sentence
        if len(runs) == 1:
            _fail(runs[0], error, emit)
        elif is_out_of_memory(error):
            _fail(max(runs, key=lambda run: run.cache.capacity if run.cache else 0), error, emit)
        else:
            for run in runs:
                _guard([run], emit, partial(_decode, run.model, [run], emit))


def _fail(run: Run, error: Exception, emit: Emit) -> None:
    if is_out_of_memory(error):
        _forget(run, emit, "out_of_memory")
        if run.model.shape.device.type == "cuda":
            torch.cuda.empty_cache()
    elif isinstance(error, Refusal) and error.code in ("notes_bound", "no_blocks"):
        _forget(run, emit, error.code, **error.values)
    elif isinstance(error, Refusal):
        finish(run, "error", emit, error.code, **error.values)
    else:
        finish(run, "error", emit, "model_failed", why=f"{type(error).__name__}: {error}"[:300])


def _forget(run: Run, emit: Emit, code: str, **values: str | int | float) -> None:
    """End a run whose notes have no room, and give back what they took."""
    run.cache = run.tape = None
    finish(run, "out_of_memory", emit, code, **values)


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA and MPS raise `torch.OutOfMemoryError` or say so; the CPU's allocator raises a plain RuntimeError."""
    text = str(error)
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
        isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)
    )


def _prefill(model: LanguageModel, run: Run, chunked: bool, emit: Emit, hear: Callable[[], None]) -> None:
    """One pass over the prompt, or over its next chunk; after the last one the first token is chosen."""
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
    emit(run, Prefilled(run.at, start, stop, sum(seconds), seconds[-1], reread.snapshot(run)))
    if stop == len(run.ids):
        _let_go(run, emit)
        _choose([run], logits, sampling.measure(logits), emit)


def _layer(run: Run, cache: RunCache, index: int, start: int, stop: int, seconds: float) -> Layer:
    at = run.at
    keys, values = cache.norm_bytes(slice(index, index + 1), start, stop)
    return Layer(at, index, start, stop, seconds, keys[0].numpy().tobytes(), values[0].numpy().tobytes())


def _guess(run: Run, drafts: list[tuple[Run, list[int]]]) -> None:
    """Put what is guessed to come next in `run` on the list, if anything is."""
    if draft := speculation.draft_of(run):
        drafts.append((run, draft))


def _decode(model: LanguageModel, runs: Sequence[Run], emit: Emit) -> None:
    """One forward pass for all runs that are writing, then each chooses its next token.

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
    for run, (cache, _), (keys, values) in zip(runs, pairs, norms, strict=True):
        event = Decoded(
            run.at, cache.length - 1, sum(seconds), seconds[:-1], seconds[-1], cache.snapshot(),
            keys.numpy().tobytes(), values.numpy().tobytes(), len(runs),
        )  # fmt: skip
        emit(run, event)
        _let_go(run, emit)
    _choose(runs, logits, told, emit)


def _let_go(run: Run, emit: Emit) -> None:
    if forgot := forgetting.let_go(run):
        emit(run, forgot)


def _read_again(model: LanguageModel, run: Run, emit: Emit, hear: Callable[[], None]) -> None:
    """One word of a run without notes: everything so far is read, then the next token is chosen."""

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
    emit(run, event)
    _choose([run], logits, told, emit)


def _choose(runs: Sequence[Run], logits: Tensor, told: sampling.Measured, emit: Emit) -> None:
    """Choose each run's next token from its row of `logits`; who cannot choose ends alone."""
    for row, run in enumerate(runs):
        _guard([run], emit, partial(choose_one, run, logits[row], told, row, emit))


def choose_one(run: Run, logits: Tensor, told: sampling.Measured, row: int, emit: Emit) -> None:
    """Choose, and tell what was chosen from. Raises `Refusal("not_finite")` for logits that are no numbers."""
    if not isfinite(told.entropy[row]):
        raise Refusal("not_finite", dtype=run.model.facts.dtype)
    index = run.sampler.choose(logits, run.ids + run.chosen)
    at = run.at
    own, listed = told.log_probabilities[row], told.ids[row]
    run.chosen.append(index)
    token, released = run.decoder.push(index)
    candidates = tuple(
        Candidate(other, run.model.text.piece(other), probability)
        for other, probability in zip(listed, told.probabilities[row], strict=True)
    )
    rank = listed.index(index) if index in listed else sampling.rank_of(own, index)
    chose = Chose(at, token, float(own[index].exp()), rank, told.entropy[row], candidates)
    run.told.append(chose)
    _tell(run, chose, released, emit)


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
    _tell(run, chose, released, emit)


def _tell(run: Run, chose: Chose, released: str, emit: Emit) -> None:
    emit(run, chose)
    if released:
        emit(run, Wrote(run.at, released))
    if reason := _over(run, chose.token.id):
        finish(run, reason, emit)


def _over(run: Run, index: int) -> Reason | None:
    if index in run.model.end_ids:
        return "eos"
    if run.decoder.stopped:
        return "stop_string"
    return "length" if len(run.chosen) >= run.limit else None


def _heads_off(settings: Settings, model: LanguageModel) -> dict[int, list[int]]:
    """The heads that are off, by layer. Raises `Refusal`: `no_layer`, `no_head`."""
    off: dict[int, list[int]] = {}
    for layer, head in sorted(set(settings.heads_off)):
        if not 0 <= layer < model.shape.layers:
            raise Refusal("no_layer", layer=layer + 1, layers=model.shape.layers)
        if not 0 <= head < model.shape.heads:
            raise Refusal("no_head", head=head + 1, heads=model.shape.heads)
        off.setdefault(layer, []).append(head)
    return off


def answer(model: LanguageModel, settings: Settings, **kwargs: Any) -> Trace:
    """One exam from start to end in this process: what the command line and the tests use."""
    return complete(Run("", settings, model, clock.now(), **kwargs))
