"""The fold: a run's events up to a moment as the state that is drawn. The player's `state.js` is its twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.trace.events import (
    Chose,
    Decoded,
    Event,
    Finished,
    Forgot,
    Layer,
    Prefilled,
    Queued,
    Reused,
    Started,
    Wrote,
)

Phase = Literal["idle", "queued", "prefill", "decode", "done"]


@dataclass(frozen=True, slots=True)
class State:
    """Everything that is drawn at a moment, folded from the events up to it (the player's `state.js` is its twin).

    The notes of the first `reused` positions and the first `kept` words are another run's.
    `read` prompt positions have notes in every layer; of positions [chunk_start, chunk_stop) the first `layers`
    layers have theirs. `columns` is the KV cache's length. `held` counts the tokens chosen since text was last released
    (special ones aside, which have no text to wait for): while it is not 0 in `decode`, a character is half written.
    The decode steps so far are `passes`; they read `offered` tokens that were guessed ahead, and kept `accepted`.
    """

    phase: Phase = "idle"
    at: float = 0.0
    ahead: int = 0
    prompt: int = 0
    reused: int = 0
    kept: int = 0
    read: int = 0
    layers: int = 0
    chunk_start: int = 0
    chunk_stop: int = 0
    columns: int = 0
    kv_bytes: int = 0
    kv_allocated: int = 0
    forgotten: int = 0
    chosen: int = 0
    decoded: int = 0
    passes: int = 0
    offered: int = 0
    accepted: int = 0
    held: int = 0
    text: str = ""
    ttft: float | None = None
    tpot: float | None = None
    reason: str = ""


def state_at(events: Sequence[Event], step: int | None = None) -> State:
    """The state after the first `step` events (all of them when None). A pure fold."""
    state = State()
    for event in events[: len(events) if step is None else step]:
        state = advance(state, event)
    return state


def advance(state: State, event: Event) -> State:
    """The state after one more event."""
    match event:
        case Queued():
            return replace(state, phase="queued", at=event.at, ahead=event.ahead)
        case Started():
            return replace(state, phase="prefill", at=event.at, ahead=0, prompt=len(event.prompt))
        case Reused():
            return _take_over(state, event)
        case Layer():
            return replace(state, at=event.at, layers=event.index + 1, chunk_start=event.start, chunk_stop=event.stop)
        case Prefilled():
            return replace(
                state,
                at=event.at,
                read=event.stop,
                layers=0,
                chunk_start=event.stop,
                chunk_stop=event.stop,
                columns=event.kv.length,
                kv_bytes=event.kv.bytes,
                kv_allocated=event.kv.allocated,
            )
        case Chose():
            chosen = state.chosen + 1
            first = event.at if state.ttft is None else state.ttft
            return replace(
                state,
                phase="decode",
                at=event.at,
                chosen=chosen,
                held=state.held + (not event.token.special),
                ttft=first,
                tpot=(event.at - first) / (chosen - state.kept - 1) if chosen > state.kept + 1 else None,
            )
        case Decoded():
            return replace(
                state,
                at=event.at,
                decoded=state.decoded + 1 + event.accepted,
                passes=state.passes + 1,
                offered=state.offered + len(event.drafts),
                accepted=state.accepted + event.accepted,
                columns=event.kv.length,
                kv_bytes=event.kv.bytes,
                kv_allocated=event.kv.allocated,
            )
        case Forgot():
            return replace(
                state,
                at=event.at,
                kv_bytes=event.kv.bytes,
                kv_allocated=event.kv.allocated,
                forgotten=state.forgotten + len(event.positions),
            )
        case Wrote():
            return replace(state, at=event.at, text=state.text + event.text, held=0)
        case Finished():
            return replace(state, phase="done", at=event.at, reason=event.reason)


def _take_over(state: State, event: Reused) -> State:
    """The state after another run's notes and words came in."""
    kept = len(event.written)
    return replace(
        state,
        phase="decode" if kept else state.phase,
        at=event.at,
        reused=event.stop,
        kept=kept,
        read=min(event.stop, state.prompt),
        columns=event.kv.length,
        kv_bytes=event.kv.bytes,
        kv_allocated=event.kv.allocated,
        chosen=kept,
        decoded=kept,
        held=event.held,
        text=event.text,
    )
