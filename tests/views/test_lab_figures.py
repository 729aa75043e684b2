"""The remedies' charts: each frame against its lab's own figures, and each figure against its frame."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from engine.labs import LABS
from engine.labs.recorded import recorded
from engine.trace import Trace
from engine.words import say
from tests.service.fakes import story
from views.figures import CHARTS
from views.figures.chart import Given
from views.figures.labs import COLUMNS, quantity
from views.figures.remedies import KINDS
from views.figures.style import THEMES

LAB_OF = {kind.name: kind.lab for kind in KINDS if kind.lab}
LAB_KINDS = sorted(LAB_OF)


def given(lab: str, part: str = "") -> Given:
    """As the routes give it where nothing was measured."""
    told = recorded(LABS[lab])
    assert told is not None
    return Given(lab={**told, "source": "recorded"}, pick=part)


def frame(name: str, part: str = "") -> pd.DataFrame:
    return CHARTS[name].frame(given(LAB_OF[name], part))


def made(name: str, what: Given, lang: str = "en") -> Any:
    chart = CHARTS[name]
    figure = chart.figure(
        chart.frame(what), lambda key, **values: say(f"figures.{key}", lang, **values), THEMES["light"]
    )
    return json.loads(figure.to_json())


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", LAB_KINDS)
def test_every_chart_draws_every_number_of_its_frame(name: str, lang: str) -> None:
    table = frame(name)
    assert list(table.columns) == list(COLUMNS) and len(table) >= 2 and table["middle"].ge(0).all()
    figure = made(name, given(LAB_OF[name]), lang)
    for side, part in table.groupby("side"):
        (trace,) = [one for one in figure["data"] if one["meta"] == side]
        assert trace["y" if trace["type"] == "scatter" else "x"] == part["middle"].tolist()
        assert len(trace["hovertext"]) == len(part) and trace["name"]
    meta = figure["layout"]["meta"]
    assert meta["source"] == "recorded" and "AMD EPYC" in meta["origin"] and "2026-12-01" in meta["origin"]
    assert figure["data"][-1]["name"].split(" · ")[0] in meta["summary"] and "{" not in json.dumps(
        figure["data"][-1]["hovertext"]
    )


def test_rows_are_the_labs_own_numbers() -> None:
    table = frame("groups-step")
    steps = given("groups").lab["figures"]["decode"]
    for side in ("repeated", "grouped"):
        part = table[table["side"] == side]
        for name in ("middle", "low", "high", "repeats"):
            assert part[name].tolist() == [one[side][name] for one in steps]
    shorter = table[table["side"] == "grouped"]["ratio"]
    assert shorter.tolist() == pytest.approx([1 / one["time"] for one in steps])
    assert table[table["side"] == "repeated"]["ratio"].isna().all(), "the first of a case is its measure"


def test_whiskers_reach_from_the_quickest_repeat_to_the_slowest() -> None:
    (trace,) = [one for one in made("flash-run", given("flash"))["data"] if one["meta"] == "fast"]
    runs = given("flash").lab["figures"]["run"]
    over, under = trace["error_x"]["array"], trace["error_x"]["arrayminus"]
    assert [x + more for x, more in zip(trace["x"], over, strict=True)] == pytest.approx(
        [one["fast"]["high"] for one in runs]
    )
    assert [x - less for x, less in zip(trace["x"], under, strict=True)] == pytest.approx(
        [one["fast"]["low"] for one in runs]
    )


def test_what_had_no_room_is_marked_or_left_out() -> None:
    kernels = given("flash").lab["figures"]["kernel"]
    computed = {one["n"] for one in kernels if one["math"]["source"] == "computed"}
    untimed = {one["n"] for one in kernels if one["math"]["seconds"] is None}
    memory, time = frame("flash-memory"), frame("flash-time")
    assert set(memory[memory["source"] == "computed"]["n"]) == computed
    assert not untimed & set(time[time["side"] == "math"]["n"])
    (trace,) = [one for one in made("flash-memory", given("flash"))["data"] if one["meta"] == "math"]
    marks = dict(zip(trace["x"], trace["marker"]["symbol"], strict=True))
    assert {n for n, mark in marks.items() if mark.endswith("-open")} == computed


def test_blocks_come_by_size_and_say_what_is_empty() -> None:
    table = frame("paged-room")
    assert table["side"].unique().tolist() == ["contiguous", "blocks/1", "blocks/16", "blocks/64"]
    paper = given("paged").lab["figures"]["room"]["papers"][0]
    first = table[table["case"] == paper["paper"]].set_index("side")
    assert first.loc["blocks/16", "of"] == paper["ways"]["16"]["allocated"]
    figure = made("paged-room", given("paged"))
    assert {one["meta"] for one in figure["data"]} == {*table["side"], *(f"of/{side}" for side in table["side"])}


def test_one_paper_and_budget_of_forgetting_is_chosen() -> None:
    ways = given("forgetting").lab["figures"]["papers"]["baker"]["ways"]
    table = frame("forgetting-times", "baker/64")
    kept = table[table["side"] == "kept"]
    assert kept["middle"].tolist() == [ways[rule]["64"]["after"]["middle"] for rule in ("window", "sink", "heavy")]
    assert set(frame("forgetting-times")["n"]) == {192} and frame("forgetting-times", "nobody/7").empty


def test_what_is_computed_follows_from_the_runs_model() -> None:
    trace = Trace(tuple(story()))
    facts, kv = trace.started.facts, next(event.kv for event in reversed(trace.events) if hasattr(event, "kv"))  # type: ignore[union-attr]
    what = Given(trace=trace, tokens=1000)
    table = CHARTS["groups-bytes"].frame(what).set_index("case")
    own = next(case for case in table.index if case.startswith("own"))
    assert table.loc[own, "middle"] == 1000 * facts.kv_bytes_per_token
    assert table.loc["ordinary", "middle"] * facts.kv_heads == table.loc[own, "middle"] * facts.heads
    matrix = CHARTS["flash-matrix"].frame(what)
    n = len(trace.started.prompt)  # type: ignore[union-attr]
    assert matrix["middle"].tolist()[:2] == [
        n * n * facts.heads * facts.value_bytes,
        2 * n * facts.kv_heads * facts.head_size * facts.value_bytes,
    ]
    smaller = CHARTS["smaller-notes-bytes"].frame(what).set_index("case")["middle"]
    assert (smaller["now"], smaller["weights"]) == (kv.bytes, facts.weight_bytes)
    for name in ("groups-bytes", "flash-matrix", "smaller-notes-bytes"):
        assert made(name, what)["layout"]["meta"]["source"] == "computed"
    assert made("paged-own", what)["layout"]["meta"]["source"] == "measured"
    assert made("paged-own", replace(what, recorded=True))["layout"]["meta"]["source"] == "recorded"


def test_nothing_measured_is_said() -> None:
    figure = made("prefix-waits", Given())
    assert figure["data"] == [] and figure["layout"]["meta"]["source"] == "" and figure["layout"]["meta"]["summary"]


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [(0.0123, "seconds", "12.3 ms"), (1.234, "seconds", "1.23 s"), (2_420_000_000, "bytes", "2.42 GB"),
     (79_900, "bytes", "79.9 KB"), (12, "bytes", "12 B"), (1234, "tokens", "1,234"), (0.0042, "share", "0.42%")],
)  # fmt: skip
def test_quantities_are_said_as_on_the_pages(value: float, unit: Any, said: str) -> None:
    assert quantity(value, unit) == said
