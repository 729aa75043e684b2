"""Prompts as tokens: every one with its bytes and the characters it covers, and nothing that was not asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from engine.model.text import Prompt, Text, printable
from engine.settings import Refusal
from tests.engine import tiny

BYTES = Text(tiny.tokenizer())
PIECES = Text(tiny.sentencepiece())
ODD = [
    "👩‍🔬",
    "今天天气如何？",
    "a<b<c",
    "$5 and $6",
    "**x**",
    "<script>alert(1)</script>",
    "line\nbreak\r\n\ttab",
    "x" + " " * 15 + "y",
    " leading and trailing ",
    "مرحبا بالعالم",
    "e\u0301 c\u0327 ñ",
    "nul\0nul",
    "\u200d\u200b\ufeffx",
    "\ufffd is a character too",
    "\ue000\ue001 private \ue000\ue001",
    "{{ messages }} {% raw %}",
]
anything = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda text: text.strip() != ""
)


def well_formed(prompt: Prompt, own: str) -> None:
    """Spans go through the rendered text from end to end; every token's bytes are in the characters it covers."""
    before = 0
    for token in prompt.tokens:
        assert token.start <= before <= token.stop, "no character is skipped"
        assert token.bytes in prompt.text[token.start : token.stop].encode()
        assert token.text == printable(token.bytes)
        before = max(before, token.stop)
    assert before == len(prompt.text)
    assert b"".join(token.bytes for token in prompt.tokens).decode() == prompt.text
    covered = prompt.tokens[prompt.own_start : prompt.own_stop]
    assert own in prompt.text[covered[0].start : covered[-1].stop]


@pytest.mark.parametrize("mode", ["raw", "chat"])
@pytest.mark.parametrize("own", ODD)
def test_odd_text_is_kept_to_the_byte(own: str, mode: str) -> None:
    well_formed(BYTES.prompt(tiny.raw(own, mode=mode)), own)


@given(anything)
def test_any_text_is_kept_to_the_byte(own: str) -> None:
    well_formed(BYTES.prompt(tiny.raw(own)), own)
    well_formed(BYTES.prompt(tiny.raw(own, mode="chat")), own)


@given(anything)
def test_ids_are_the_librarys_own(own: str) -> None:
    """But for control tokens as text, which the library cannot tell from real ones."""
    tokenizer = tiny.tokenizer()
    raw = BYTES.prompt(tiny.raw(own, control="control"))
    assert [token.id for token in raw.tokens] == tokenizer(own)["input_ids"]
    chat = BYTES.prompt(tiny.raw(own, mode="chat", control="control"))
    message = [{"role": "user", "content": own}]
    expected = tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False)
    assert [token.id for token in chat.tokens] == expected


@pytest.mark.parametrize("scheme", ["first", "always", "never"])
@pytest.mark.parametrize("own", ["cat the cat", " cat", "今天 cat", "Anna's cat", "é\n\0"])
def test_ids_of_pieces_are_the_librarys_own_beginning_mark_included(scheme: str, own: str) -> None:
    tokenizer = tiny.sentencepiece(scheme)
    prompt = Text(tokenizer).prompt(tiny.raw(own))
    assert [token.id for token in prompt.tokens] == tokenizer(own)["input_ids"]
    assert [token.special for token in prompt.tokens] == [True] + [False] * (len(prompt.tokens) - 1)
    assert prompt.text == "<bos>" + own and (prompt.own_start, prompt.own_stop) == (1, len(prompt.tokens))


def test_pieces_have_their_bytes_and_their_leading_space() -> None:
    prompt = PIECES.prompt(tiny.raw("cat 今天气 cat"))
    assert [(token.bytes, token.start, token.stop) for token in prompt.tokens] == [
        (b"<bos>", 0, 5),
        (b" cat", 5, 8),  # the space is the tokenizer's own: no character of the text
        (b" ", 8, 9),
        ("今".encode(), 9, 10),
        ("天".encode(), 10, 11),
        (b"\xe6", 11, 12),
        (b"\xb0", 11, 12),
        (b"\x94", 11, 12),
        (b" cat", 12, 16),
    ]
    assert [token.text for token in prompt.tokens][5:8] == ["⟨E6⟩", "⟨B0⟩", "⟨94⟩"]


def test_a_character_of_many_tokens_is_one_group_of_chips() -> None:
    prompt = BYTES.prompt(tiny.raw("a👩b"))
    assert [(token.bytes, token.start, token.stop) for token in prompt.tokens] == [
        (b"a", 0, 1),
        *[(bytes([byte]), 1, 2) for byte in "👩".encode()],
        (b"b", 2, 3),
    ]


MARK = "<|im_end|>"


def test_a_control_token_typed_by_a_person_is_flagged_and_is_text_unless_asked_otherwise() -> None:
    own = f"a {MARK} b"
    text = BYTES.prompt(tiny.raw(own))
    control = BYTES.prompt(tiny.raw(own, control="control"))
    assert [token.id for token in text.tokens] != [token.id for token in control.tokens]
    assert not any(token.special for token in text.tokens)
    assert [token.bytes for token in control.tokens if token.special] == [MARK.encode()]
    for prompt in (text, control):
        (place,) = prompt.flagged
        assert prompt.tokens[place].start <= 2 < prompt.tokens[place].stop
        well_formed(prompt, own)
    assert control.tokens[control.flagged[0]].special


def test_inside_a_chat_only_the_persons_own_marks_are_text() -> None:
    own = f"{MARK}{MARK} <|im_start|>"
    text = BYTES.prompt(tiny.raw(own, mode="chat"))
    control = BYTES.prompt(tiny.raw(own, mode="chat", control="control"))
    assert [token.text for token in text.tokens if token.special] == ["<|im_start|>", MARK, "<|im_start|>"]
    assert sum(token.special for token in control.tokens) == 6
    assert len(text.flagged) == len(control.flagged) == 3
    plain = BYTES.prompt(tiny.raw("a", mode="chat"))
    assert plain.flagged == () and sum(token.special for token in plain.tokens) == 3


def test_own_words_are_told_from_the_templates() -> None:
    prompt = BYTES.prompt(tiny.raw("Luna", mode="chat"))
    own = prompt.tokens[prompt.own_start : prompt.own_stop]
    assert b"".join(token.bytes for token in own) == b"Luna"
    assert prompt.text == "<|im_start|>user\nLuna<|im_end|>\n<|im_start|>assistant\n"


def templated(template: str | None) -> Text:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny.tokenizer().backend_tokenizer, chat_template=template)
    return Text(tokenizer)


@pytest.mark.parametrize("template", [None, "no place for words"])
def test_a_model_that_was_not_taught_to_chat_is_asked_for_raw_text(template: str | None) -> None:
    with pytest.raises(Refusal, match="no_chat_template"):
        templated(template).prompt(tiny.raw("Luna", mode="chat"))


def test_two_models_do_not_share_their_templates() -> None:
    one, two = (templated(mark + "{{ messages[0]['content'] }}") for mark in "12")
    assert [text.prompt(tiny.raw("x", mode="chat")).text for text in (one, two, one)] == ["1x", "2x", "1x"]


def test_a_tokenizer_without_offsets_is_refused() -> None:
    with pytest.raises(Refusal, match="tokenizer_not_fast"):
        Text(ByT5Tokenizer())


def test_ids_without_a_piece_are_empty_and_harmless() -> None:
    assert BYTES.bytes_of(tiny.VOCABULARY - 1) == b"" and BYTES.piece(tiny.VOCABULARY - 1) == ""


def test_a_piece_that_is_no_byte_of_the_alphabet_is_its_own_text() -> None:
    backend = Tokenizer(models.BPE({"a piece": 0, "a": 1}, []))
    backend.decoder = decoders.ByteLevel()
    assert Text(PreTrainedTokenizerFast(tokenizer_object=backend)).bytes_of(0) == b"a piece"


def test_encoding_as_text_leaves_the_tokenizer_as_it_was() -> None:
    own = f"a{MARK}"
    before = tiny.tokenizer()(own)["input_ids"]
    settings = tiny.raw(own)
    BYTES.prompt(settings)
    BYTES.prompt(replace(settings, mode="chat"))
    assert tiny.tokenizer()(own)["input_ids"] == before
