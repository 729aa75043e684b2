"""Operator fusion: what is counted and noted is what is done, the ways agree, and compiling leaves nothing behind."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.labs import compiling, fusion
from engine.labs.base import giving_way
from engine.labs.fusion import LAB
from engine.labs.jobs import measured
from engine.labs.traffic import block_of, compared, gated
from engine.model import LanguageModel, fuse, wrap
from engine.settings import Refusal
from engine.words import say
from tests.engine import tiny

pytestmark = pytest.mark.slow

HIDDEN, INNER, WIDE = 32, 64, 4
"""The tiny models' sizes and the bytes of a number."""
NORM = ["pow", "mean", "add", "rsqrt", "mul", "mul"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "ROWS", (1, 12))
    monkeypatch.setattr(fusion, "CONTEXTS", (16, 4096))
    monkeypatch.setattr(fusion, "PAPERS", (24,))
    monkeypatch.setattr(fusion, "PROMPT", 24)
    monkeypatch.setattr(fusion, "STEPS", 2)
    monkeypatch.setattr("engine.labs.traffic.ROUNDS", 2)


def fresh(kind: str) -> LanguageModel:
    """A model whose one row goes through the general kernel, whatever this machine would take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuse, "_as_vector", lambda network: False)
        return wrap(tiny.network(kind), tiny.tokenizer(), name=kind)


@pytest.mark.parametrize("rows", [1, 12])
def test_every_operation_is_counted_and_its_bytes_are_those_of_its_tensors(small: None, rows: int) -> None:
    told = compared(*block_of(fresh("llama"), rows))
    assert (told["rows"], told["hidden"], told["inner"]) == (rows, HIDDEN, INNER)
    separate, fused = told["ways"]["separate"], told["ways"]["fused"]
    assert [step["op"] for step in separate["steps"]] == [*NORM, "mm", "silu", "mm", "mul", "mm"]
    assert [step["op"] for step in fused["steps"]] == [*NORM, "mm", "silu", "mul", "mm"]
    assert (separate["calls"], fused["calls"]) == (11, 5), "a norm is one call, and so are gate and up"
    for way in (separate, fused):
        assert way["kernels"] == len(way["steps"]), "the profiler saw what was noted"
        assert way["calls"] == len({step["call"] for step in way["steps"]})
        assert way["seconds"]["repeats"] == 2 and way["allocated"] > 0
    assert len({step["call"] for step in fused["steps"][:6]}) == 1, "the whole norm"
    gate, up, down = (step for step in separate["steps"] if step["op"] == "mm")
    assert [one["weight"] for one in (gate, up, down)] == [["gate_proj"], ["up_proj"], ["down_proj"]]
    assert gate["weights"] == down["weights"] == HIDDEN * INNER * WIDE
    assert (gate["reads"], gate["writes"]) == (rows * HIDDEN * WIDE, rows * INNER * WIDE)
    (joint,) = (step for step in fused["steps"] if len(step["weight"]) == 2)
    assert joint["weight"] == ["gate_proj", "up_proj"] and joint["weights"] == 2 * gate["weights"]
    assert joint["writes"] == gate["writes"] + up["writes"] and joint["reads"] == gate["reads"]
    power, mean, added = separate["steps"][:3]
    assert (power["reads"], power["writes"], mean["writes"]) == (
        rows * HIDDEN * WIDE,
        rows * HIDDEN * WIDE,
        rows * WIDE,
    )
    assert added["reads"] == added["writes"] == rows * WIDE
    assert separate["difference"] == 0 and fused["difference"] <= 1e-5


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3", "gpt2"])
def test_every_piece_but_compiling_is_measured_and_makes_figures(small: None, kind: str) -> None:
    model = tiny.model(kind)
    plan = [piece["piece"] for piece in LAB.plan(model)]
    layers = [] if kind == "gpt2" else ["layer/1", "layer/12"]
    assert plan == [*layers, "decode/16", "prefill/24", "ids", *(["compiled/1"] if layers else [])]
    results = {piece: measured(LAB, model, piece) for piece in plan if not piece.startswith("compiled")}
    figures = LAB.figures(json.loads(json.dumps(results)))
    assert [one["rows"] for one in figures["layer"]] == [1, 12][: len(layers)]
    for layer in figures["layer"]:
        for way in layer["ways"].values():
            assert way["weights"] == sum(step["weights"] for step in way["steps"])
            assert way["memory"] == sum(step["reads"] + step["writes"] for step in way["steps"])
            assert way["difference"] <= 1e-5
        assert layer["ways"]["fused"]["calls"] < layer["ways"]["separate"]["calls"]
    for one in (*figures["decode"], *figures["prefill"]):
        assert one["time"] == one["apart"]["seconds"]["middle"] / one["fused"]["seconds"]["middle"]
        assert one["apart"]["calls"] > one["fused"]["calls"] or kind == "gpt2"
    assert figures["ids"]["same"] and figures["ids"]["words"] == 16
    one = figures["decode"][0]
    assert figures["gained"] == {
        "n": 16, "before": one["apart"]["calls"], "after": one["fused"]["calls"], "time": one["time"],
    }  # fmt: skip


def test_a_model_without_a_gate_is_refused() -> None:
    assert gated(tiny.model("gpt2")) is None
    with pytest.raises(Refusal) as refusal:
        block_of(tiny.model("gpt2"), 1)
    assert refusal.value.code == "no_gated_mlp"


def test_nothing_of_the_model_is_changed_by_looking(small: None) -> None:
    model = fresh("llama")
    before = model.network.state_dict()
    block, hidden = block_of(model, 4)
    copied = compiling.plain(block)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.network.modules())
    assert not any(isinstance(module, fuse.Part | fuse.Norm) for module in copied.modules())
    assert all(isinstance(getattr(block.mlp, name), fuse.Part) for name in ("gate_proj", "up_proj"))
    with torch.no_grad():
        torch.testing.assert_close(copied(hidden), block(hidden))
        for parameter in copied.parameters():
            parameter.zero_()
    assert all(torch.equal(before[name], value) for name, value in model.network.state_dict().items())


def way(seconds: float, **more: Any) -> dict[str, Any]:
    step = {"op": "mm", "weight": ["down_proj"], "weights": 8, "reads": 2, "writes": 3, "shape": [1]}
    spread = {"middle": seconds, "low": seconds, "high": seconds, "repeats": 1}
    return {
        "calls": 1,
        "kernels": 1,
        "allocated": 3,
        "steps": [step, step],
        "seconds": spread,
        "difference": 0.0,
    } | more


def test_a_layer_is_told_by_the_piece_in_which_most_ways_took_turns() -> None:
    layer = {"rows": 1, "hidden": 2, "inner": 3}
    two = {"separate": way(9.0), "fused": way(8.0)}
    three = {"separate": way(6.0), "fused": way(4.0), "compiled": way(3.0, steps=None)}
    results: dict[str, Any] = {"layer/1": {**layer, "ways": two}, "layer/512": {**layer, "rows": 512, "ways": two}}
    assert [one["rows"] for one in LAB.figures(results)["layer"]] == [1, 512]
    assert LAB.figures(results)["layer"][0]["ways"]["fused"]["time"] == 9 / 8
    results["compiled/1"] = {**layer, "ways": three, "compiler": "g++", "compile": 7.0}
    figures = LAB.figures(results)
    ways = figures["layer"][0]["ways"]
    assert {name: one["time"] for name, one in ways.items()} == {"separate": 1, "fused": 1.5, "compiled": 2}
    assert (ways["fused"]["weights"], ways["fused"]["memory"], ways["compiled"]["memory"]) == (16, 10, None)
    assert "compiled" not in figures["layer"][1]["ways"]
    assert figures["compile"] == {"compiler": "g++", "seconds": 7.0, "each": [{"rows": 1, "seconds": 7.0}]}
    assert figures["gained"] is None


@pytest.mark.parametrize(
    ("what", "code"), [("compiler", "no_compiler"), ("headers", "no_python_headers"), ("device", "not_compiled_here")]
)
def test_where_nothing_can_be_compiled_a_sentence_says_what_to_do(
    small: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str, code: str
) -> None:
    model = tiny.model("llama")
    if what == "device":
        assert compiling.lacking(torch.device("mps")) == code
        assert compiling.lacking(torch.device("meta")) == code
    else:
        monkeypatch.setattr("shutil.which", lambda name: None if what == "compiler" else f"/usr/bin/{name}")
        monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
        piece = LAB.plan(model)[-1]
        assert (piece["piece"], piece["lacking"], piece["needed"]) == ("compiled/1", code, False)
        with pytest.raises(Refusal) as refusal:
            LAB.measure(model, piece)
        assert refusal.value.code == code
        for lang in ("en", "zh"):
            assert compiling.compiler() in say(f"errors.{code}", lang, **refusal.value.values)


def test_the_compiler_is_the_one_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert compiling.compiler() == "no-such-compiler"
    assert compiling.lacking(torch.device("cpu")) == "no_compiler"


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The processes that were started; what they write lies in a folder that the test can look into."""
    started: list[Any] = []
    own = compiling.subprocess.Popen

    def popen(*arguments: Any, **options: Any) -> Any:
        started.append(own(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(compiling.subprocess, "Popen", popen)
    monkeypatch.setattr(compiling, "lacking", lambda device: "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return started


@pytest.mark.parametrize("why", ["compile_too_long", "others_at_work"])
def test_compiling_ends_when_it_takes_too_long_or_somebody_waits(
    children: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: str
) -> None:
    def ask() -> None:
        if why == "others_at_work":
            raise Refusal(why)

    monkeypatch.setattr(compiling, "SECONDS", 0.0 if why == "compile_too_long" else 60.0)
    with pytest.raises(Refusal) as refusal, giving_way(ask):
        compiling.compiled(tiny.model("llama"), 1)
    assert refusal.value.code == why
    assert children[0].returncode is not None, "no process is left"
    assert not list(tmp_path.iterdir()), "nor what it wrote"


def test_a_compiler_that_fails_is_a_sentence(
    children: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compiling.torch, "save", lambda what, file: file.write_text("not what was asked"))
    with pytest.raises(Refusal) as refusal:
        compiling.compiled(tiny.model("llama"), 1)
    assert refusal.value.code == "compile_failed" and refusal.value.values["why"]
    assert not list(tmp_path.iterdir())


def test_a_layer_is_really_compiled_where_there_is_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Once, for the smallest layer: it takes a compiler many seconds. Without one it is refused."""
    model = tiny.model("llama")
    monkeypatch.setattr("engine.labs.traffic.ROUNDS", 2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if code := compiling.lacking(model.shape.device):
        with pytest.raises(Refusal, match=code):
            compiling.compiled(model, 4)
        return
    monkeypatch.setattr(compiling, "SECONDS", 400.0)
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "0")  # nothing is tried out first: a fifth of the time
    told = compiling.compiled(model, 4)
    ways = told["ways"]
    assert list(ways) == ["separate", "fused", "compiled"] and all(one["difference"] <= 1e-5 for one in ways.values())
    assert ways["compiled"]["kernels"] < ways["fused"]["kernels"] < ways["separate"]["kernels"]
    steps = ways["compiled"]["steps"]
    assert len(steps) == ways["compiled"]["kernels"] and steps[0]["ops"][:2] == ["pow", "mean"]
    moved = {name: sum(step["reads"] + step["writes"] for step in one["steps"]) for name, one in ways.items()}
    assert moved["compiled"] < moved["separate"]
    weights = {sum(step["weights"] for step in one["steps"]) for one in ways.values()}
    assert weights == {(3 * HIDDEN * INNER + HIDDEN) * WIDE}, "those are read whatever way"
    assert told["rows"] == 4 and told["compile"] > 0 and told["compiler"] == compiling.compiler()
    assert not list(tmp_path.iterdir())


def test_the_two_runs_differ_in_nothing_else() -> None:
    runs = LAB.runs()
    assert [settings.fused for settings in runs.values()] == [False, True]
    assert len({settings.prompt for settings in runs.values()}) == 1
