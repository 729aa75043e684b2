"""Traces for tests: one small run written out by hand, and any legal run as a hypothesis strategy."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from engine.settings import Settings
from engine.trace import (
    KV,
    Candidate,
    Chose,
    Decoded,
    Event,
    Facts,
    Finished,
    Layer,
    Prefilled,
    Queued,
    Reused,
    Started,
    Token,
    Trace,
    Wrote,
)

FACTS = Facts(
    model="tiny",
    weights_sha256="00ff",
    layers=2,
    heads=4,
    kv_heads=2,
    head_size=8,
    hidden_size=32,
    vocabulary=300,
    context=64,
    layer_kinds=("full", "sliding"),
    window=16,
    parameters=1000,
    weight_bytes=4000,
    value_bytes=4,
    dtype="float32",
    dtype_reason="asked",
    device="cpu",
    device_name="a laptop",
    threads=2,
    versions=(("torch", "2.13.0"),),
)


def token(text: str, start: int = 0, id: int = 7) -> Token:
    return Token(id, text, text.encode(), start, start + len(text))


def kv(length: int) -> KV:
    return KV(length, FACTS.kv_bytes_per_token * length, FACTS.kv_bytes_per_token * 60)


def chose(at: float, text: str = "a") -> Chose:
    return Chose(at, token(text), 0.5, 0, 1.0, (Candidate(7, text, 0.5), Candidate(8, "b", 0.25)))


def decoded(at: float, position: int) -> Decoded:
    return Decoded(at, position, 0.03125, (0.01, 0.01), 0.01125, kv(position + 1), b"\x80\xff", b"\x00\x01")


def chunk(at: float, start: int, stop: int) -> list[Event]:
    norms = bytes(200 + position % 56 for position in range(start, stop))
    layers: list[Event] = [Layer(at, index, start, stop, 0.125, norms, norms) for index in range(FACTS.layers)]
    return [*layers, Prefilled(at, start, stop, 0.375, 0.125, kv(stop))]


def reused(at: float, stop: int, written: tuple[Chose, ...] = (), text: str = "", held: int = 0) -> Reused:
    norms = bytes(range(FACTS.layers * stop))
    return Reused(at, "first", stop, kv(stop), norms, norms, written, text, held)


def started(at: float, words: str) -> Started:
    prompt = tuple(token(character, start) for start, character in enumerate(words))
    return Started(at, FACTS, Settings(words), words, prompt, 0, len(prompt), 0.001)


def run(arrivals: list[float], words: str = "Hi!", reason: str = "length") -> Trace:
    """A run on `FACTS` that chose an `a` at each arrival and wrote it at once."""
    events: list[Event] = [started(0.0, words), *chunk(0.0, 0, len(words))]
    for number, at in enumerate(arrivals):
        events += [decoded(at, len(words) + number - 1)] if number else []
        events += [chose(at), Wrote(at, "a")]
    return Trace((*events, Finished(events[-1].at, reason)))  # type: ignore[arg-type]


seconds = st.floats(0, 1e6, allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any legal trace, complete or so far: queued or not, in chunks, any text, ending for any reason anywhere."""
    words = draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
    cuts = draw(st.sets(st.integers(1, len(words) - 1))) if len(words) > 1 else set()
    events: list[Event] = [Queued(0.0, ahead) for ahead in draw(st.lists(st.integers(0, 5), max_size=2))]
    events.append(started(0.0, words))
    taken = draw(st.one_of(st.none(), st.integers(1, len(words) + 3)))
    along = max(0, taken - len(words)) if taken else 0
    if taken:
        events.append(reused(0.0, taken, tuple(chose(9.0, draw(texts)) for _ in range(along))))
    for start, stop in pairwise([0, *sorted(cuts), len(words)]):
        events += chunk(0.0, max(start, taken or 0), stop) if stop > (taken or 0) else []
    for number in range(along, along + draw(st.integers(0, 4))):
        events += [decoded(0.0, len(words) + number - 1)] if number > along else []
        events.append(chose(0.0, draw(texts)))
        events += [Wrote(0.0, draw(texts))] if draw(st.booleans()) else []
    events = events[: draw(st.integers(1, len(events)))]
    if draw(st.booleans()):
        reasons = ["eos", "length", "stop_string", "stopped", "timeout", "out_of_memory", "error"]
        values = draw(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.one_of(texts, st.integers(), seconds))))
        events.append(Finished(0.0, draw(st.sampled_from(reasons)), draw(texts), tuple(values)))
    times = sorted(draw(st.lists(seconds, min_size=len(events), max_size=len(events))))
    return Trace(tuple(replace(event, at=at) for event, at in zip(events, times, strict=True)))
