"""Texts cut beside any run, and vocabularies searched: what the tokenizer itself says, within bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from engine import weights
from engine.jobs import pieces
from engine.model.text import Text
from engine.process import EngineProcess, jobs
from engine.settings import MAX_PROMPT_CHARACTERS, Refusal
from tests.engine import tiny

TEXT = Text(tiny.tokenizer())
MARK = "<|im_end|>"


class Engine:
    """An engine process with one tiny model."""

    models = {"tiny": tiny.model("llama")}  # noqa: RUF012 - read only


def cut(text: str, model: str = "tiny", control: str = "text", mode: str = "raw") -> dict[str, Any]:
    arguments = {"model": model, "text": text, "control": control, "mode": mode}
    return cast(dict[str, Any], jobs.JOBS["tokenise"](cast(EngineProcess, Engine()), **arguments))


def count(text: str, **how: str) -> dict[str, Any]:
    arguments = {"model": "tiny", "text": text, "control": "text", "mode": "raw", **how}
    return cast(dict[str, Any], jobs.JOBS["count"](cast(EngineProcess, Engine()), **arguments))


def search(query: str, model: str = "tiny") -> dict[str, Any]:
    return cast(dict[str, Any], jobs.JOBS["vocabulary"](cast(EngineProcess, Engine()), model=model, query=query))


@pytest.mark.parametrize("mode", ["raw", "chat"])
@pytest.mark.parametrize("text", ["", " ", "Anna's cat", "今天天气", "👩‍🔬", "a<b<c", "nul\0nul", f"x{MARK}y"])
def test_a_text_is_cut_as_a_run_would_get_it(text: str, mode: str) -> None:
    done = cut(text, mode=mode)
    expected = TEXT.prompt(tiny.raw(text, mode=mode))
    assert done["tokens"] == expected.tokens and done["text"] == expected.text
    assert (done["own_start"], done["own_stop"], done["flagged"]) == (
        expected.own_start, expected.own_stop, expected.flagged,
    )  # fmt: skip
    assert b"".join(token.bytes for token in done["tokens"]).decode() == done["text"]
    assert done["seconds"] > 0


def test_a_control_token_is_text_or_the_real_one_as_asked() -> None:
    as_text, as_control = (cut(f"x{MARK}", control=control) for control in ("text", "control"))
    assert not any(token.special for token in as_text["tokens"])
    assert as_control["tokens"][-1].special and len(as_text["tokens"]) > len(as_control["tokens"])
    assert as_text["flagged"] == as_control["flagged"] == (1,)


def test_the_bound_holds_to_the_character() -> None:
    assert len(cut("x" * pieces.MAX_CHARACTERS)["text"]) == pieces.MAX_CHARACTERS
    with pytest.raises(Refusal, match="text_too_long") as refused:
        cut("x" * (pieces.MAX_CHARACTERS + 1))
    assert refused.value.values == {"characters": pieces.MAX_CHARACTERS + 1, "bound": pieces.MAX_CHARACTERS}
    with pytest.raises(Refusal, match="text_too_long"):
        search("x" * (pieces.MAX_QUERY + 1))


def test_half_a_character_is_refused() -> None:
    with pytest.raises(Refusal, match="lone_surrogate"):
        cut("a\ud800b")


@pytest.mark.parametrize("model", ["", "nobody", "../..", weights.DEFAULT])
def test_a_tokenizer_that_is_not_there_is_refused(model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path))
    for ask in (cut, search):
        with pytest.raises(Refusal, match="model_not_ready"):
            ask("x", model)


def test_a_tokenizer_is_read_without_its_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path))
    tiny.tokenizer().save_pretrained(weights.folder(weights.DEFAULT))
    (weights.folder(weights.DEFAULT) / "source.json").write_text("{}")
    assert cut("Anna's 猫", weights.DEFAULT)["tokens"] == cut("Anna's 猫")["tokens"]


def test_a_vocabulary_is_searched_whole_and_the_closest_come_first() -> None:
    done = search("c")
    every = [index for index in range(TEXT.size) if "c" in TEXT.piece(index)]
    assert (done["found"], done["size"]) == (len(every), TEXT.size)
    assert {hit.id for hit in done["hits"]} == set(every[: pieces.HITS])
    assert done["hits"][0].text.strip() == "c"
    assert all(hit.bytes == TEXT.bytes_of(hit.id) for hit in done["hits"])
    assert [hit.special for hit in search(MARK)["hits"]] == [True]


def test_a_search_is_bounded_and_may_find_nothing() -> None:
    done = search("⟨")  # every byte that is no character alone
    assert done["found"] > pieces.HITS == len(done["hits"])
    assert search("")["hits"] == search("no such piece")["hits"] == []


def test_a_number_finds_its_id_too() -> None:
    first, *others = search("7")["hits"]
    assert first.id == 7 and any(hit.text == "7" for hit in others)
    assert search(str(10**9))["hits"] == [] and search("²")["found"] >= 0


def test_a_papers_tokens_are_counted_before_it_is_handed_in() -> None:
    long = "Luna " * 8000
    assert count(long) == {"tokens": len(TEXT.prompt(tiny.raw(long)).tokens), "bound": tiny.CONTEXT - 1}
    assert count("Luna", mode="chat")["tokens"] > count("Luna")["tokens"]
    with pytest.raises(Refusal, match="text_too_long"):
        count("x" * (MAX_PROMPT_CHARACTERS + 1))
