"""A page as it is before anybody measured or sat anything: complete, and honest about where that comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from engine.words import say
from tests.e2e.conftest import App, free_port, home_of
from tests.e2e.stations import LONG, fits_a_phone, until
from views import lab

Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app in a new home, with a model that was just loaded and has done nothing yet."""
    app = App(home_of(tmp_path_factory.mktemp("new") / "exam"), free_port(), {"OPEN_BOOK_EXAM_DTYPE": "float32"})
    app.start()
    yield app
    app.stop()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_remedies_are_whole_at_first_sight(untouched: App, visit: Visit, lang: str) -> None:
    """Every row tells what was recorded, with model, machine and date, and what is not measured here; nothing counts
    what is missing of all. So it is before the service has said anything, and after."""
    page = visit("about:blank")
    page.route("**/api/labs**", unanswered)
    page.goto(f"{untouched.address}/remedies?lang={lang}")
    page.wait_for_selector("[data-remedy]", timeout=LONG)
    told(page, lang, "untouched")
    page.unroute_all()
    page.goto(f"{untouched.address}/remedies?lang={lang}")
    pieces = [one for one in untouched.ask("/api/labs/disaggregation")["plan"] if one.get("needed") is not False]
    until(page, "[data-remedy=disaggregation]", f"d.of === '{len(pieces)}'")
    told(page, lang, "untouched_of")
    assert re.search(r"\d", page.locator("[data-measure=all]").inner_text()) is None
    fits_a_phone(page)


def unanswered(route: Route) -> None:
    """The service says nothing."""


def told(page: Page, lang: str, missing: str) -> None:
    """Each row, from its recording."""
    for remedy in lab.remedies():
        shipped, row = remedy["recorded"], page.locator(f"[data-remedy={remedy['name']}]")
        assert json.loads(row.get_attribute("data-values") or "") == shipped["gained"]
        expect(row.locator(".tag")).to_have_class("tag recorded mini")
        for words in (shipped["model"], shipped["machine"]["device_name"], shipped["taken"][:4]):
            expect(row.locator(".gained")).to_contain_text(words)
        begin = say(f"remedies.{missing}", lang, of="|").split("|")[0]
        expect(row.locator("[data-left]")).to_contain_text(begin)


def test_figures_of_another_model_say_so_where_they_stand(untouched: App, visit: Visit) -> None:
    """The Chinese recording is by another model than what was recorded of the remedies."""
    page = visit(f"{untouched.address}/groups?run=chinese&lang=zh")
    until(page, "[data-lab]", "d.figures === 'recorded'")
    run = untouched.ask("/api/runs/chinese")["model"]
    figures = untouched.ask("/api/labs/groups/recorded")["model"]
    sentence = page.locator("[data-part=measured] [data-other-model]")
    expect(sentence).to_have_text(say("stations.other_model", "zh", run=run, figures=figures))
    marked = "section:has([data-of-lab])"
    assert page.locator(f"{marked} [data-other-model]:visible").count() == page.locator(marked).count() > 0
    page.goto(f"{untouched.address}/groups?run=open-book&lang=en")
    until(page, "[data-lab]", "d.figures === 'recorded'")
    assert page.locator("[data-other-model]:visible").count() == 0
