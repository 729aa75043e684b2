"""The exam room as the browser is told to draw it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

import service
from engine.settings import Refusal
from engine.words import say
from tests.views.told import Opened, told
from views import lessons, scene, site

pytestmark = pytest.mark.slow


@dataclass
class Desk:
    """A service that knows these runs, on a loop in a thread of its own as in the app."""

    runs: set[str]
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    async def summary(self, run: str) -> None:
        if run not in self.runs:
            raise Refusal("unknown_run")


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk({"abcdefgh12345678"})
    thread = threading.Thread(target=desk.loop.run_forever)
    thread.start()
    service.use(desk)  # type: ignore[arg-type]
    yield desk
    desk.loop.call_soon_threadsafe(desk.loop.stop)
    thread.join()
    desk.loop.close()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_recorded_run_plays_while_there_is_no_service(opened: Opened, lang: str) -> None:
    app = opened(lang=lang)
    assert not app.exception and not app.error and not app.warning
    scene = told(app, "scene")
    assert scene["run"] == lessons.recording(lang)  # type: ignore[arg-type]
    assert scene["lang"] == lang
    assert scene["limits"] == {"characters": 60_000, "new_tokens": 512}


def test_words_come_in_the_language_of_the_address(opened: Opened) -> None:
    english, chinese = (told(opened(lang=lang), "scene") for lang in ("en", "zh"))
    for area in ("words", "errors"):
        assert english[area].keys() == chinese[area].keys()
        assert english[area] != chinese[area]
    assert english["words"]["rail"]["prefill"] == "Prefill"
    assert chinese["words"]["rail"]["prefill"] == "预填充"


def test_the_browsers_language_is_taken_until_one_is_chosen(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    context = type("Context", (), {"locale": "zh-TW"})()
    monkeypatch.setattr("streamlit.context", context)
    assert told(opened(), "scene")["lang"] == "zh"
    assert told(opened(lang="en"), "scene")["lang"] == "en"
    context.locale = None
    assert told(opened(), "scene")["lang"] == "en"


def test_a_link_to_a_moment_shows_that_moment(opened: Opened, desk: Desk) -> None:
    app = opened(run="abcdefgh12345678", at="0.0421", layer="16", head="3")
    assert not app.warning
    scene = told(app, "scene")
    assert scene["run"] == "abcdefgh12345678"
    assert scene["moment"] == {"at": 0.0421, "layer": 16, "head": 3}


@pytest.mark.parametrize("run", ["never_was_in_here", "../../etc/passwd", "<script>", "x" * 100, ""])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_unknown_run_is_a_sentence_and_a_recording(opened: Opened, desk: Desk, run: str, lang: str) -> None:
    app = opened(run=run, lang=lang)
    assert not app.exception
    assert [warning.value for warning in app.warning] == [
        {"en": "There is no run under this link any more, or there never was. Here is a recorded one instead.",
         "zh": "这个链接指向的考试已经不在了，或者从来没有过。下面先播放一场录制好的。"}[lang]
    ]  # fmt: skip
    assert told(app, "scene")["run"] == lessons.recording(lang)  # type: ignore[arg-type]
    assert told(app, "scene")["moment"] == {}


def test_changing_language_keeps_the_run_and_the_scene(opened: Opened, desk: Desk) -> None:
    app = opened(run="abcdefgh12345678", at="0.5", lang="en")
    before = [proto.proto.id for proto in app.get("bidi_component")]
    app.query_params["lang"] = "zh"
    app.run()
    scene = told(app, "scene")
    assert (scene["lang"], scene["run"], scene["moment"]["at"]) == ("zh", "abcdefgh12345678", 0.5)
    assert [proto.proto.id for proto in app.get("bidi_component")] == before, "the scene would be mounted again"


def test_a_language_once_chosen_holds_without_the_address(opened: Opened) -> None:
    app = opened(lang="zh")
    del app.query_params["lang"]
    app.run()
    assert told(app, "scene")["lang"] == "zh"


def test_a_page_that_fails_shows_a_sentence(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(run: str) -> None:
        raise ValueError("a secret detail")

    monkeypatch.setattr("views.scene.show", fail)
    app = opened(lang="en")
    assert not app.exception
    assert [error.value for error in app.error] == [say("frame.page_failed")]
    assert told(app, "bar")["lang"] == "en", "the way out stays"


def test_the_bar_lists_the_pages_there_are(opened: Opened) -> None:
    bar = told(opened(lang="zh"), "bar")
    assert [page["name"] for page in bar["pages"]] == [entry.name for entry in site.ENTRIES]
    assert [(page["path"], page["title"]) for page in bar["pages"] if page["current"]] == [("/", "考场")]


def test_the_desk_has_ways_to_the_stations_there_are(opened: Opened) -> None:
    ways = told(opened(lang="en"), "scene")["stations"]
    assert set(ways) == set(scene.STATIONS) & {entry.name for entry in site.ENTRIES}
    assert ways["prefill"] == "/prefill"
