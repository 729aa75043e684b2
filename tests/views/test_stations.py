"""The stations' pages as the browser is told to draw them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.words import say
from tests.views.told import Opened, told
from views import lessons

STATIONS = ("tokenise", "prefill", "detokenise")


@pytest.fixture
def at(opened: Opened) -> Opened:
    """Open a station: `at("tokenise", lang="zh")`."""

    def at(name: str, **query: str) -> object:
        app = opened(**query)
        app.switch_page(f"../pages/{name}.py")
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return at  # type: ignore[return-value]


@dataclass
class Knows:
    run: str

    def __call__(self, run: str) -> bool:
        return run == self.run


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", STATIONS)
def test_without_a_run_a_recording_is_told_of(at: Opened, name: str, lang: str) -> None:
    app = at(name, lang=lang)
    assert not app.exception and not app.error and not app.warning
    station = told(app, "station")
    assert (station["run"], station["module"]) == (lessons.recording(lang), f"/stations/{name}.js")  # type: ignore[arg-type]
    for part in ("title", "analogy", "remember", "limit", "missing"):
        assert part == "missing" or station["words"][part]
    assert station["words"]["title"] == say(f"{name}.title", lang)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", STATIONS)
def test_the_run_and_the_moment_come_along(at: Opened, name: str, lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("views.desk.knows", Knows("abcdefgh12345678"))
    station = told(at(name, lang=lang, run="abcdefgh12345678", at="0.5", layer="3"), "station")
    assert station["run"] == "abcdefgh12345678"
    assert station["moment"] == {"at": 0.5, "layer": 3, "head": None}


@pytest.mark.parametrize("run", ["never_was_in_here", "<script>"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", STATIONS)
def test_an_unknown_run_is_a_sentence_and_a_recording(
    at: Opened, name: str, lang: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("views.desk.knows", Knows("another"))
    app = at(name, lang=lang, run=run)
    assert [warning.value for warning in app.warning] == [say("exam_room.run_unknown", lang)]
    station = told(app, "station")
    assert (station["run"], station["moment"]) == (lessons.recording(lang), {})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", STATIONS)
def test_both_languages_have_the_same_words(at: Opened, name: str) -> None:
    english, chinese = (told(at(name, lang=lang), "station")["words"] for lang in ("en", "zh"))
    assert english.keys() == chinese.keys()
    assert all(english[key] and chinese[key] for key in english)


def test_every_sample_text_has_its_title(at: Opened) -> None:
    station = told(at("tokenise"), "station")
    assert station["texts"] and all(f"text_{one['id']}" in station["words"] for one in station["texts"])
