"""The bundled model, in fp32: its answers are the library's, its attention is eager attention, its text is whole."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, PreTrainedModel

from engine import weights
from engine.jobs.explore import pair_of, said_by_layers
from engine.measure import clock
from engine.model import LanguageModel, load
from engine.model.text import StreamDecoder, Text
from engine.run import Run, admit, complete, passes
from engine.settings import Settings
from engine.trace import Event, Prefilled
from tests.engine.tiny import drive

pytestmark = pytest.mark.slow

CAT = "Anna's cat is called Luna. Her dog is called Max. What is the name of Anna's cat?"
TREASURE = "Passage: The treasure is hidden under the old oak tree. Question: Where is the treasure hidden?"
ORANGE = "The orange fell off the table because it was too round."
MARK = "<|im_start|>"


@pytest.fixture(scope="module")
def bundled() -> LanguageModel:
    weights.fetch("")
    weights.prepare("")
    return load(weights.folder(""), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def library(bundled: LanguageModel) -> PreTrainedModel:
    """The same weights with the library's own eager attention."""
    network: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        weights.folder(""), dtype=torch.float32, attn_implementation="eager", local_files_only=True
    )
    return network


@pytest.fixture(scope="module")
def text(bundled: LanguageModel) -> Text:
    return bundled.text


def exam(model: LanguageModel, prompt: str, id: str = "", **how: object) -> Run:
    return admit(id, Settings(prompt, **{"max_new_tokens": 8} | how), model, clock.now())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def sat(bundled: LanguageModel) -> Run:
    run = exam(bundled, CAT, max_new_tokens=24)
    complete(run)
    return run


def test_it_finds_the_name_and_its_ids_are_those_of_generate(sat: Run, library: PreTrainedModel) -> None:
    ids = torch.tensor([sat.ids])
    output = library.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
    assert sat.chosen == output[0, len(sat.ids) :].tolist()
    assert "Luna" in sat.model.text.tokenizer.decode(sat.chosen)
    assert sat.chosen[-1] in sat.model.end_ids


def test_every_row_of_every_head_is_eager_attention(sat: Run, library: PreTrainedModel) -> None:
    with torch.inference_mode():
        maps = library(torch.tensor([[*sat.ids, *sat.chosen[:-1]]]), output_attentions=True).attentions
    length = sat.lens.length
    assert len(maps) == 30 and length == len(sat.ids) + len(sat.chosen) - 1
    for layer, expected in enumerate(maps):
        prompt = sat.lens.rows(layer, 0, len(sat.ids))
        torch.testing.assert_close(prompt, expected[0, :, : len(sat.ids), : len(sat.ids)], atol=1e-5, rtol=0)
        for row in range(len(sat.ids), length):
            torch.testing.assert_close(
                sat.lens.rows(layer, row, row + 1)[:, 0], expected[0, :, row, : row + 1], atol=1e-5, rtol=0
            )


def test_runs_together_and_in_chunks_answer_as_they_would_alone(
    bundled: LanguageModel, sat: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "CHUNK", 20)
    runs = [exam(bundled, TREASURE, "treasure"), exam(bundled, "Hello", "hello"), exam(bundled, CAT, "cat")]
    told: dict[str, list[Event]] = drive(runs)
    assert len([event for event in told["cat"] if isinstance(event, Prefilled)]) > 2
    assert max(event.together for event in told["treasure"] if event.type == "decoded") > 1
    assert runs[2].chosen == sat.chosen[:8]
    alone = exam(bundled, TREASURE)
    complete(alone)
    assert runs[0].chosen == alone.chosen


def test_two_heads_look_from_it_to_the_orange(bundled: LanguageModel) -> None:
    """Layers 16 and 13, heads 3 and 8 (from 0). At `it` nobody has read `round` yet: `tilted` changes nothing."""
    weights_of = []
    for paper in (ORANGE, ORANGE.replace("round", "tilted")):
        run = exam(bundled, paper, mode="raw", max_new_tokens=1)
        complete(run)
        pieces = [token.text for token in run.prompt.tokens]
        it, orange = pieces.index(" it"), pieces.index(" orange")
        assert (it, orange) == (7, 1)
        weights_of.append([float(run.lens.row(layer, head, it)[orange]) for layer, head in ((16, 3), (13, 8))])
    assert weights_of[0] == pytest.approx([0.73, 0.72], abs=0.01)
    assert weights_of[0] == pytest.approx(weights_of[1], abs=1e-5)


@pytest.mark.parametrize("answer", ["👩‍🔬", "今天天气如何？", "a👩‍🔬b 今天\nمرحبا e\u0301\0" + " " * 15])
def test_no_half_character_is_shown_and_nothing_is_held_back(text: Text, answer: str) -> None:
    decoder = StreamDecoder(text)
    pieces = [decoder.push(index)[1] for index in text.encode(answer, control=False).ids]
    assert "".join(pieces) == answer and decoder.flush() == ""
    assert not any("\ufffd" in piece for piece in pieces)


@settings(max_examples=200)
@given(st.lists(st.one_of(st.integers(0, 49151), st.integers(0, 300)), max_size=20))
def test_pieces_joined_are_the_one_shot_decode_of_any_ids(text: Text, ids: list[int]) -> None:
    decoder = StreamDecoder(text)
    pieces = [decoder.push(index)[1] for index in ids]
    expected = text.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert "".join(pieces) + decoder.flush() == expected


def test_a_scientist_is_eight_chips_over_three_characters(text: Text) -> None:
    tokens = text.prompt(Settings("👩‍🔬", mode="raw")).tokens
    assert [(token.bytes.hex(" "), token.start, token.stop) for token in tokens] == [
        ("f0 9f", 0, 1), ("91", 0, 1), ("a9", 0, 1),
        ("e2 80", 1, 2), ("8d", 1, 2),
        ("f0 9f", 2, 3), ("94", 2, 3), ("ac", 2, 3),
    ]  # fmt: skip
    assert [token.text for token in tokens[:2]] == ["⟨F0⟩⟨9F⟩", "⟨91⟩"]


@pytest.mark.parametrize("own", ["a<b<c", "$5 and $6", "**x**", "a\nb", "x" + " " * 15 + "y"])
def test_chips_show_what_was_written(text: Text, own: str) -> None:
    tokens = text.prompt(Settings(own, mode="raw")).tokens
    assert "".join(token.text for token in tokens) == own
    assert [token.start for token in tokens[1:]] == [token.stop for token in tokens[:-1]]


def test_every_digit_stands_alone(text: Text) -> None:
    assert [token.text for token in text.prompt(Settings("1234", mode="raw")).tokens] == list("1234")


def test_control_tokens_and_the_templates_three_marks(text: Text) -> None:
    plain = text.prompt(Settings(CAT))
    assert [token.text for token in plain.tokens if token.special].count(MARK) == 3
    assert plain.tokens[0].text == MARK and plain.tokens[1].text != MARK
    message = [{"role": "user", "content": CAT}]
    expected = text.tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False)
    assert [token.id for token in plain.tokens] == expected
    as_text, as_control = (text.prompt(Settings(f"a{MARK}b", control=control)) for control in ("text", "control"))
    assert [token.id for token in as_text.tokens] != [token.id for token in as_control.tokens]
    assert sum(token.text == MARK for token in as_text.tokens if token.special) == 3
    assert sum(token.text == MARK for token in as_control.tokens if token.special) == 4
    assert len(as_text.flagged) == len(as_control.flagged) == 1


@pytest.mark.parametrize(("how", "found", "weight"), [("raw", (16, 3), 0.73), ("chat", (13, 8), 0.67)])
def test_the_head_that_joins_it_and_the_orange_is_found(
    bundled: LanguageModel, how: str, found: tuple[int, int], weight: float
) -> None:
    run = exam(bundled, ORANGE, mode=how, max_new_tokens=1)
    complete(run)
    pieces = [token.text for token in run.prompt.tokens]
    ranked = pair_of(run.lens, pieces.index(" it"), pieces.index(" orange"))
    assert ranked[0][:2] == found and ranked[0][2] == pytest.approx(weight, abs=0.01)
    assert sum(value for *_, value in ranked) / len(ranked) < 0.06, "the mean of all heads shows nothing"


def test_a_long_paper_has_every_row_and_a_map(bundled: LanguageModel) -> None:
    """A thousand tokens: the mean of nine heads is made in three pieces. 4,096 are read in the browser's tests."""
    run = exam(bundled, "The cat sat. " * 255 + "The cat sat.", mode="raw", max_new_tokens=1)
    complete(run)
    assert run.lens.length == 1024
    for head, rows in ((3, (0, 1, 512, 1023)), (None, (0, 433, 434, 1023))):
        whole = run.lens.map(16, head)
        assert whole.shape == (1024, 1024)
        for row in rows:
            torch.testing.assert_close(whole[row, : row + 1], run.lens.row(16, head, row), atol=1e-6, rtol=0)
            assert not whole[row, row + 1 :].any()


def test_what_the_layers_would_have_said_ends_in_what_the_model_said(sat: Run) -> None:
    said = said_by_layers(sat)
    assert len(said["layers"]) == 30 and said["token"] == sat.chosen[0]
    assert said["layers"][-1]["rank"] == 0 < said["layers"][0]["rank"]
