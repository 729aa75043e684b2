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
from engine.words import area_words, say
from service.api import create
from service.kept import Kept
from tests.engine.traces import FACTS
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
    shipped = client.get("/api/figures/groups-step").json()["layout"]["meta"]
    assert shipped["source"] == "recorded" and "AMD EPYC" in shipped["origin"]
    run, world = kept(client), client.world  # type: ignore[attr-defined]
    facts = replace(FACTS, model="small")
    subject = {**machine.identity(facts), "model": facts.model, "weights": facts.weights_sha256}
    lab = LABS["groups"]
    step = {"n": 256, **{side: spread([value] * 3) for side, value in (("repeated", 0.4), ("grouped", 0.1))}}
    folder = Kept(world.service.archive.beside("measures"))
    folder.put({**subject, "lab": lab.name, "version": lab.version}, "decode/256", step)
    own = client.get("/api/figures/groups-step?model=small").json()
    assert own["layout"]["meta"]["source"] == "measured" and trace(own, "grouped")["y"] == [0.1]
    again = client.get("/api/figures/groups-step?model=small&source=recorded").json()
    assert again["layout"]["meta"]["source"] == "recorded" and len(trace(again, "grouped")["y"]) > 3
    bytes_of = client.get(f"/api/figures/groups-bytes?run={run}&tokens=10&format=rows").json()
    assert bytes_of["about"]["source"] == "computed" and {row[1] for row in bytes_of["rows"]} == {10}
    told = client.get("/api/figures/forgetting-times?part=baker/64&format=rows").json()
    assert {row[1] for row in told["rows"]} == {64} and client.get(
        "/api/figures/paged-own?run=never"
    ).status_code == 404
