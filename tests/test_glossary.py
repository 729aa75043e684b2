"""One term, one translation: where an English sentence uses a term of the field, the Chinese one of the same key uses
the glossary's word for it, and words that the glossary rules out stand nowhere in Chinese.

`assets/words/glossary.json` has the terms (`en`: how it is spelled, `zh`: the one translation, `not`: what it is not
called here) and the exceptions, each by its key and term with a reason.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache

from engine.words import FOLDER, area_words

GLOSSARY = json.loads((FOLDER / "glossary.json").read_text("utf-8"))
GAP = re.compile(r"\{\w*\}")


@dataclass(frozen=True)
class Term:
    name: str
    en: tuple[str, ...]
    zh: str
    ruled_out: tuple[str, ...]

    def used_in(self, english: str) -> bool:
        return bool(spelled(self.en).search(GAP.sub("", english)))


@cache
def spelled(variants: tuple[str, ...]) -> re.Pattern[str]:
    """Any of them as a word of its own."""
    longest_first = sorted(variants, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)


TERMS = [Term(term["term"], tuple(term["en"]), term["zh"], tuple(term["not"])) for term in GLOSSARY["terms"]]
EXCEPTIONS: dict[str, dict[str, str]] = GLOSSARY["exceptions"]


@cache
def sentences() -> dict[str, tuple[str, str]]:
    """Every key's sentence in English and in Chinese."""
    pairs = {}
    for area in sorted(file.stem for file in (FOLDER / "en").glob("*.json")):
        english, chinese = area_words(area, "en"), area_words(area, "zh")
        pairs |= {f"{area}.{name}": (text, chinese[name]) for name, text in english.items()}
    return pairs


def faults(key: str, english: str, chinese: str) -> list[str]:
    """What a pair of sentences says otherwise than the glossary, exceptions aside."""
    excused = EXCEPTIONS.get(key, {})
    lacks = [f"{key}: {term.name} is {term.zh}" for term in TERMS
             if term.name not in excused and term.used_in(english) and term.zh not in chinese]  # fmt: skip
    other = [f"{key}: not {word}" for term in TERMS for word in term.ruled_out if word in chinese]
    return lacks + other


def test_one_term_has_one_translation() -> None:
    assert [fault for key, pair in sentences().items() for fault in faults(key, *pair)] == []


def test_every_term_is_used_and_has_one_word() -> None:
    used = {term.name for term in TERMS for english, _ in sentences().values() if term.used_in(english)}
    assert {term.name for term in TERMS} - used == set()
    names = [term.name for term in TERMS]
    assert names == list(dict.fromkeys(names))
    assert all(term.zh and term.zh not in term.ruled_out for term in TERMS)


def test_every_exception_is_needed_and_says_why() -> None:
    by_name = {term.name: term for term in TERMS}
    for key, excused in EXCEPTIONS.items():
        english, chinese = sentences()[key]
        for name, reason in excused.items():
            term = by_name[name]
            assert term.used_in(english) and term.zh not in chinese, f"{key} needs no exception for {name}"
            assert reason


def test_this_test_sees_another_translation() -> None:
    assert faults("x.y", "The KV cache grows.", "键值缓存在增长。") == []
    assert faults("x.y", "The KV cache grows.", "缓存在增长。") == ["x.y: KV cache is 键值缓存"]
    assert faults("x.y", "It grows.", "KV 缓存在增长。") == ["x.y: not KV 缓存"]
    assert faults("x.y", "{tokens} a second", "每秒 {tokens}") == [], "a gap's name is no word"
    assert faults("x.y", "headline, decoder, blocked", "标题") == [], "a term is a word of its own"
    assert faults("fusion.analogy", "in the head", "在脑子里") == []
    assert faults("fusion.title", "in the head", "在脑子里") == ["fusion.title: head is 头"]
