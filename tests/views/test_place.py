"""The address: what it says, what it may not say, and that it survives there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from views.place import Place, parse

pytestmark = pytest.mark.slow

places = st.builds(
    Place,
    run=st.none() | st.from_regex(r"\A[A-Za-z0-9_-]{1,64}\Z"),
    beside=st.none() | st.from_regex(r"\A[A-Za-z0-9_-]{1,64}\Z"),
    at=st.none() | st.floats(0, 1e6, allow_nan=False),
    layer=st.none() | st.integers(0, 9999),
    head=st.none() | st.integers(0, 9999),
    lang=st.none() | st.sampled_from(["en", "zh"]),
)


@given(places)
def test_there_and_back(place: Place) -> None:
    assert parse(place.query()) == place


@given(st.dictionaries(st.sampled_from(["run", "beside", "at", "layer", "head", "lang", "x"]), st.text()))
def test_any_address_leads_somewhere(query: dict[str, str]) -> None:
    place = parse(query)
    assert parse(place.query()) == place


@pytest.mark.parametrize(
    ("name", "value"),
    [("at", "nan"), ("at", "inf"), ("at", "-1"), ("layer", "-1"), ("layer", "1.5"), ("layer", "٣"), ("head", "all"),
     ("run", "a/b"), ("run", "a\n"), ("beside", "../b"), ("lang", "de")],
)  # fmt: skip
def test_what_cannot_be_read_is_not_said(name: str, value: str) -> None:
    assert getattr(parse({name: value}), name) is None
