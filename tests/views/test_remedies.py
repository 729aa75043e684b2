"""The remedies' pages as the browser is told to draw them: every word of theirs, in both languages, and the table."""

from __future__ import annotations

from collections.abc import Callable
from string import Formatter
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.labs import LABS
from engine.words import say
from tests.views.told import Opened, told
from views import lessons, site

PAGES = [entry.name for entry in site.ENTRIES if entry.group == "remedies"]
LABS_WITH_PAGES = [name for name in PAGES if name in LABS]
At = Callable[..., AppTest]


@pytest.fixture
def at(opened: Opened) -> At:
    def at(name: str, **query: str) -> AppTest:
        app = opened(**query)
        app.switch_page(f"../pages/{name}.py")
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return at


def leaves(words: Any, path: str = "") -> dict[str, str]:
    """Every sentence of nested words by its path."""
    if isinstance(words, str):
        return {path: words}
    return {key: text for name, inner in words.items() for key, text in leaves(inner, f"{path}.{name}").items()}


def gaps(text: str) -> set[str]:
    return {gap for _, gap, _, _ in Formatter().parse(text) if gap}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_without_a_run_a_recording_is_told_of(at: At, name: str, lang: str) -> None:
    app = at(name, lang=lang)
    assert not app.exception and not app.error and not app.warning
    page = told(app, "station")
    assert (page["run"], page["module"]) == (lessons.recording(lang), f"/stations/{name}.js")  # type: ignore[arg-type]
    assert page["words"]["title"] == say(f"{name}.title", lang)
    assert all(page["words"][part] for part in ("analogy", "remember", "limit", "missing", "run"))
    assert page["paths"]["exam_room"] == "/" and page["paths"]["compare"] == "/compare"


@pytest.mark.parametrize("run", ["never_was_in_here", "<script>"])
@pytest.mark.parametrize("name", PAGES)
def test_an_unknown_run_is_a_sentence_and_a_recording(
    at: At, name: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("views.desk.knows", lambda run: False)
    app = at(name, lang="en", run=run)
    assert [warning.value for warning in app.warning] == [say("exam_room.run_unknown", "en")]
    assert told(app, "station")["run"] == lessons.recording("en")


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_words_with_the_same_gaps(at: At, name: str) -> None:
    english, chinese = (
        leaves({"words": page["words"], "common": page["common"]})
        for page in (told(at(name, lang=lang), "station") for lang in ("en", "zh"))
    )
    assert english.keys() == chinese.keys()
    assert {key: gaps(text) for key, text in english.items()} == {key: gaps(text) for key, text in chinese.items()}
    assert all(english.values()) and all(chinese.values())


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", LABS_WITH_PAGES)
def test_every_part_of_a_remedy_has_its_words(at: At, name: str, lang: str) -> None:
    page = told(at(name, lang=lang), "station")
    for part in ("problem", "idea", "measured", "proof", "both", "not"):
        assert page["words"][part]["lead"], part
        assert page["common"]["titles"][part]
    assert page["words"]["runs"].keys() == LABS[name].runs().keys()
    assert len(page["words"]["not"]) >= 2, "it does not help everywhere"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_has_all_eleven_and_says_what_each_gained(at: At, lang: str) -> None:
    page = told(at("remedies", lang=lang), "station")
    names = [row["name"] for row in page["remedies"]]
    assert len(names) == len(set(names)) == 11 and set(LABS) <= set(names)
    assert page["words"]["rows"].keys() == set(names)
    for row in page["remedies"]:
        assert page["words"]["stages"][row["stage"]]
        assert row["path"] == (site.path(row["name"]) if row["name"] in PAGES else "")
        assert row["name"] not in LABS or page["words"]["gained"][row["name"]]
