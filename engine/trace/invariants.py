"""What is true of every trace, live or from a file. Standard library only.

The engine's tests hold its runs to these rules; `engine.trace.file` holds a stranger's file to them, so whatever
draws a trace may rely on them. `docs/trace.md` tells them in prose.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.trace import (
    KV,
    Chose,
    Decoded,
    Event,
    Facts,
    Finished,
    Forgot,
    Layer,
    Prefilled,
    Queued,
    Reused,
    Started,
    State,
    Token,
    Wrote,
    advance,
)

_LONGEST = 1e9
"""Seconds. Differences of much larger numbers would be no times any more."""
_ROUNDING = 1e-6
"""A probability summed in fp32 may come out this much above 1."""


class BrokenTrace(ValueError):
    """An event breaks a rule. `number` counts events from 0."""

    def __init__(self, number: int, rule: str) -> None:
        super().__init__(f"event {number}: {rule}")
        self.number = number


class _Rule(ValueError):
    """The rule that does not hold, before it is known which event broke it."""


def check(events: Iterable[Event]) -> State:
    """The state after all events. Raises `BrokenTrace` at the first event that cannot follow those before it."""
    state, started = State(), None
    for number, event in enumerate(events):
        try:
            _check_event(event, state, started)
        except _Rule as rule:
            raise BrokenTrace(number, str(rule)) from None
        started = event if isinstance(event, Started) else started
        state = advance(state, event)
    return state


def _check_event(event: Event, state: State, started: Started | None) -> None:
    _need(event.at >= state.at, "`at` never goes back")
    _need(event.at <= _LONGEST, "a run takes less than thirty years")
    _need(state.phase != "done", "nothing follows `finished`")
    match event:
        case Queued():
            _need(state.phase in ("idle", "queued"), "a run queues before it starts")
            _need(event.ahead >= 0, "`ahead` is a count")
        case Started():
            _need(state.phase in ("idle", "queued"), "a run starts once")
            _check_started(event)
        case Finished():
            _need(event.peak_bytes >= 0, "`peak_bytes` is a size")
        case _:
            _need(started is not None, "the run has started")
            assert started is not None
            _check_step(event, state, started)


def _check_started(event: Started) -> None:
    facts, tokens = event.facts, len(event.prompt)
    _need(min(facts.layers, facts.heads, facts.kv_heads, facts.head_size, facts.vocabulary) >= 1, "sizes are positive")
    _need(facts.heads % facts.kv_heads == 0, "KV heads divide the heads")
    _need(len(facts.layer_kinds) == facts.layers, "every layer has a kind")
    _need(1 <= tokens <= facts.context, "the prompt has tokens and fits the context")
    _need(0 <= event.own_start <= event.own_stop <= tokens, "own words lie in the prompt")
    _need(all(0 <= position < tokens for position in event.flagged), "flags are prompt positions")
    _need(event.tokenise_seconds >= 0, "times are not negative")
    for token in event.prompt:
        _check_token(token, facts.vocabulary)
        _need(token.stop <= len(event.text), "a token's span lies in the rendered prompt")


_Step = Reused | Layer | Prefilled | Chose | Decoded | Forgot | Wrote


def _check_step(event: _Step, state: State, started: Started) -> None:
    facts, prompt, notes = started.facts, state.prompt, started.settings.notes
    match event:
        case Reused():
            _need(notes, "a run without notes takes none over")
            _check_reused(event, state, facts)
        case Layer():
            _need(event.index == state.layers < facts.layers, "layers come in order")
            _need(event.start == state.read < event.stop <= prompt, "a chunk begins where the last one ended")
            _need(event.index == 0 or event.stop == state.chunk_stop, "all layers read the same chunk")
            _need(event.seconds >= 0, "times are not negative")
            _need(len(event.key_norms) == len(event.value_norms) == event.stop - event.start, "a norm per position")
        case Prefilled():
            _need(state.layers == facts.layers, "a chunk ends when every layer has it")
            _need((event.start, event.stop) == (state.chunk_start, state.chunk_stop), "the chunk is its layers' chunk")
            _need(min(event.seconds, event.rest_seconds) >= 0, "times are not negative")
            _check_kv(event.kv, event.stop if notes else 0)
        case Chose():
            _need(state.read == prompt, "the whole prompt is read before a token is chosen")
            _need(state.decoded >= state.chosen, "a token is chosen after each decode step")
            _check_choice(event, facts.vocabulary)
        case Decoded():
            _need(state.decoded == state.chosen - 1, "a decode step reads the newest chosen token")
            _need(event.position == prompt + state.decoded, "positions come one after another")
            _need(len(event.layer_seconds) == facts.layers, "a time per layer")
            _need(min(event.seconds, event.rest_seconds, *event.layer_seconds) >= 0, "times are not negative")
            _need(0 <= event.accepted <= len(event.drafts), "what is accepted was drafted")
            _need(all(0 <= one.id < facts.vocabulary for one in event.drafts), "ids are in the vocabulary")
            _need(all(0 <= one.probability <= 1 + _ROUNDING for one in event.drafts), "probabilities are from 0 to 1")
            marks = facts.layers * (1 + event.accepted)
            _need(len(event.key_norms) == len(event.value_norms) == marks, "a norm per layer and position")
            _need(event.together >= 1, "the run itself shares the step")
            read = 1 + len(event.drafts) if notes else event.position + 1
            _need(event.read == read, "one position is read, and its drafts; or without notes all")
            _check_kv(event.kv, prompt + state.chosen + event.accepted if notes else 0)
        case Forgot():
            _need(notes, "who keeps no notes forgets none")
            _need(list(event.positions) == sorted(set(event.positions)), "a position is forgotten once")
            _need(all(0 <= position < state.columns for position in event.positions), "what is forgotten was there")
            _need(state.forgotten + len(event.positions) <= state.columns, "no more is forgotten than was there")
            _check_kv(event.kv, state.columns)
        case Wrote():
            _need(state.chosen > 0, "text comes from chosen tokens")


def _check_reused(event: Reused, state: State, facts: Facts) -> None:
    _need(state.columns == state.layers == 0, "notes are taken over before any are made")
    most = state.prompt + len(event.written)
    _need(1 <= event.stop <= most and event.stop < facts.context, "notes are those of the prompt and of the words")
    _need(event.stop == most or not event.written, "words come along with their notes")
    _need(len(event.key_norms) == len(event.value_norms) == facts.layers * event.stop, "a norm per layer and position")
    _need(0 <= event.held <= len(event.written), "what is held back are words that came along")
    for chose in event.written:
        _check_choice(chose, facts.vocabulary)
    _check_kv(event.kv, event.stop)


def _check_choice(event: Chose, vocabulary: int) -> None:
    _check_token(event.token, vocabulary)
    _need(0 <= event.rank < vocabulary, "the rank is one of the vocabulary's")
    shares = (event.probability, *(candidate.probability for candidate in event.candidates))
    _need(all(0 <= share <= 1 + _ROUNDING for share in shares), "probabilities are from 0 to 1")
    _need(all(0 <= candidate.id < vocabulary for candidate in event.candidates), "ids are in the vocabulary")


def _check_token(token: Token, vocabulary: int) -> None:
    _need(0 <= token.id < vocabulary, "ids are in the vocabulary")
    _need(0 <= token.start <= token.stop, "spans go forward")


def _check_kv(kv: KV, length: int) -> None:
    _need(kv.length == length, "the cache holds one K and V per position read")
    _need(0 <= kv.bytes <= kv.allocated, "notes lie in what was reserved for them")


def _need(holds: bool, rule: str) -> None:
    if not holds:
        raise _Rule(rule)
