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

from dataclasses import dataclass
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
