"""The answer's text as it grows: whole characters only, nothing lost, nothing of a stop string."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.text import StreamDecoder, Text
from engine.trace import Token
from tests.engine import tiny

BYTES = Text(tiny.tokenizer())
PIECES = Text(tiny.sentencepiece("never"))
HALF = "\ufffd"
some_ids = st.lists(st.integers(0, tiny.VOCABULARY - 1), max_size=30)


def streamed(text: Text, ids: list[int], stop: tuple[str, ...] = ()) -> tuple[list[Token], list[str]]:
    """Every id's token, and the pieces released: one per id, and one at the end."""
    decoder = StreamDecoder(text, stop)
    tokens, pieces = [], []
    for index in ids:
        if not decoder.stopped:
            token, released = decoder.push(index)
            tokens.append(token)
            pieces.append(released)
    return tokens, [*pieces, decoder.flush()]


def decoded(text: Text, ids: list[int]) -> str:
    return str(text.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def ids_of(text: Text, answer: str) -> list[int]:
    return text.encode(answer, control=False).ids


@pytest.mark.parametrize(
    "answer", ["👩‍🔬", "今天天气如何？", "a 👩‍🔬 in 今天", "مرحبا", "e\u0301", "nul\0", "\n\n", " " * 15]
)
@pytest.mark.parametrize("text", [BYTES, PIECES], ids=["bytes", "pieces"])
def test_no_half_character_is_ever_shown_and_nothing_is_held_back(text: Text, answer: str) -> None:
    tokens, pieces = streamed(text, ids_of(text, answer))
    assert HALF not in "".join(pieces) and pieces[-1] == ""
    assert "".join(pieces) == answer
    for number in range(len(pieces)):
        assert answer.startswith("".join(pieces[:number]))
    assert b"".join(token.bytes for token in tokens).decode() == answer


def test_a_character_is_released_by_the_token_that_completes_it() -> None:
    tokens, pieces = streamed(BYTES, ids_of(BYTES, "a👩b"))
    assert pieces == ["a", "", "", "", "👩", "b", ""]
    assert [(token.start, token.stop) for token in tokens] == [(0, 1), (1, 2), (1, 2), (1, 2), (1, 2), (2, 3)]
    assert [token.text for token in tokens[1:5]] == ["⟨F0⟩", "⟨9F⟩", "⟨91⟩", "⟨A9⟩"]


@given(some_ids)
def test_pieces_joined_are_the_one_shot_decode_of_any_ids(ids: list[int]) -> None:
    """Bytes that are no character, control tokens and ids without a piece included."""
    _, pieces = streamed(BYTES, ids)
    assert "".join(pieces) == decoded(BYTES, ids)


@given(st.lists(st.sampled_from([0xE4, 0xBB, 0x8A, 0xF0, 0x9F, 0x91, 0x80, 0xC0, 0xFF, 0x61, 0xED, 0xA0]), max_size=12))
def test_broken_bytes_come_out_as_in_the_one_shot_decode(data: list[int]) -> None:
    alphabet = {token: BYTES.bytes_of(token) for token in range(tiny.VOCABULARY)}
    one = {value[0]: token for token, value in alphabet.items() if len(value) == 1}
    ids = [one[byte] for byte in data]
    assert "".join(streamed(BYTES, ids)[1]) == decoded(BYTES, ids)


@given(some_ids)
def test_spans_of_an_answer_go_through_its_text(ids: list[int]) -> None:
    tokens, pieces = streamed(BYTES, ids)
    end = 0
    for token in tokens:
        assert 0 <= token.start <= token.stop and token.start <= end
        end = max(end, token.stop)
    assert end == len("".join(pieces))


@given(st.lists(st.integers(4, len(tiny.sentencepiece("never")) - 1), max_size=20))
def test_pieces_of_bytes_are_decoded_like_a_file_not_like_the_library(ids: list[int]) -> None:
    """The one difference: for bytes that are no character the library's byte fallback writes a mark for each of them
    (and gives up a whole run of bytes), we write what every other reader of UTF-8 writes."""
    _, pieces = streamed(PIECES, ids)
    expected = b"".join(PIECES.bytes_of(index) for index in ids).decode(errors="replace")
    assert "".join(pieces) == expected
    if HALF not in expected:
        assert expected == decoded(PIECES, ids)


def test_an_answer_that_goes_on_keeps_its_leading_space() -> None:
    """The library's one-shot decode of a SentencePiece answer drops it, as if the answer were a text of its own."""
    text = Text(tiny.sentencepiece("first"))
    ids = ids_of(text, "cat")
    assert "".join(streamed(text, ids)[1]) == " cat" and decoded(text, ids) == "cat"


def test_control_tokens_have_no_text_and_no_width() -> None:
    end, (letter, *_) = BYTES.tokenizer.eos_token_id, ids_of(BYTES, "a")
    half, *rest = ids_of(BYTES, "今")
    tokens, pieces = streamed(BYTES, [letter, end, half, end, *rest, end])
    assert pieces == ["a", "", "", "", "", "今", "", ""] and [token.special for token in tokens].count(True) == 3
    assert all(token.start == token.stop for token in tokens if token.special)
    assert tokens[1].bytes == b"<|im_end|>"


CASES = [
    ("one two three", ("two",), "one "),
    ("one two three", ("three", "two"), "one "),
    ("aab", ("ab",), "a"),
    ("aaab", ("aab",), "a"),
    ("ababac", ("abac",), "ab"),
    ("one", ("ones", "e!"), "one"),
    ("今天天气", ("天气",), "今天"),
    ("a\n\nb", ("\n\n",), "a"),
    ("one", ("o",), ""),
]


@pytest.mark.parametrize(("answer", "stop", "kept"), CASES)
def test_the_answer_ends_before_the_first_stop_string(answer: str, stop: tuple[str, ...], kept: str) -> None:
    _, pieces = streamed(BYTES, ids_of(BYTES, answer), stop)
    assert "".join(pieces) == kept


@given(st.text("ab今", max_size=20), st.lists(st.text("ab今", min_size=1, max_size=4), min_size=1, max_size=3))
def test_stop_strings_are_found_wherever_tokens_end(answer: str, stop: list[str]) -> None:
    """The first token after which a stop string is there ends the answer, before the earliest one."""
    ids = ids_of(BYTES, answer)
    _, pieces = streamed(BYTES, ids, tuple(stop))
    expected = answer
    for number in range(len(ids)):
        so_far = decoded(BYTES, ids[: number + 1]).rstrip(HALF)
        if firsts := [at for at in map(so_far.find, stop) if at >= 0]:
            expected = so_far[: min(firsts)]
            break
    assert "".join(pieces) == expected


def test_after_a_stop_string_nothing_is_released() -> None:
    decoder = StreamDecoder(BYTES, ("b",))
    released = [decoder.push(index)[1] for index in ids_of(BYTES, "abcd")]
    assert "".join(released) == "a" and decoder.stopped and decoder.flush() == ""
