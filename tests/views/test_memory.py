"""The page "Will it fit?" as the browser is told to draw it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.plan.configs import configs, kept
from engine.plan.read import of_run, read
from engine.settings import Refusal
from engine.trace import file as tracefile
from engine.words import say
from tests.views.told import Opened
from views.memory import measured, source, tables
from views.memory.text import plain

pytestmark = pytest.mark.slow

GIB = 1024**3


@pytest.fixture
def at(opened: Opened) -> Opened:
    """Open the page: `at(lang="zh", run="open-book")`."""

    def at(**query: str) -> AppTest:
        app = opened(**query)
        app.switch_page("../pages/memory.py")
        for name, value in query.items():
            app.query_params[name] = value
        return app.run()

    return at


def part(app: AppTest, name: str) -> int:
    """Bytes of a row of the first table."""
    row = ("weights", "kv", "activation", "overhead", "total").index(name)
    return int(app.dataframe[0].value.iloc[row, 2])


def choose(app: AppTest, way: str) -> AppTest:
    return app.segmented_control(key="memory-way").set_value(way).run()


def shown(app: AppTest) -> str:
    return "\n".join(element.value for element in app.markdown)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_opens_with_the_bundled_model_in_either_language(at: Opened, lang: str) -> None:
    app = at(lang=lang)
    assert not app.exception and not app.error and not app.warning
    assert [one.value for one in app.header] == [say("memory.title", lang)]
    assert app.selectbox(key="memory-model").value == "smollm2-135m-instruct"
    assert "134,515,008" in shown(app)
    assert "{" not in shown(app)
    assert len(app.get("plotly_chart")) == 4


def test_figures_follow_the_inputs(at: Opened) -> None:
    app = at(lang="en")
    assert part(app, "kv") == 4096 * 23_040
    app.selectbox(key="memory-model").set_value("qwen2-72b").run()
    app.number_input(key="memory-context").set_value(131_072).run()
    assert part(app, "kv") == 42_949_672_960
    assert part(app, "weights") == 2 * 72_706_203_648
    assert "40.0 GiB" in app.dataframe[0].value.to_string()
    app.number_input(key="memory-batch").set_value(4).run()
    assert part(app, "kv") == 4 * 42_949_672_960
    app.selectbox(key="memory-kv").set_value("fp8").run()
    assert part(app, "kv") == 4 * (42_949_672_960 // 2 + 80 * 2 * 4)
    total = sum(part(app, name) for name in ("weights", "kv", "activation", "overhead"))
    assert part(app, "total") == total
    assert "does not fit" in app.subheader[0].value
    assert not app.exception and not app.error


def test_the_verdict_and_the_longest_context_follow_the_device(at: Opened) -> None:
    app = at(lang="en")
    app.selectbox(key="memory-model").set_value("llama-3.1-8b").run()
    app.selectbox(key="memory-device").set_value(16 * GIB).run()
    app.number_input(key="memory-reserve").set_value(0).run()
    assert "does not fit" not in app.subheader[0].value and "longest context" in shown(app)
    app.selectbox(key="memory-device").set_value(8 * GIB).run()
    assert "does not fit" in app.subheader[0].value and say("memory.longest_none", batch=1) in shown(app)


def test_a_context_beyond_the_model_is_a_sentence_and_the_page_stays(at: Opened) -> None:
    app = at(lang="en")
    app.number_input(key="memory-context").set_value(8193).run()
    (error,) = app.error
    assert "8,193" in error.value and "max" in error.value
    assert not app.exception and len(app.dataframe) == 2  # the models and the run are still there
    app.number_input(key="memory-context").set_value(8192).run()
    assert not app.error and part(app, "kv") == 8192 * 23_040
    assert say("memory.time_full") in [caption.value for caption in app.caption]


HOSTILE = {
    "words": ("nonsense", "JSON"),
    "a list": ("[1]", "JSON"),
    "deep": ("[" * 50_000, "JSON"),
    "nothing in it": ("{}", "num"),
    "negative": (json.dumps(kept("gpt2") | {"n_layer": -1}), "n"),
    "huge": (json.dumps(kept("gpt2") | {"n_embd": 10**60}), "n"),
    "not a number": (json.dumps(kept("gpt2") | {"n_head": float("nan")}), "nan"),
    "a string": (json.dumps(kept("gpt2") | {"vocab_size": "**bold** <img src=x onerror=alert(1)>"}), "vocab"),
    "unknown": (json.dumps({"model_type": "[click](http://example.org) :red[x] $x$"}), "model"),
    "ten megabytes": ('{"a": "' + "x" * 10_000_000 + '"}', "10,000,009"),
}


@pytest.mark.parametrize(("name", "lang"), [*((name, "en") for name in HOSTILE), ("huge", "zh"), ("unknown", "zh")])
def test_hostile_pastes_are_one_sentence_each(at: Opened, name: str, lang: str) -> None:
    text, told = HOSTILE[name]
    app = choose(at(lang=lang), "paste")
    app.text_area(key="memory-paste").set_value(text).run()
    assert not app.exception
    (error,) = app.error
    assert told in error.value.replace("\\", "") and len(error.value) < 1500
    assert "<" not in error.value.replace("\\<", "") and "](" not in error.value
    app.text_area(key="memory-paste").set_value(json.dumps(kept("gemma-3-270m"))).run()
    assert not app.error and part(app, "weights") == 2 * 268_098_176


def test_a_file_can_be_dropped(at: Opened) -> None:
    app = choose(at(lang="en"), "file")
    app.file_uploader(key="memory-file").upload("config.json", json.dumps(kept("deepseek-v3")).encode()).run()
    assert not app.error and part(app, "weights") == 2 * 671_026_419_200
    app.file_uploader(key="memory-file").upload("config.json", b"\xff\xfe\x00").run()
    assert len(app.error) == 1 and not app.exception


def test_models_on_this_machine_are_offered_by_name(
    at: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPEN_BOOK_EXAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    app = choose(at(lang="en"), "folder")
    assert [info.value for info in app.info] == [say("memory.no_folders")]
    for folder, config in (
        (tmp_path / "home" / "models" / "mine", kept("llama-3.2-1b")),
        (tmp_path / "hub" / "hub" / "models--org--theirs" / "snapshots" / "abc", {"model_type": "t5"}),
    ):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
    app.run()
    assert list(source.folders()) == ["mine", "org/theirs"]
    assert part(app, "weights") == 2 * 1_235_814_400
    app.selectbox(key="memory-folder").set_value("org/theirs").run()
    assert "t5" in app.error[0].value and not app.exception


def test_every_kept_model_is_a_row_that_can_be_downloaded(at: Opened) -> None:
    table = at(lang="en").dataframe[1].value
    assert set(table["name"]) == {origin.title for origin in configs().values()}
    saving = dict(zip(table["name"], table["saving"], strict=True))
    assert saving["SmolLM2 135M"] == pytest.approx(66.7, abs=0.05) and saving["Qwen2 72B"] == 87.5
    assert saving["GPT-2"] == 0 and saving["Gemma 2B"] == 87.5
    assert saving["DeepSeek-V3"] == pytest.approx(100 * (1 - 576 / (128 * 320)))
    assert (table["source"].str.len() > 5).all()


@pytest.mark.parametrize("name", ["open-book", "closed-book", "long-paper", "chinese"])
def test_prediction_equals_measurement_for_the_recordings(at: Opened, name: str) -> None:
    app = at(lang="en", run=name)
    table = app.dataframe[2].value
    assert len(table) == 5 and table.iloc[:, 3].all()
    assert (table.iloc[:, 1] > 0).all()


def test_a_measurement_that_differs_is_not_called_equal() -> None:
    file = measured.trace_of("open-book")
    assert file is not None
    trace, started = file.trace, file.trace.started
    assert started is not None
    held = measured.last_cache(trace)
    assert held is not None and held.length == len(started.prompt) + len(trace.chosen) - 1
    heavier = replace(started, facts=replace(started.facts, weight_bytes=started.facts.weight_bytes + 1))
    table = measured.compared(heavier, trace, "en")
    assert list(table.iloc[:, 3]) == [True, False, True, True, True]


@pytest.mark.parametrize("run", ["never-was-in-here", "../../etc/passwd", "x"])
def test_an_unknown_run_is_said_and_a_recording_stands_in(at: Opened, run: str) -> None:
    app = at(lang="en", run=run)
    assert not app.exception and len(app.dataframe) == 3
    assert "Anna" in shown(app)


def test_facts_that_leave_it_open_are_a_sentence(at: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(facts: object) -> object:
        raise Refusal("facts_ambiguous", model="<b>mine</b>")

    monkeypatch.setattr("views.memory.measured.of_run", refuse)
    app = at(lang="en")
    assert not app.exception and any("config" in caption.value and "\\<b" in caption.value for caption in app.caption)


def test_the_bundled_recordings_lead_to_the_kept_configs() -> None:
    for file in (Path(__file__).parent.parent.parent / "assets" / "recordings").glob("*.trace"):
        started = tracefile.read(file).trace.started
        assert started and of_run(started.facts) == read(kept(started.facts.model))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("gpt2", "ordinary"), ("qwen2-72b", "grouped"), ("falcon-7b", "multi_query"), ("deepseek-v3", "latent")],
)
def test_kinds_of_attention(name: str, kind: str) -> None:
    assert tables.attention(read(kept(name))) == kind


def test_a_strangers_text_is_taken_literally() -> None:
    assert plain("**a** <b> $x$ :red[y]\n# c") == r"\*\*a\*\* \<b\> \$x\$ \:red\[y\] \# c"
