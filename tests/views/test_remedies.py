"""The remedies' pages as the browser is told to draw them: every word of theirs, in both languages, and the table."""

from __future__ import annotations

import pytest

from engine.labs import LABS
from engine.words import say
from tests.views.told import At, same_words, told
from views import lessons, site

pytestmark = pytest.mark.slow

PAGES = [entry.name for entry in site.ENTRIES if entry.group == "remedies"]
LABS_WITH_PAGES = [name for name in PAGES if name in LABS]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_without_a_run_a_recording_is_told_of(at: At, name: str, lang: str) -> None:
    app = at(name, lang=lang)
    assert not app.exception and not app.error and not app.warning
    page = told(app, "station")
    assert (page["run"], page["module"]) == (lessons.recording(lang), f"/stations/{name}/{name}.js")  # type: ignore[arg-type]
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
    english, chinese = (told(at(name, lang=lang), "station") for lang in ("en", "zh"))
    assert all(same_words(english[part], chinese[part]) for part in ("words", "common"))


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
