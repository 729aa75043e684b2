"""Charts, tested by their data: what stands in a frame, that the figure draws the frame, and how they are asked for."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from engine.jobs import machine
from engine.labs import LABS
from engine.labs.base import spread
from engine.trace import Layer, Prefilled, Trace
from engine.words import area_words, say
from service.api import create
from service.kept import Kept
from tests.engine.traces import FACTS, run
from tests.service.fakes import World, story
from tests.service.fakes import start as begin
from views.figures import CHARTS, routes
from views.figures.chart import Given, shown
from views.figures.style import THEMES

MACHINE = {"device": "cpu", "device_name": "a laptop"}


def words(key: str, **values: Any) -> str:
    return say(f"figures.{key}", "en", **values)


def wait(prompt: int, ttft: float, middle: float | None) -> dict[str, Any]:
    return {"run": f"run-{prompt}", "prompt": prompt, "ttft": ttft, "middle": middle, "contexts": [prompt, prompt + 2],
            "taken": "2026-12-07T10:00:00"}  # fmt: skip


WAITS = {f"wait/{n}": wait(n, 0.1 + 0.002 * n + (0.05 if n == 128 else 0), 0.04 + n / 1e5) for n in (32, 64, 128, 256)}
HERE = {"machine": MACHINE, "results": WAITS, "recorded": None}


def made(name: str, given: Given, theme: str = "light") -> Any:
    """The figure as a page gets it."""
    chart = CHARTS[name]
    return json.loads(chart.figure(chart.frame(given), words, THEMES[theme]).to_json())


def trace(figure: Any, meta: str) -> Any:
    (found,) = [trace for trace in figure["data"] if trace.get("meta") == meta]
    return found


def test_a_layers_time_is_the_sum_over_the_chunks_of_a_prefill() -> None:
    def layer(index: int, start: int, seconds: float) -> Layer:
        return Layer(0.1, index, start, start + 4, seconds, b"", b"")

    told = Given(trace=Trace((layer(0, 0, 0.01), layer(1, 0, 0.02), layer(0, 4, 0.03))), recorded=True)
    table = CHARTS["layers"].frame(told)
    assert table.to_dict("list") == {"layer": [1, 2], "seconds": pytest.approx([0.04, 0.02]), "passes": [2, 1]}
    drawn = made("layers", told)
    assert trace(drawn, "layers")["y"] == pytest.approx([40, 20]) and drawn["layout"]["meta"]["source"] == "recorded"
    assert made("layers", replace(told, recorded=False))["layout"]["meta"]["source"] == "measured"


def test_lengths_fit_fixed_and_slope_and_draw_the_readings_from_shortest_to_longest() -> None:
    """Points that lie on 0.02 s + FLOPs ÷ 50 GFLOP/s but for one, which is a tenth above."""

    def row(tokens: int, off: float = 1.0) -> dict[str, Any]:
        flops = 2e8 * tokens + 1e4 * tokens**2
        middle = off * (0.02 + flops / 5e10)
        return {"tokens": tokens, "middle": middle, "low": middle - 0.001, "high": middle + 0.002, "flops": flops}

    exact = CHARTS["lengths"].frame(Given(rows=tuple(map(row, (8, 16, 32, 52)))))
    assert exact.attrs["fit"]["fixed"] == pytest.approx(0.02) and exact.attrs["fit"]["slope"] == pytest.approx(2e-11)
    assert exact.attrs["fit"]["worst"] == pytest.approx(0, abs=1e-9)
    own = {"kind": "own", "tokens": 52, "middle": 0.4}
    given = Given(rows=(row(8), row(16, 1.1), row(32), row(52), own))
    points = CHARTS["lengths"].frame(given).query("kind == 'point'")
    assert points["off"].idxmax() == points.index[points["tokens"] == 16][0] and points["off"].max() < 0.1
    assert (points["middle"] / points["fitted"] - 1).tolist() == pytest.approx(points["off"].tolist())
    drawn = made("lengths", given)
    point = trace(drawn, "point")
    assert point["x"] == [8, 16, 32, 52] and trace(drawn, "own")["y"] == [400]
    assert point["error_y"]["array"] == pytest.approx([2] * 4)
    assert point["error_y"]["arrayminus"] == pytest.approx([1] * 4)
    assert trace(drawn, "curve")["x"][0] == pytest.approx(8) and drawn["layout"]["meta"]["source"] == "measured"
    two = CHARTS["lengths"].frame(Given(rows=(row(8), row(16))))
    assert two.attrs["fit"] is None and two["fitted"].isna().all(), "a curve needs three lengths"


def test_waiting_draws_every_paper_and_says_how_far_each_is_off_the_curve() -> None:
    frame = CHARTS["waiting-ttft"].frame(Given(measures=HERE))
    points = frame[frame["kind"] == "point"]
    assert points["tokens"].tolist() == [32, 64, 128, 256]
    assert points["seconds"].tolist() == [WAITS[f"wait/{n}"]["ttft"] for n in (32, 64, 128, 256)]
    assert (points["seconds"] - points["fitted"]).tolist() == pytest.approx(points["residual"].tolist())
    fit = frame.attrs["fit"]
    assert points["fitted"].tolist() == pytest.approx(
        [fit["a"] + fit["b"] * n + fit["c"] * n * n for n in points["tokens"]]
    )
    figure = made("waiting-ttft", Given(measures=HERE))
    assert trace(figure, "point")["y"] == points["seconds"].tolist()
    assert trace(figure, "residual")["y"] == pytest.approx([1000 * r for r in points["residual"]])
    assert len(trace(figure, "curve")["x"]) > 20
    assert figure["layout"]["meta"]["source"] == "measured" and "a laptop" in figure["layout"]["meta"]["origin"]
    paces = made("waiting-tpot", Given(measures=HERE))
    assert trace(paces, "point")["y"] == pytest.approx([1000 * one["middle"] for one in WAITS.values()])
    assert trace(paces, "point")["x"] == [33, 65, 129, 257], "the middle of the notes it looked through"


def test_a_band_far_above_everything_measured_is_left_out() -> None:
    slow = {**HERE, "results": {"wait/32": wait(32, 3.0, 0.09)}}
    quick = {**HERE, "results": {"wait/32": wait(32, 0.1, 0.01)}}
    for name in ("waiting-ttft", "waiting-tpot"):
        assert made(name, Given(measures=slow))["layout"]["shapes"]
        assert "shapes" not in made(name, Given(measures=quick))["layout"]


def test_a_curve_needs_four_lengths() -> None:
    few = {**HERE, "results": dict(list(WAITS.items())[:3])}
    figure = made("waiting-ttft", Given(measures=few))
    assert [one["meta"] for one in figure["data"]] == ["point"]


def test_what_was_not_measured_here_is_recorded_or_is_not_drawn() -> None:
    recorded = {"machine": {"device_name": "a server"}, "taken": "2026-11-30", "results": WAITS, "fits": {}}
    assert shown({**HERE, "recorded": recorded}, "wait/").source == "measured"
    stands_in = {"machine": MACHINE, "results": {}, "recorded": recorded}
    assert shown(stands_in, "wait/").source == "recorded" and shown(None, "wait/").source == ""
    meta = made("waiting-ttft", Given(measures=stands_in))["layout"]["meta"]
    assert meta["source"] == "recorded" and "a server" in meta["origin"] and "2026-11-30" in meta["origin"]
    nothing = made("waiting-ttft", Given(measures={"machine": MACHINE, "results": {}, "recorded": None}))
    assert nothing["data"] == [] and nothing["layout"]["meta"]["source"] == "" and nothing["layout"]["meta"]["summary"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_the_scenes_own(theme: str) -> None:
    sheet = (Path(__file__).parents[2] / "assets" / "scene" / "scene.css").read_text("utf-8")
    part = sheet.split(".exam-scene[data-theme=dark]")[theme == "dark"]
    for name in (
        "paper",
        "pad",
        "ink",
        "pencil",
        "rule",
        "prefill",
        "decode",
        "mark",
        "special",
        "stop",
        "graphite",
        "ghost",
    ):
        assert f"--{name}: {getattr(THEMES[theme], name)};" in part


def test_both_languages_have_the_same_words() -> None:
    assert area_words("figures", "en").keys() == area_words("figures", "zh").keys()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """The routes as the app mounts them, on a service with an engine that is a stand-in."""
    world = World(tmp_path)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        async with world.service.running():
            yield

    mounts = [Mount("/api/figures", routes.create(world.service)), Mount("/api", create(world.service))]
    script = Route("/plotly/plotly.min.js", routes.script)
    with TestClient(Starlette(routes=[*mounts, script], lifespan=lifespan), base_url="http://localhost") as client:
        client.world = world  # type: ignore[attr-defined]
        yield client


def kept(client: TestClient) -> str:
    """A run that is over, and how long it made one wait kept."""
    world: World = client.world  # type: ignore[attr-defined]
    client.get("/api/health")
    world.service.call(world.service.models.want, "small")
    run, own = begin(client), replace(FACTS, model="small")
    world.play(run, [replace(event, facts=own) if event.type == "started" else event for event in story()])
    assert client.post("/api/measures", json={"kind": "wait", "run": run}).status_code == 200
    return run


def test_a_figure_is_asked_for_in_every_form(client: TestClient) -> None:
    run = kept(client)
    address = f"/api/figures/waiting-ttft?run={run}&lang=zh&theme=dark"
    figure = client.get(address).json()
    assert (
        "试卷" in figure["layout"]["meta"]["summary"] and trace(figure, "own")["marker"]["color"] == THEMES["dark"].stop
    )
    told = client.get(f"{address}&format=rows").json()
    rows = [dict(zip(told["columns"], row, strict=True)) for row in told["rows"]]
    assert [row["run"] for row in rows if row["kind"] == "point"] == [run]
    csv = pd.read_csv(io.StringIO(client.get(f"{address}&format=csv").text))
    parquet = pd.read_parquet(io.BytesIO(client.get(f"{address}&format=parquet").content))
    assert csv["tokens"].tolist() == parquet["tokens"].tolist() == [row["tokens"] for row in rows]
    assert list(parquet.columns) == told["columns"] and parquet.attrs["source"] == "measured"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("none-such", 404, "no_figure"),
        ("waiting-ttft?theme=blue", 422, "bad_field"),
        ("waiting-ttft?format=png", 422, "bad_field"),
        ("waiting-ttft?run=never", 404, "unknown_run"),
        ("waiting-ttft?model=never", 422, ""),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(client: TestClient, path: str, status: int, code: str) -> None:
    reply = client.get(f"/api/figures/{path}")
    told = reply.json()["error"]
    assert (reply.status_code, bool(told["message"])) == (status, True) and told["code"].startswith(code)


def test_only_our_own_pages_may_ask(client: TestClient) -> None:
    assert client.get("/api/figures/waiting-ttft", headers={"Host": "elsewhere.example"}).status_code == 403


def test_the_script_is_our_own_and_is_kept_by_the_browser(client: TestClient) -> None:
    reply = client.get("/plotly/plotly.min.js")
    assert reply.headers["content-encoding"] == "gzip" and "plotly.js v" in reply.text[:100]
    plain = client.get("/plotly/plotly.min.js", headers={"Accept-Encoding": "identity"})
    assert plain.text == reply.text
    again = client.get("/plotly/plotly.min.js", headers={"If-None-Match": reply.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_what_is_documented_is_there(client: TestClient) -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
    paths = client.get("/api/figures/openapi.json").json()["paths"]
    assert set(paths) == {"/{name}"} and client.get("/api/figures/").json()["figures"] == sorted(CHARTS)
    for method in paths["/{name}"]:
        assert f"| `{method.upper()} /api/figures/{{name}}?" in text


def test_a_remedys_chart_is_of_this_machine_or_of_what_is_shipped(client: TestClient) -> None:
    shipped = client.get("/api/figures/groups-step?lab=groups").json()["layout"]["meta"]
    assert shipped["source"] == "recorded" and "AMD EPYC" in shipped["origin"]
    run, world = kept(client), client.world  # type: ignore[attr-defined]
    facts = replace(FACTS, model="small")
    subject = {**machine.identity(facts), "model": facts.model, "weights": facts.weights_sha256}
    lab = LABS["groups"]
    step = {"n": 256, **{side: spread([value] * 3) for side, value in (("repeated", 0.4), ("grouped", 0.1))}}
    folder = Kept(world.service.archive.beside("measures"))
    folder.put({**subject, "lab": lab.name, "version": lab.version}, "decode/256", step)
    own = client.get("/api/figures/groups-step?lab=groups&model=small").json()
    assert own["layout"]["meta"]["source"] == "measured" and trace(own, "grouped")["y"] == [0.1]
    again = client.get("/api/figures/groups-step?lab=groups&model=small&recorded=true").json()
    assert again["layout"]["meta"]["source"] == "recorded" and len(trace(again, "grouped")["y"]) > 3
    bytes_of = client.get(f"/api/figures/groups-bytes?run={run}&tokens=10&format=rows").json()
    assert bytes_of["about"]["source"] == "computed" and {row[1] for row in bytes_of["rows"]} == {10}
    told = client.get("/api/figures/forgetting-times?lab=forgetting&pick=baker/64&format=rows").json()
    assert {row[1] for row in told["rows"]} == {64} and client.get(
        "/api/figures/paged-own?run=never"
    ).status_code == 404


PAPER = 64
FLOPS = {"projections": 6e9, "attention": 1e9, "mlp": 10e9, "norms": 1e6, "logits": 2e9}


def cost(tokens: int, context: int, batch: int = 1, scale: float = 1.0) -> dict[str, Any]:
    flops = {part: scale * value for part, value in FLOPS.items()}
    total, moved = sum(flops.values()), 5e8
    return {"tokens": tokens, "context": context, "batch": batch, "flops": flops, "total": total, "moved": moved,
            "intensity": total / moved}  # fmt: skip


def sat(recorded: bool = False, **results: Any) -> Given:
    """A run of four words on a machine whose `results` are kept."""
    trace = run([0.5, 0.6, 0.75, 0.80])
    assert trace.started
    here = {**machine.identity(trace.started.facts), "model": trace.started.facts.model,
            "weights": trace.started.facts.weights_sha256}  # fmt: skip
    costs = {
        "prompt": PAPER, "chunks": [cost(PAPER, 0) for event in trace.events if isinstance(event, Prefilled)],
        "steps": [cost(1, PAPER + n, scale=0.01) for n in range(3)],
        "batches": {str(n): cost(1, PAPER + 1, n, 0.01 * n) for n in (1, 2, 4)},
        "curve": [cost(n, 0, scale=n / PAPER) for n in (32, 64, 128)],
        "race": {"notes": [10.0, 1.0, 1.0, 1.0], "none": [10.0, 11.0, 12.0, 13.0]},
    }  # fmt: skip
    measures = {"machine": here, "results": results, "recorded": None}
    return Given(measures, trace, costs, recorded=recorded)


PEAKS = {
    "peak/sum": {"kind": "bandwidth", "rate": 1e10, "taken": "2026-12-07"},
    "peak/matvec": {"kind": "bandwidth", "rate": 2e10, "taken": "2026-12-07"},
    "peak/product-512": {"kind": "compute", "rate": 1e11, "taken": "2026-12-07"},
}


def test_points_stand_where_their_passes_were_timed_and_the_roof_is_the_best_that_was_measured() -> None:
    given = sat(**PEAKS, **{f"batch/{PAPER}/{n}": {"batch": n, "best": 0.1, "busy": 0.0} for n in (1, 2, 4)})
    figure = made("roofline", given)
    roof = trace(figure, "roof")
    assert roof["y"][0] / roof["x"][0] == pytest.approx(2e10) and roof["y"][1:] == [1e11, 1e11]
    assert roof["x"][1] == pytest.approx(5.0), "they meet where compute is bandwidth times intensity"
    prefilled = sum(event.seconds for event in given.trace.events if isinstance(event, Prefilled))  # type: ignore[union-attr]
    prefill = trace(figure, "prefill")
    assert (prefill["x"], prefill["y"]) == ([sum(FLOPS.values()) / 5e8], [sum(FLOPS.values()) / prefilled])
    assert trace(figure, "batch")["customdata"] == [1, 2, 4]
    assert trace(figure, "batch")["y"] == pytest.approx([0.01 * n * sum(FLOPS.values()) / 0.1 for n in (1, 2, 4)])
    guess = trace(made("roofline", replace(given, tokens=120)), "guess")
    assert guess["text"] == [words("roofline.guess_label", n="128")] and guess["y"] == [1e11], "on the roof"


def test_no_run_stands_under_another_machines_roof() -> None:
    given = sat(**PEAKS)
    assert given.measures
    elsewhere = replace(given, measures={**given.measures, "machine": {**given.measures["machine"], "threads": 64}})
    assert "roof" not in [one["meta"] for one in made("roofline", elsewhere)["data"]]
    unknown = replace(given, measures=None, recorded=True)
    figure = made("roofline", unknown)
    assert {one["meta"] for one in figure["data"]} == {"prefill", "decode"}
    assert figure["layout"]["meta"]["source"] == "recorded"


def test_batches_write_more_words_in_all_and_say_how_long_a_step_takes() -> None:
    kept = {f"batch/{PAPER}/{n}": {"batch": n, "best": 0.1 * n**0.5, "busy": 0.0} for n in (1, 2, 4)}
    figure = made("batches", sat(**kept))
    assert trace(figure, "words")["y"] == pytest.approx([10.0, 2 / (0.1 * 2**0.5), 20.0])
    assert trace(figure, "even")["y"] == pytest.approx([10.0, 20.0, 40.0])
    assert made("batches", sat())["data"] == []


def test_parts_add_up_to_a_whole() -> None:
    parts = {**dict.fromkeys(FLOPS, 0.1), "rest": 0.5}
    timed = {f"parts/{PAPER}/decode": {"parts": parts, "calls": 900, "seconds": 0.9, "timed": 1.0}}
    frame = CHARTS["parts"].frame(sat(**timed))
    assert frame.groupby(["stage", "kind"])["share"].sum().tolist() == pytest.approx([1.0, 1.0, 1.0])
    own = frame[(frame["stage"] == "decode") & (frame["kind"] == "seconds")]
    assert dict(zip(own["part"], own["value"], strict=True)) == parts
    figure = made("parts", sat(**timed))
    assert [one["meta"] for one in figure["data"]] == [*FLOPS, "rest"]
    assert "50%" in str(figure["data"][-1]["text"]) and figure["layout"]["meta"]["source"] == "measured"


def test_the_race_is_both_runs_own_times_and_their_arithmetic() -> None:
    given = sat()
    assert given.trace and given.trace.started
    started = given.trace.started
    without = Trace(tuple(
        replace(event, settings=replace(event.settings, notes=False)) if event is started else event
        for event in given.trace.events
    ))  # fmt: skip
    both = replace(given, beside=without, beside_costs=given.costs)
    seconds, flops = made("race-seconds", both), made("race-flops", both)
    times = [event.at for event in given.trace.chosen]
    assert trace(seconds, "notes")["y"] == trace(seconds, "none")["y"] == times
    assert [1e9 * y for y in trace(flops, "none")["y"]] == pytest.approx([10.0, 21.0, 33.0, 46.0])
    assert [one["meta"] for one in made("race-seconds", given)["data"]] == ["notes"]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "name", sorted(name for name, one in CHARTS.items() if "lab" not in one.needs and name != "together")
)
def test_every_chart_says_itself_in_both_languages_and_draws_nothing_without_numbers(name: str, lang: str) -> None:
    def spoken(key: str, **values: Any) -> str:
        return say(f"figures.{key}", lang, **values)

    nothing = CHARTS[name].figure(CHARTS[name].frame(Given()), spoken, THEMES["dark"])
    assert not nothing.data and nothing.layout.meta["summary"] and nothing.layout.meta["source"] == ""
    kept = {f"batch/{PAPER}/{n}": {"batch": n, "best": 0.1, "busy": 1.0} for n in (1, 2)}
    full = replace(sat(**PEAKS, **WAITS, **kept), rows=({"tokens": 8, "middle": 0.1, "flops": 1e9},))
    figure = CHARTS[name].figure(CHARTS[name].frame(full), spoken, THEMES["dark"])
    assert figure.data and figure.layout.meta["summary"] and figure.layout.meta["source"]
