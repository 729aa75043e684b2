"""The pages that say why, as the browser is told to draw them: without a run, and in every state a run can be in."""

from __future__ import annotations

import pytest

from engine.words import say
from tests.views.told import At, Knows, same_words, told
from views import lessons

pytestmark = pytest.mark.slow

PAGES = ("two_stages", "waiting")
STATES = ("waiting", "running", "own", "recorded", "stopped", "stopped_early", "failed", "lost", "refused")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_without_a_run_a_recording_is_told_of(at: At, name: str, lang: str) -> None:
    app = at(name, lang=lang)
    assert not app.exception and not app.error and not app.warning
    page = told(app, "station")
    assert (page["run"], page["module"]) == (lessons.recording(lang), f"/stations/{name}/{name}.js")  # type: ignore[arg-type]
    assert page["words"]["title"] == say(f"{name}.title", lang)
    assert all(page["words"][part] for part in ("analogy", "remember", "limit", "missing", "run"))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_every_state_of_a_run_and_of_a_measurement_has_its_sentence(
    at: At, name: str, lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser follows the run itself; whatever state it finds, the words for it came along."""
    monkeypatch.setattr("views.desk.knows", Knows("abcdefgh12345678"))
    page = told(at(name, lang=lang, run="abcdefgh12345678"), "station")
    assert page["run"] == "abcdefgh12345678"
    assert all(len(page["words"]["state"][state]) > 5 for state in STATES)
    measure = page["words"]["measuring"]
    assert all(len(measure[state]) > 3 for state in ("going", "finished", "stopped", "other"))
    assert set(measure["what"]) == {"peak", "batch", "parts", "wait"}


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
    english, chinese = (told(at(name, lang=lang), "station")["words"] for lang in ("en", "zh"))
    assert same_words(english, chinese)
