"""Text cut into tokens, and the vocabulary searched, beside any run. Jobs as in `engine.jobs`: light work on the CPU.

A tokenizer is a megabyte or two of a model: that of a model on this machine is read without loading its weights.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from transformers import AutoTokenizer

from engine import weights
from engine.measure import clock
from engine.model.text import Text
from engine.settings import MAX_PROMPT_CHARACTERS, Refusal, Settings, check_text
from engine.trace import Token

if TYPE_CHECKING:
    from engine.jobs.desk import Desk

MAX_CHARACTERS = 20_000
"""Bound on a text that is cut while somebody types."""

MAX_QUERY = 100
"""Bound on what is searched for in a vocabulary, in characters."""

HITS = 50
"""Most pieces told of one search."""


def tokenise(
    desk: Desk, model: str, text: str, control: Literal["text", "control"], mode: Literal["chat", "raw"]
) -> dict[str, Any]:
    """`text` as `model` would get it: `{"text", "tokens", "own_start", "own_stop", "flagged"}` as in
    `engine.trace.Started`, and `seconds`, measured around the cutting alone.

    Raises `Refusal`: `text_too_long`, `lone_surrogate`, `model_not_ready`, `no_chat_template`.
    """
    if len(text) > MAX_CHARACTERS:
        raise Refusal("text_too_long", characters=len(text), bound=MAX_CHARACTERS)
    check_text(text)
    tokenizer = text_of(desk, model)
    settings = Settings(text, mode=mode, control=control)
    begin = clock.now()
    prompt = tokenizer.prompt(settings)
    seconds = clock.now() - begin
    return {
        "text": prompt.text, "tokens": prompt.tokens, "own_start": prompt.own_start, "own_stop": prompt.own_stop,
        "flagged": prompt.flagged, "seconds": seconds,
    }  # fmt: skip


def count(
    desk: Desk, model: str, text: str, control: Literal["text", "control"], mode: Literal["chat", "raw"]
) -> dict[str, Any]:
    """How many tokens `text` is as a run's prompt, and the most that are read: `{"tokens", "bound"}`. `bound` is None
    while the model is not loaded. Raises `Refusal` as `tokenise`, for a text that is too long for a prompt."""
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise Refusal("text_too_long", characters=len(text), bound=MAX_PROMPT_CHARACTERS)
    check_text(text)
    tokens = len(text_of(desk, model).prompt(Settings(text, mode=mode, control=control)).tokens)
    bound = desk.models[model].facts.context - 1 if model in desk.models else None
    return {"tokens": tokens, "bound": bound}


def vocabulary(desk: Desk, model: str, query: str) -> dict[str, Any]:
    """Pieces that hold `query`, the closest first, at most `HITS` of them: `{"hits": [Token, …], "found", "size"}`.

    A whole number also finds the piece of that id. `found` counts all of them, `size` is the vocabulary's. Spans
    are empty: a piece of a vocabulary covers no text. Raises `Refusal`: `text_too_long`, `model_not_ready`.
    """
    if len(query) > MAX_QUERY:
        raise Refusal("text_too_long", characters=len(query), bound=MAX_QUERY)
    text = text_of(desk, model)
    pieces = _pieces(text)
    found = [index for index, piece in enumerate(pieces) if query and query in piece]
    found.sort(key=lambda index: (pieces[index].strip() != query.strip(), len(pieces[index]), index))
    if query.isascii() and query.isdigit() and int(query) < len(pieces):
        found = [int(query), *(index for index in found if index != int(query))]
    hits = [
        Token(index, pieces[index], text.bytes_of(index), 0, 0, index in text.control_ids) for index in found[:HITS]
    ]
    return {"hits": hits, "found": len(found), "size": len(pieces)}


def text_of(desk: Desk, model: str) -> Text:
    """The tokenizer of a model that is loaded, or of a known one that is ready to load. Raises `model_not_ready`."""
    if model in desk.models:
        return desk.models[model].text
    if model in weights.MODELS and weights.present(model):
        return _read(weights.folder(model))
    raise Refusal("model_not_ready", model=model)


@lru_cache(maxsize=4)
def _read(folder: Path) -> Text:
    return Text(AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True))


@lru_cache(maxsize=4)
def _pieces(text: Text) -> tuple[str, ...]:
    """Every id's piece as a person reads it."""
    return tuple(text.piece(index) for index in range(text.size))
