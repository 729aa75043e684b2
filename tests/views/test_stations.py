"""The stations' pages as the browser is told to draw them."""

from __future__ import annotations

import pytest

from engine.words import say
from tests.views.told import At, Knows, same_words, told
from views import lessons

pytestmark = pytest.mark.slow

STATIONS = ("tokenise", "prefill", "notes", "decode", "detokenise", "compare")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", STATIONS)
def test_without_a_run_a_recording_is_told_of(at: At, name: str, lang: str) -> None:
    app = at(name, lang=lang)
    assert not app.exception and not app.error and not app.warning
    station = told(app, "station")
    assert (station["run"], station["module"]) == (lessons.recording(lang), f"/stations/{name}/{name}.js")  # type: ignore[arg-type]
    for part in ("title", "analogy", "remember", "limit", "missing"):
        assert part == "missing" or station["words"][part]
    assert station["words"]["title"] == say(f"{name}.title", lang)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", STATIONS)
def test_the_run_and_the_moment_come_along(at: At, name: str, lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("views.desk.knows", Knows("abcdefgh12345678"))
    station = told(at(name, lang=lang, run="abcdefgh12345678", at="0.5", layer="3"), "station")
    assert station["run"] == "abcdefgh12345678"
    assert station["moment"] == {"at": 0.5, "layer": 3, "head": None}


@pytest.mark.parametrize("run", ["never_was_in_here", "<script>"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", STATIONS)
def test_an_unknown_run_is_a_sentence_and_a_recording(
    at: At, name: str, lang: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("views.desk.knows", Knows("another"))
    app = at(name, lang=lang, run=run)
    assert [warning.value for warning in app.warning] == [say("exam_room.run_unknown", lang)]
    station = told(app, "station")
    assert (station["run"], station["moment"]) == (lessons.recording(lang), {})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", STATIONS)
def test_both_languages_have_the_same_words(at: At, name: str) -> None:
    english, chinese = (told(at(name, lang=lang), "station")["words"] for lang in ("en", "zh"))
    assert same_words(english, chinese)


def test_every_sample_text_has_its_title(at: At) -> None:
    station = told(at("tokenise"), "station")
    assert station["texts"] and all(f"text_{one['id']}" in station["words"] for one in station["texts"])


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("beside", ["closed-book", "abcdefgh12345678"])
def test_two_runs_are_told_of_side_by_side(at: At, lang: str, beside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("views.desk.knows", {"open-book", beside}.__contains__)
    app = at("compare", lang=lang, run="open-book", beside=beside, at="0.25")
    assert not app.exception and not app.error and not app.warning
    station = told(app, "station")
    assert (station["run"], station["beside"], station["moment"]["at"]) == ("open-book", beside, 0.25)
    assert station["examples"] and station["limits"] and station["models"]


@pytest.mark.parametrize("query", [{"run": "gone", "beside": "open-book"}, {"run": "open-book", "beside": "gone"},
                                   {"run": "open-book", "beside": "<script>"}])  # fmt: skip
def test_of_two_runs_the_one_that_is_known_stays(
    at: At, query: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("views.desk.knows", {"open-book"}.__contains__)
    app = at("compare", lang="en", **query)
    assert [warning.value for warning in app.warning] == [say("exam_room.run_unknown", "en")]
    station = told(app, "station")
    assert station["run"] == "open-book"
    assert station["beside"] == ("open-book" if query["beside"] == "open-book" else None)


def test_other_stations_do_not_mind_the_run_beside(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("views.desk.knows", {"open-book"}.__contains__)
    app = at("prefill", lang="en", run="open-book", beside="gone")
    assert not app.warning
