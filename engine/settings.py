"""What a person asks for, and how the engine says no. Standard library only."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Literal

MAX_PROMPT_CHARACTERS = 60_000
"""Bound on the text of one prompt, checked before tokenising. About 7 times the bundled model's context."""

MAX_NEW_TOKENS = 512
"""Bound on one answer's length in tokens."""

MAX_STOPS = 8
MAX_STOP_CHARACTERS = 100
MAX_MODEL_CHARACTERS = 500
"""A model may be a folder's path."""

RANGES: dict[str, tuple[float, float]] = {
    "max_new_tokens": (1, MAX_NEW_TOKENS),
    "temperature": (0, 5),
    "top_k": (0, 1000),
    "top_p": (0.01, 1),
    "min_p": (0, 1),
    "repetition_penalty": (0.1, 10),
    "seed": (0, 2**32 - 1),
    "timeout": (1, 600),
    "memory": (0, 2**50),
    "chunk": (0, 2**17),
    "draft": (0, 32),
}
"""Least and most of every number in `Settings`, both allowed. Logits divided by 5 are all but even already."""

MAX_HEADS_OFF = 1024
MAX_KEPT = 2**17
"""Positions that a run which forgets may be told to keep, of each kind."""
MAX_BLOCK = 256
Batching = Literal["continuous", "static", "alone"]
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Fork:
    """Another run's beginning: its prompt and the first `kept` tokens it chose, whose notes are reused; then `token`,
    which must be one of the candidates it had there, or the one it chose."""

    run: str
    kept: int
    token: int


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a run's K and V are kept. At most one of the three ways that are not the plain one."""

    dtype: Literal["model", "fp8", "int8", "int4", "int2"] = "model"
    """As the model computes them, or squeezed, with their scales (`engine.cache.quantised`)."""
    last: int = 0
    """Keep only this many of the newest positions, once the prompt is read; 0 keeps all (`engine.cache.forgetting`)."""
    first: int = 0
    """And this many of the very first, the attention sink (Xiao et al. 2023)."""
    heavy: int = 0
    """And this many of those that were looked at most (Zhang et al. 2023)."""
    block: int = 0
    """In blocks of this many positions behind a block table (Kwon et al. 2023, `engine.cache.paged`); 0: in one."""

    @property
    def plain(self) -> bool:
        return self == Keeping()


@dataclass(frozen=True, slots=True)
class Settings:
    """One run's request. Plain values; everything that decides the answer is in here.

    Raises nothing by itself: `check` knows the bounds, `engine.run` those that depend on the model.
    """

    prompt: str
    model: str = ""
    """Name of a known model; empty means the default one."""
    mode: Literal["chat", "raw"] = "chat"
    """`chat` puts the prompt in the model's own chat template; `raw` gives it as it is."""
    control: Literal["text", "control"] = "text"
    """What control tokens typed in the prompt become: literal text, or the real control token."""
    max_new_tokens: int = 64
    temperature: float = 0.0
    """0 is greedy. Otherwise logits are divided by it before sampling."""
    top_k: int = 0
    """Keep the k likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the smallest set of tokens whose probabilities sum to at least this; 1 keeps all."""
    min_p: float = 0.0
    """Keep the tokens with at least this share of the likeliest one's probability; 0 keeps all."""
    repetition_penalty: float = 1.0
    """Logits of tokens that are there already (the prompt's too) are divided by it, negative ones multiplied; 1 leaves
    them (Keskar et al. 2019). Counts for greedy answers too."""
    seed: int = 0
    stop: tuple[str, ...] = field(default=())
    """The answer ends before the first of these strings."""
    timeout: float = 120.0
    """Seconds since the start was pressed after which the run ends as `timeout`."""
    memory: int = 0
    """Bytes the KV cache may take before the run ends as `out_of_memory`, a bound set on purpose; 0: what there is."""
    heads_off: tuple[tuple[int, int], ...] = field(default=())
    """Query heads `(layer, head)` whose output counts as zero, from the first token on."""
    fork: Fork | None = None
    """Go on from another run's words instead of reading the prompt."""
    notes: bool = True
    """Without, nothing is kept between two words: paper and answer so far are read again (`engine.run.reread`)."""
    kernel: Literal["fast", "math"] = "fast"
    """`fast`: torch's fused attention, which never makes the weights; `math`: as the formula stands, all of them."""
    grouped: bool = True
    """K and V are read once for all query heads that share them; False repeats them for each of these first."""
    fused: bool = True
    """Linears with the same input as one product and norms in one call (`engine.model.fuse`); False: each by itself."""
    keeping: Keeping = field(default=Keeping())
    chunk: int = 0
    """Prompt tokens per prefill pass; 0: all at once, and 256 while others are writing."""
    draft: int = 0
    """Most tokens guessed ahead and read together with the newest one; 0 guesses none (`engine.run.speculation`)."""
    draft_model: str = ""
    """Name of a smaller model with the same vocabulary that guesses them (`engine.run.drafting`); empty: they are
    looked up in the text itself. Counts only where `draft` is not 0."""
    reuse: bool = False
    """Take over the notes of an earlier run's prompt as far as the two prompts are the same, instead of reading it."""
    batching: Batching = "continuous"
    """How it is served beside others: at once, together with those who wait, or by itself (`engine.run.schedule`)."""


class Refusal(Exception):
    """Something that will not be done, with a reason a person can read.

    `code` names a sentence in `assets/words/*/errors.json`; `values` fill its gaps. The sentence itself is
    made where it is shown, in the reader's language.
    """

    def __init__(self, code: str, **values: str | int | float) -> None:
        super().__init__(code, values)
        self.code = code
        self.values = values

    def __reduce__(self) -> tuple[object, ...]:
        return _refusal, (self.code, self.values)

    def __str__(self) -> str:
        return f"{self.code} {self.values}" if self.values else self.code


def _refusal(code: str, values: dict[str, str | int | float]) -> Refusal:
    return Refusal(code, **values)


def check(settings: Settings) -> None:
    """Raises `Refusal`: `empty_prompt`, `prompt_too_long`, `lone_surrogate`, `out_of_range`, `too_many_stops`,
    `stop_length`, `name_too_long`, `too_many_heads_off`, `bad_fork`,
    `fork_without_notes`, `bad_keeping` or `bad_draft`."""
    characters = len(settings.prompt)
    if characters > MAX_PROMPT_CHARACTERS:
        raise Refusal("prompt_too_long", characters=characters, bound=MAX_PROMPT_CHARACTERS)
    if not settings.prompt.strip():
        raise Refusal("empty_prompt")
    for text in (settings.prompt, settings.model, settings.draft_model, *settings.stop):
        check_text(text)
    for name, (least, most) in RANGES.items():
        value = getattr(settings, name)
        if not (math.isfinite(value) and least <= value <= most):
            raise Refusal("out_of_range", field=name, least=least, most=most)
    if len(settings.stop) > MAX_STOPS:
        raise Refusal("too_many_stops", bound=MAX_STOPS)
    if any(not 1 <= len(stop) <= MAX_STOP_CHARACTERS for stop in settings.stop):
        raise Refusal("stop_length", bound=MAX_STOP_CHARACTERS)
    for name in ("model", "draft_model"):
        if len(getattr(settings, name)) > MAX_MODEL_CHARACTERS:
            raise Refusal("name_too_long", field=name, bound=MAX_MODEL_CHARACTERS)
    if len(settings.heads_off) > MAX_HEADS_OFF:
        raise Refusal("too_many_heads_off", bound=MAX_HEADS_OFF)
    fork = settings.fork
    if fork is not None and not (RUN_ID.fullmatch(fork.run) and fork.kept >= 0 and fork.token >= 0):
        raise Refusal("bad_fork")
    if fork is not None and not settings.notes:
        raise Refusal("fork_without_notes")
    _check_keeping(settings)
    if settings.draft and (settings.keeping.dtype != "model" or settings.keeping.last or not settings.notes):
        raise Refusal("bad_draft")


def _check_keeping(settings: Settings) -> None:
    keeping = settings.keeping
    counts = (keeping.last, keeping.first, keeping.heavy)
    forgets = keeping.last > 0
    ways = (keeping.dtype != "model") + forgets + (keeping.block > 0) + (not settings.notes)
    if ways > 1 or not all(0 <= count <= MAX_KEPT for count in counts) or not (forgets or counts == (0, 0, 0)):
        raise Refusal("bad_keeping", most=MAX_KEPT)
    if not 0 <= keeping.block <= MAX_BLOCK:
        raise Refusal("out_of_range", field="keeping.block", least=0, most=MAX_BLOCK)


def check_text(text: str) -> None:
    """Raises `Refusal("lone_surrogate")` for text with half a character: no tokenizer and no file can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal("lone_surrogate") from None
