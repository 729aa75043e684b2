"""Text to tokens and back: every token with its bytes and the characters it covers; a decoder for streams.

Bytes are taken from the vocabulary, so a token that is half a character is shown as what it is. Control tokens
typed by a person stay text unless asked otherwise; those of the chat template are always control tokens.
"""

from __future__ import annotations

import codecs
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tokenizers import Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase
from transformers.convert_slow_tokenizer import bytes_to_unicode

from engine.settings import Refusal, Settings
from engine.trace import Token

_BYTE_OF = {character: byte for byte, character in bytes_to_unicode().items()}
_SENTINEL = "\ue000\ue001"
"""Two private-use characters that stand for the person's own words while the chat template is rendered."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A tokenised prompt, see `engine.trace.Started` for the fields."""

    text: str
    tokens: tuple[Token, ...]
    own_start: int
    own_stop: int
    flagged: tuple[int, ...]


def printable(data: bytes) -> str:
    """Whole characters as they are, bytes that are no whole character as `⟨E4⟩`."""
    return data.decode("utf-8", errors="show_bytes")


def _show_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"⟨{byte:02X}⟩" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("show_bytes", _show_bytes)


class Text:
    """A tokenizer of the transformers library as this project needs it. Only fast tokenizers: those know offsets.

    Raises `Refusal("tokenizer_not_fast")` for others.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not tokenizer.is_fast:
            raise Refusal("tokenizer_not_fast")
        self.tokenizer = tokenizer
        self._backend: Tokenizer = tokenizer.backend_tokenizer
        self._added = {index: added.content for index, added in tokenizer.added_tokens_decoder.items()}
        self.control_ids = frozenset(i for i, a in tokenizer.added_tokens_decoder.items() if a.special)
        self.control_spellings = tuple(sorted({self._added[i] for i in self.control_ids}, key=len, reverse=True))
        self._byte_level = "ByteLevel" in str(self._backend.decoder)
        self.bytes_of = lru_cache(maxsize=None)(self._bytes_of)
        with suppress(Refusal):  # a template is compiled when it is first rendered: not on the first person's time
            self.prompt(Settings("a"))

    @property
    def has_template(self) -> bool:
        return bool(self.tokenizer.chat_template)

    @property
    def size(self) -> int:
        """One more than the highest id there is."""
        return 1 + max(self.vocabulary.values())

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Every piece and its id, control tokens too."""
        return dict(self._backend.get_vocab(with_added_tokens=True))

    def _bytes_of(self, index: int) -> bytes:
        """The bytes token `index` stands for; empty for an id without a piece (padded vocabularies)."""
        if index in self._added:
            return self._added[index].encode("utf-8", "surrogatepass")
        piece = self._backend.id_to_token(index)
        if piece is None:
            return b""
        if self._byte_level and _BYTE_OF.keys() >= set(piece):
            return bytes(_BYTE_OF[character] for character in piece)
        if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            return bytes([int(piece[3:5], 16)])
        return bytes(piece.replace("▁", " ").encode())

    def piece(self, index: int) -> str:
        """Token `index` as text a person can read, see `printable`."""
        return printable(self.bytes_of(index))

    def encode(self, text: str, control: bool) -> Encoding:
        """`text` to ids; spellings of control tokens become those tokens only if `control`. Adds nothing itself."""
        self._backend.encode_special_tokens = not control
        try:
            return self._backend.encode(text, add_special_tokens=False)
        finally:
            self._backend.encode_special_tokens = False

    def prompt(self, settings: Settings) -> Prompt:
        """The prompt as the model gets it. Raises `Refusal("no_chat_template")` when asked for one that is not."""
        own = settings.prompt
        before, after = self._around if settings.mode == "chat" else (self._beginning(), "")
        text = before + own + after
        typed = any(spelling in own for spelling in self.control_spellings)
        if settings.mode == "chat" and (settings.control == "control" or not typed):
            # In one piece, as the library does it: merges may cross the border between template and words.
            parts = [(text, True)]
        else:
            parts = [(before, True), (own, settings.control == "control"), (after, True)]
        tokens: list[Token] = []
        offset = 0
        for part, control in parts:
            tokens += self._tokens(self.encode(part, control), offset, control)
            offset += len(part)
        first, last = len(before), len(before) + len(own)
        inside = [i for i, token in enumerate(tokens) if token.stop > first and token.start < last]
        own_start, own_stop = (inside[0], inside[-1] + 1) if inside else (0, 0)
        flagged = self._flagged(tokens, own_start, own_stop, own, first) if typed else ()
        return Prompt(text, tuple(tokens), own_start, own_stop, flagged)

    def _tokens(self, encoding: Encoding, offset: int, control: bool) -> list[Token]:
        made = []
        for index, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
            data = self.bytes_of(index)
            special = control and index in self.control_ids
            made.append(Token(index, printable(data), data, start + offset, stop + offset, special))
        return made

    def _flagged(self, tokens: list[Token], start: int, stop: int, own: str, first: int) -> tuple[int, ...]:
        """Positions in the person's words where a control token was typed."""
        places = set()
        for spelling in self.control_spellings:
            at = own.find(spelling)
            while at >= 0:
                places.add(first + at)
                at = own.find(spelling, at + 1)
        return tuple(i for i in range(start, stop) if any(tokens[i].start <= p < tokens[i].stop for p in places))

    @cached_property
    def _around(self) -> tuple[str, str]:
        """What the chat template puts before and after a single user message."""
        if not self.has_template:
            raise Refusal("no_chat_template")
        message = [{"role": "user", "content": _SENTINEL}]
        try:
            rendered = self.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # a template is a program of its author's, and may want what we do not give
            raise Refusal("no_chat_template") from error
        before, found, after = str(rendered).partition(_SENTINEL)
        if not found:
            raise Refusal("no_chat_template")
        return before, after

    def _beginning(self) -> str:
        """The beginning mark of models that need one before raw text too (Gemma: `<bos>`), as text."""
        ids = self.tokenizer("", add_special_tokens=True)["input_ids"]
        return "".join(self._added.get(index, "") for index in ids if index != self.tokenizer.eos_token_id)


class StreamDecoder:
    """Text of an answer as it grows: releases whole characters only, holds back what may begin a stop string.

    The pieces joined are the one-shot decode of the same ids (control tokens left out); bytes that never became a
    character come out at the end as U+FFFD, as there.
    """

    def __init__(self, text: Text, stop: tuple[str, ...] = ()) -> None:
        self._text = text
        self._stop = tuple(s for s in stop if s)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._length = 0
        self.stopped = False
        """True once a stop string was met; nothing more is released."""

    def push(self, index: int) -> tuple[Token, str]:
        """One more id: the token with its span in the answer, and the text this releases (often empty)."""
        special = index in self._text.control_ids
        data = self._text.bytes_of(index)
        characters = "" if special else self._decoder.decode(data)
        unfinished = not special and bool(self._decoder.getstate()[0])
        start = self._length
        self._length += len(characters)
        token = Token(index, printable(data), data, start, self._length + unfinished, special)
        return token, self._release(characters)

    def flush(self) -> str:
        """The end: everything that was held back."""
        released = "" if self.stopped else self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        return released

    def _release(self, characters: str) -> str:
        if self.stopped:
            return ""
        text = self._held + characters
        hits = [at for at in map(text.find, self._stop) if at >= 0]
        if hits:
            self.stopped, self._held = True, ""
            return text[: min(hits)]
        keep = max((k for s in self._stop for k in range(1, len(s)) if text.endswith(s[:k])), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]
