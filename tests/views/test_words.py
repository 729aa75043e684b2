"""Every sentence that a page asks for exists, and a number's origin can be said in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.words import area_words

ROOT = Path(__file__).parent.parent.parent
SOURCES = [file for folder in ("views", "pages") for file in sorted((ROOT / folder).glob("*.py"))]
ASKED = re.compile(r"""say\(\s*["']([a-z_]+)\.([\w.-]+)["']""")
"""Keys written out. Those put together are asked for when the frame or a badge is drawn."""


def keys() -> list[tuple[str, str]]:
    return sorted({found.groups() for file in SOURCES for found in ASKED.finditer(file.read_text("utf-8"))})  # type: ignore[misc]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_key_exists(lang: str) -> None:
    assert len(keys()) >= 4, "the search finds none any more"
    missing = [f"{area}.{name}" for area, name in keys() if name not in area_words(area, lang)]
    assert missing == []


def test_no_sentence_stands_in_the_code() -> None:
    """Nothing is shown but through `say`: Streamlit's calls get no literal text."""
    shown = re.compile(r"""st\.(write|markdown|title|header|caption|text|info|warning|error|success)\(\s*f?["']""")
    assert [file.name for file in SOURCES if shown.search(file.read_text("utf-8"))] == []


def badges() -> None:
    from views import provenance

    provenance.badge("measured")
    provenance.badge("computed")
    provenance.badge("simulated")
    provenance.badge("recorded", machine="a laptop", created="2026-12-01")


@pytest.mark.parametrize(("lang", "names"), [("en", ["measured", "recorded"]), ("zh", ["实测", "录制"])])
def test_a_number_can_say_where_it_comes_from(lang: str, names: list[str]) -> None:
    app = AppTest.from_function(badges)
    app.query_params["lang"] = lang
    app.run()
    assert not app.exception
    shown = [badge.value for badge in app.markdown]
    assert len(shown) == 4
    assert names[0] in shown[0] and names[1] in shown[3]
    assert "2026-12-01" in app.markdown[3].proto.help
