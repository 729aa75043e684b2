"""Papers of an exact length in tokens: real text, the same for everybody."""

from __future__ import annotations

from engine.model.text import Text
from engine.settings import Settings
from engine.trace import Token

PARAGRAPH = (
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once or "
    "twice she had peeped into the book her sister was reading, but it had no pictures or conversations in it, “and "
    "what is the use of a book,” thought Alice “without pictures or conversations?” So she was considering in her own "
    "mind (as well as she could, for the hot day made her feel very sleepy and stupid), whether the pleasure of making "
    "a daisy-chain would be worth the trouble of getting up and picking the daisies, when suddenly a White Rabbit with "
    "pink eyes ran close by her. "
)
"""The opening of “Alice’s Adventures in Wonderland” (Lewis Carroll, 1865; public domain)."""


def paper(text: Text, tokens: int) -> str:
    """The paragraph over and over, cut where it makes exactly `tokens` tokens as raw text (a beginning mark counts).

    Raises `ValueError` when no cut does (a tokenizer that needs more than `tokens` for anything).
    """
    long = PARAGRAPH * (1 + tokens * 8 // len(PARAGRAPH))
    while len(_tokens(text, long)) < tokens:
        long *= 2
    ends = [token.stop for token in _tokens(text, long)]
    # A shorter text may be cut into tokens differently near its end: look a little around the expected place.
    for end in sorted(set(ends[max(0, tokens - 8) : tokens + 8]), key=lambda end: abs(end - ends[tokens - 1])):
        if len(_tokens(text, long[:end])) == tokens:
            return long[:end]
    raise ValueError(f"no text of {tokens} tokens")


def _tokens(text: Text, prompt: str) -> tuple[Token, ...]:
    return text.prompt(Settings(prompt, mode="raw")).tokens
