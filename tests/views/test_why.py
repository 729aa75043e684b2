"""The pages that say why, as the browser is told to draw them: without a run, and in every state a run can be in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.words import say
from tests.views.told import Opened, told
from views import lessons

PAGES = ("two_stages", "waiting")
STATES = ("waiting", "running", "own", "recorded", "stopped", "stopped_early", "failed", "lost", "refused")
At = Callable[..., AppTest]


@pytest.fixture
def at(opened: Opened) -> At:
    """Open a page: `at("two_stages", lang="zh")`."""

    def at(name: str, **query: str) -> AppTest:
        app = opened(**query)
        app.switch_page(f"../pages/{name}.py")
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return at


@dataclass
class Knows:
    run: str

    def __call__(self, run: str) -> bool:
        return run == self.run


def leaves(words: Any, path: str = "") -> dict[str, str]:
    """Every sentence of nested words by its path."""
    if isinstance(words, str):
        return {path: words}
    named = enumerate(words) if isinstance(words, list) else words.items()
    return {key: text for name, inner in named for key, text in leaves(inner, f"{path}.{name}").items()}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_without_a_run_a_recording_is_told_of(at: At, name: str, lang: str) -> None:
    app = at(name, lang=lang)
    assert not app.exception and not app.error and not app.warning
    page = told(app, "station")
    assert (page["run"], page["module"]) == (lessons.recording(lang), f"/stations/{name}.js")  # type: ignore[arg-type]
    assert page["words"]["title"] == say(f"{name}.title", lang)
    assert all(page["words"][part] for part in ("analogy", "remember", "limit", "missing", "run"))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_every_state_of_a_run_has_its_sentence(
    at: At, name: str, lang: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser follows the run itself; whatever state it finds, the words for it came along."""
    monkeypatch.setattr("views.desk.knows", Knows("abcdefgh12345678"))
    page = told(at(name, lang=lang, run="abcdefgh12345678"), "station")
    assert page["run"] == "abcdefgh12345678"
    assert len(page["words"]["state"][state]) > 5


@pytest.mark.parametrize("state", ["going", "finished", "stopped", "other"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_every_state_of_a_measurement_has_its_sentence(at: At, name: str, lang: str, state: str) -> None:
    measure = told(at(name, lang=lang), "station")["words"]["measuring"]
    assert len(measure[state]) > 3 and set(measure["what"]) == {"peak", "batch", "parts", "wait"}


@pytest.mark.parametrize("run", ["never_was_in_here", "<script>"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_an_unknown_run_is_a_sentence_and_a_recording(
    at: At, name: str, lang: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("views.desk.knows", Knows("another"))
    app = at(name, lang=lang, run=run)
    assert [warning.value for warning in app.warning] == [say("exam_room.run_unknown", lang)]
    assert told(app, "station")["run"] == lessons.recording(lang)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_words_with_the_same_gaps(at: At, name: str) -> None:
    from string import Formatter

    english, chinese = (leaves(told(at(name, lang=lang), "station")["words"]) for lang in ("en", "zh"))
    assert english.keys() == chinese.keys()

    def gaps(text: str) -> set[str]:
        return {gap for _, gap, _, _ in Formatter().parse(text) if gap}

    assert {key: gaps(text) for key, text in english.items()} == {key: gaps(text) for key, text in chinese.items()}
    assert all(english.values()) and all(chinese.values())
