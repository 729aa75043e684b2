"""Charts of what is scheduled: lanes on one clock, sizes and ways side by side, from labs' recorded results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.labs import LABS
from engine.labs.recorded import recorded
from engine.words import say
from views.figures import CHARTS, gantt
from views.figures.chart import Given
from views.figures.style import THEMES


def words(key: str, **values: Any) -> str:
    return say(f"figures.{key}", "en", **values)


def given(name: str, **more: Any) -> Given:
    told = recorded(LABS[name])
    assert told
    return Given(lab={**told, "source": "recorded"}, **more)


def made(name: str, given: Given, theme: str = "light") -> dict[str, Any]:
    """Traces by meaning."""
    chart = CHARTS[name]
    figure = json.loads(chart.figure(chart.frame(given), words, THEMES[theme]).to_json())
    return {"layout": figure["layout"], **{trace["meta"]: trace for trace in figure["data"]}}


def test_a_person_waits_is_read_and_writes() -> None:
    table = gantt.spans(gantt.person("B", 1.0, [(2.0, 3.0, 0, 64), (4.0, 5.0, 64, 100)], [5.5, 6.0]))
    told = {kind: list(zip(part["start"], part["stop"], strict=True)) for kind, part in table.groupby("kind")}
    assert told == {
        "wait": [(1.0, 2.0)],
        "between": [(2.0, 5.0)],
        "read": [(2.0, 3.0), (4.0, 5.0)],
        "write": [(5.5, 6.0)],
        "word": [(5.5, 5.5), (6.0, 6.0)],
    }
    assert table[table["kind"] == "read"]["label"].tolist() == ["1–64", "65–100"]


def test_the_longest_pause_is_the_one_while_somebody_else_waits() -> None:
    written = [0.0, 5.0, 6.0, 8.0, 20.0]
    assert gantt.longest_pause(written, arrived=5.5, late=9.0) == (8.0, 20.0)
    assert gantt.longest_pause(written, arrived=5.5, late=7.5) == (6.0, 8.0)
    assert gantt.longest_pause(written, arrived=30.0, late=31.0) is None


def test_both_lanes_are_those_of_the_sitting_picked() -> None:
    length = given("chunked").lab["figures"]["lengths"][1]  # type: ignore[index]
    point = length["points"][-1]
    drawn = made("chunked-desk", given("chunked", pick=f"{length['n']}/{point['chunk']}"))
    assert drawn["read"]["base"] == [chunk[0] for chunk in point["sitting"]["chunks"]]
    assert drawn["rest"]["x"] == pytest.approx([point["sitting"]["stall"]])
    assert drawn["word"]["x"] == [*point["sitting"]["words"], *point["sitting"]["late"]]
    meta = drawn["layout"]["meta"]
    assert meta["source"] == "recorded" and meta["origin"] and f"{length['n']:,}" in meta["summary"]
    ends = {
        made("chunked-desk", given("chunked", pick=f"{length['n']}/{one['chunk']}"))["layout"]["meta"]["end"]
        for one in length["points"]
    }
    assert len(ends) == 1, "one scale for every position of the slider"


def test_chunk_sizes_are_told_with_their_spread() -> None:
    frame = CHARTS["chunked-stall"].frame(given("chunked"))
    points = [point for one in given("chunked").lab["figures"]["lengths"] for point in one["points"]]  # type: ignore[index]
    assert frame["value"].tolist() == [point["stall"]["middle"] for point in points]
    assert (frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all()
    trade = made("chunked-trade", given("chunked", pick="1024/256"))
    ring = trade["sizes"]["customdata"].index(256)
    assert (trade["now"]["x"], trade["now"]["y"]) == ([trade["sizes"]["x"][ring]], [trade["sizes"]["y"][ring]])


@pytest.mark.parametrize("way", ["alone", "static", "continuous"])
def test_eight_lanes_are_those_of_the_way_picked(way: str) -> None:
    told = next(one for one in given("batching").lab["figures"]["ways"] if one["way"] == way)  # type: ignore[index]
    frame = CHARTS["batching-desk"].frame(given("batching", pick=way))
    assert frame["lane"].nunique() == 8 and frame.attrs["way"] == way
    for member in told["members"]:
        own = frame[frame["lane"] == member["name"]]
        assert own[own["kind"] == "word"]["start"].tolist() == member["words"]
    bars = made("batching-ways", given("batching"))
    assert (bars[f"rate-{way}"]["y"], bars[f"ttft-{way}"]["y"]) == ([told["rate"]], [told["ttft"]["high"]])


def test_more_people_in_a_step_are_drawn_with_their_range() -> None:
    batches = given("batching").lab["figures"]["batches"]  # type: ignore[index]
    frame = CHARTS["batching-rate"].frame(given("batching"))
    assert frame["value"].tolist() == [one["rate"] for one in batches]
    assert (frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all()
    assert made("batching-tpot", given("batching"))["steps"]["y"] == pytest.approx(
        [1000 * one["tpot"]["middle"] for one in batches]
    )


def test_runs_that_sat_together_are_the_rows_of_the_page() -> None:
    rows = (
        {"lane": "A", "kind": "word", "start": 1.0, "stop": 1.0, "end": 4.0},
        {"lane": "A", "kind": "wait", "start": 0.0, "stop": 0.5},
        {"lane": "A", "kind": "nonsense", "start": 1.0, "stop": 2.0},
        {"kind": "word"},
    )
    frame = CHARTS["together"].frame(Given(rows=rows))
    assert frame["kind"].tolist() == ["word", "wait"] and frame.attrs["source"] == "measured"
    assert made("together", Given(rows=rows))["layout"]["xaxis"]["range"] == [0, 4.0]


LAB_CHARTS = [
    name for name, chart in CHARTS.items() if "lab" in chart.needs and name.split("-")[0] in ("chunked", "batching")
]


@pytest.mark.parametrize("name", LAB_CHARTS)
def test_with_nothing_measured_there_is_a_sentence_and_no_number(name: str) -> None:
    lab = LABS[name.split("-")[0]]
    drawn = made(name, Given(lab={"figures": lab.figures({}), "results": {}, "source": ""}))
    assert list(drawn) == ["layout"] and drawn["layout"]["meta"]["summary"] and not drawn["layout"]["meta"]["source"]
