"""The trace: what happened while a model answered, as a list of small immutable events. Standard library only.

Every view, export, replay and test reads this list; only where the list comes from differs (a live run, a
file). Two clocks are on the events: `at` is seconds since the person pressed start (what is felt, waiting
included; TTFT, TPOT and ITL come from it), `seconds` is the duration of the forward pass itself, synchronised
with the device (rooflines and labs use it).

Words used: a *position* is an index into prompt + answer tokens. *Chosen* tokens are the answer's tokens, the
end-of-sequence token included. The newest chosen token has no K and V yet, so at every moment between steps
`kv.length == prompt + chosen - 1`; a run without notes (`settings.notes`) has `kv.length == 0` throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log2
from typing import Literal

from engine.settings import Settings

Bytes = bytes
"""`bytes` under a name that a field called `bytes` does not hide (annotations are looked up in the class)."""

Reason = Literal["eos", "length", "stop_string", "stopped", "timeout", "out_of_memory", "error"]


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a prompt or an answer.

    `start` and `stop` are character offsets into the rendered prompt (or into the answer); tokens that hold
    only part of a character cover that whole character. `text` shows the bytes: whole characters as they are,
    bytes that are no whole character as `⟨E4⟩`; it never holds U+FFFD unless the token itself is that character.
    """

    id: int
    text: str
    bytes: Bytes
    start: int
    stop: int
    special: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token the model could have chosen, with the model's own probability (before temperature and cuts)."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class KV:
    """The KV cache of one run at a moment (empty for a run without notes). `bytes` is what the notes themselves take
    (for layers with a sliding window: only what the window still holds; for a run that forgets: what it has not),
    `allocated` what was reserved for the whole run."""

    length: int
    bytes: int
    allocated: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What is running. Everything a formula or a caption needs, read off the loaded model."""

    model: str
    weights_sha256: str
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    hidden_size: int
    vocabulary: int
    context: int
    """Most positions the model was made for."""
    layer_kinds: tuple[Literal["full", "sliding"], ...]
    window: int
    """Positions a sliding layer sees; 0 when no layer slides."""
    parameters: int
    weight_bytes: int
    """Resident bytes of the weights (tied ones counted once)."""
    value_bytes: int
    """Bytes of one number in the KV cache: 2 for bf16, 4 for fp32."""
    dtype: str
    dtype_reason: str
    """Why this dtype: `asked`, `measured_faster`, `default`."""
    device: str
    device_name: str
    threads: int
    versions: tuple[tuple[str, str], ...]

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of K and V of one token in all layers: 2 x layers x kv_heads x head_size x value_bytes."""
        return 2 * self.layers * self.kv_heads * self.head_size * self.value_bytes


@dataclass(frozen=True, slots=True)
class Queued:
    """The run waits; `ahead` runs are before it."""

    at: float
    ahead: int
    type: Literal["queued"] = "queued"


@dataclass(frozen=True, slots=True)
class Started:
    """The engine took the run and tokenised its prompt.

    `text` is the rendered prompt (chat template included). The person's own words are the tokens
    `prompt[own_start:own_stop]`; everything else was put there by the template. `flagged` are positions in the
    person's own words where a control token was typed (tokens when `settings.control` is `control`, else the
    first token of each literal spelling). `cold` is true for the first run since the model was loaded.
    """

    at: float
    facts: Facts
    settings: Settings
    text: str
    prompt: tuple[Token, ...]
    own_start: int
    own_stop: int
    tokenise_seconds: float
    cold: bool = False
    flagged: tuple[int, ...] = ()
    type: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Reused:
    """The notes of positions [0, stop) were taken from another run, `run`, instead of being made: nothing was read.

    `written` are the words that came along with them, as that run told them, on its clock (they count neither for TTFT
    nor for TPOT), `text` what they had released and `held` how many came after that; where there are any, `stop` is
    prompt + written. `key_norms` and `value_norms`: one byte per layer and position, layer by layer.
    """

    at: float
    run: str
    stop: int
    kv: KV
    key_norms: bytes
    value_norms: bytes
    written: tuple[Chose, ...] = ()
    text: str = ""
    held: int = 0
    type: Literal["reused"] = "reused"


@dataclass(frozen=True, slots=True)
class Layer:
    """While prefill runs: layer `index` now holds K and V for positions [start, stop).

    `seconds` is the time since the previous such mark in this forward pass: the interval ends when the layer's
    attention is done, so it holds the MLP of the layer before. `key_norms` and `value_norms` hold one byte per
    position: the Euclidean norm of its K (V) over all KV heads, see `norm_of`.
    """

    at: float
    index: int
    start: int
    stop: int
    seconds: float
    key_norms: bytes
    value_norms: bytes
    type: Literal["layer"] = "layer"


@dataclass(frozen=True, slots=True)
class Prefilled:
    """One forward pass over prompt positions [start, stop) ended; several when prefill is chunked.

    `rest_seconds` is the last interval of the pass: the last layer's MLP, final norm and vocabulary product.
    """

    at: float
    start: int
    stop: int
    seconds: float
    rest_seconds: float
    kv: KV
    type: Literal["prefilled"] = "prefilled"


@dataclass(frozen=True, slots=True)
class Chose:
    """A token was chosen: the first one from the prompt's last position, then one after each `Decoded`.

    `probability`, `rank` (0 is the likeliest) and `entropy` (in bits) are of the model's own distribution, before
    temperature and cuts; `candidates` are its ten likeliest tokens, best first.
    """

    at: float
    token: Token
    probability: float
    rank: int
    entropy: float
    candidates: tuple[Candidate, ...]
    type: Literal["chose"] = "chose"


@dataclass(frozen=True, slots=True)
class Decoded:
    """One decode step: the chosen token at `position` went through the model, its K and V were appended.

    `layer_seconds` as in `Layer` (one per layer; their sum plus `rest_seconds` is `seconds`). `together` is how
    many runs shared this forward pass. `key_norms` and `value_norms`: one byte per layer for this position.

    `read` is how many positions went through the model: this one alone, without notes all of them (`position + 1`), or
    this one and its `drafts`: tokens guessed to come next, each with the model's probability in its place. The first
    `accepted` of them were what was chosen anyway, and their notes stay (norms: one byte per layer and position).
    """

    at: float
    position: int
    seconds: float
    layer_seconds: tuple[float, ...]
    rest_seconds: float
    kv: KV
    key_norms: bytes
    value_norms: bytes
    together: int = 1
    read: int = 1
    drafts: tuple[Candidate, ...] = ()
    accepted: int = 0
    type: Literal["decoded"] = "decoded"


@dataclass(frozen=True, slots=True)
class Forgot:
    """The notes of `positions` were let go in all layers: nothing written from now on looks at them."""

    at: float
    positions: tuple[int, ...]
    kv: KV
    type: Literal["forgot"] = "forgot"


@dataclass(frozen=True, slots=True)
class Wrote:
    """Text the incremental decoder released. A token that ends inside a character releases nothing yet."""

    at: float
    text: str
    type: Literal["wrote"] = "wrote"


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over. For `error` (and for bounds) `code` names a sentence and `values` fill its gaps.

    `peak_bytes` is the device's peak of allocated memory during the run, where the device tells (CUDA), else 0.
    """

    at: float
    reason: Reason
    code: str = ""
    values: tuple[tuple[str, str | int | float], ...] = ()
    peak_bytes: int = 0
    type: Literal["finished"] = "finished"


Event = Queued | Started | Reused | Layer | Prefilled | Chose | Decoded | Forgot | Wrote | Finished


def norm_byte(norm: float) -> int:
    """A norm as one byte, logarithmic: `norm_of(norm_byte(x))` is within 2.2 % of x from 2^-7.9 to 2^7.9."""
    return 0 if norm <= 0 else max(1, min(255, round(128 + 16 * log2(norm))))


def norm_of(byte: int) -> float:
    """The norm a byte stands for: 2 ** ((byte - 128) / 16); 0 stands for 0."""
    return 0.0 if byte == 0 else 2.0 ** ((byte - 128) / 16)


@dataclass(frozen=True, slots=True)
class Trace:
    """A run's events, complete or so far. Times are properties, never stored."""

    events: tuple[Event, ...] = field(default=())

    @property
    def started(self) -> Started | None:
        return next((event for event in self.events if isinstance(event, Started)), None)

    @property
    def finished(self) -> Finished | None:
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Finished) else None

    @property
    def reused(self) -> Reused | None:
        return next((event for event in self.events if isinstance(event, Reused)), None)

    @property
    def chosen(self) -> tuple[Chose, ...]:
        """What this run chose itself."""
        return tuple(event for event in self.events if isinstance(event, Chose))

    @property
    def words(self) -> tuple[Chose, ...]:
        """The whole answer: what came along with another run's notes, then what this run chose."""
        return (*(self.reused.written if self.reused else ()), *self.chosen)

    @property
    def output_ids(self) -> tuple[int, ...]:
        return tuple(event.token.id for event in self.words)

    @property
    def output_text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, (Reused, Wrote)))

    @property
    def ttft(self) -> float | None:
        """Time to first token in seconds: from pressing start until the first token was chosen."""
        return ttft([event.at for event in self.chosen])

    @property
    def tpot(self) -> float | None:
        """Time per output token in seconds, see `tpot`."""
        return tpot([event.at for event in self.chosen])

    @property
    def itl(self) -> tuple[float, ...]:
        """Inter-token latencies in seconds: the gaps between tokens chosen one after another."""
        return itl([event.at for event in self.chosen])


def ttft(arrivals: Sequence[float]) -> float | None:
    """Time to first token: the first arrival (seconds since start), None before it."""
    return arrivals[0] if arrivals else None


def tpot(arrivals: Sequence[float]) -> float | None:
    """Time per output token after the first: (last - first) / (tokens - 1); None with fewer than two tokens."""
    return (arrivals[-1] - arrivals[0]) / (len(arrivals) - 1) if len(arrivals) > 1 else None


def itl(arrivals: Iterable[float]) -> tuple[float, ...]:
    """Inter-token latencies: differences of consecutive arrivals."""
    return tuple(after - before for before, after in pairwise(arrivals))


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
