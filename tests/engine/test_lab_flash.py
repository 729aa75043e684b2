"""FlashAttention's lab: real memory, equal answers, and figures that say only what was measured."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.commands import open_model
from engine.labs import flash, heads
from engine.labs.flash import LAB, matrix_bytes
from engine.labs.footprint import peak_bytes
from engine.labs.heads import Head, head_qkv
from engine.labs.jobs import measured
from engine.labs.papers import of_length
from engine.labs.tiles import tiled
from engine.labs.timing import sit
from engine.recordings.exams import recordings
from engine.settings import Refusal
from tests.engine import tiny

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash, "LENGTHS", (16, 64, 4096))
    monkeypatch.setattr(flash, "RUNS", (16, 48))
    monkeypatch.setattr(flash, "PROOF", (40, 16))


def test_memory_is_what_the_allocator_gave() -> None:
    def twice() -> torch.Tensor:
        first = torch.ones(1_000_000)
        second = first + 1
        del first
        return second * 2

    assert peak_bytes(twice, CPU) == pytest.approx(8_000_000, abs=4096)
    assert peak_bytes(lambda: torch.ones(1_000_000), CPU) == pytest.approx(4_000_000, abs=4096)
    assert peak_bytes(lambda: None, CPU) == 0
    assert peak_bytes(lambda: None, torch.device("mps")) is None


def test_the_formula_needs_the_matrix_and_the_kernel_does_not() -> None:
    model = tiny.model("llama")
    told = flash._kernels(model, 1024)
    assert told["math"]["source"] == told["fast"]["source"] == "measured"
    assert told["math"]["bytes"] >= matrix_bytes(model, 1024) == 1024 * 1024 * 4 * 4
    assert told["fast"]["bytes"] < matrix_bytes(model, 1024) / 2


@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_every_piece_is_measured_and_makes_figures(small: None, kind: str) -> None:
    model = tiny.model(kind)
    plan = [piece["piece"] for piece in LAB.plan(model)]
    assert plan == ["kernel/16", "kernel/64", "run/16", "run/48", "tiles"], "no longer than the model's context"
    results = {piece: measured(LAB, model, piece) for piece in plan}
    figures = LAB.figures(json.loads(json.dumps(results)))
    assert [one["n"] for one in figures["kernel"]] == [16, 64]
    assert all(one["same"] for one in figures["run"])
    assert figures["tiles"]["tiles"] <= 1e-5 and figures["tiles"]["fast"] <= 1e-5
    for one in figures["run"]:
        assert one["time"] == one["math"]["middle"] / one["fast"]["middle"]
    assert figures["gained"] is None, "short papers prove nothing"


def test_what_was_gained_is_said_of_the_longest_length_measured_both_ways() -> None:
    def kernel(n: int, math: float | None) -> dict[str, Any]:
        side = {"bytes": 10, "source": "measured"}
        seconds = {"low": 1.0, "high": 1.0, "repeats": 1}
        fast = {**side, "seconds": {**seconds, "middle": 2.0}}
        slow = {**side, "bytes": 500, "seconds": None if math is None else {**seconds, "middle": math}}
        return {"n": n, "matrix": 1, "fast": fast, "math": slow}

    results = {"kernel/8192": kernel(8192, None), "kernel/2048": kernel(2048, 6.0), "kernel/1024": kernel(1024, 5.0)}
    figures = LAB.figures(results)
    assert figures["gained"] == {"n": 2048, "time": 3.0, "memory": 50.0}
    assert [one["n"] for one in figures["kernel"]] == [1024, 2048, 8192] and figures["kernel"][2]["time"] is None
    assert LAB.figures({})["gained"] is None


def test_a_length_without_room_is_computed_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.measure.quiet.free_bytes", lambda device: 1000)
    model = tiny.model("llama")
    told = flash._kernels(model, 64)
    assert told["math"] == {"seconds": None, "bytes": matrix_bytes(model, 64), "source": "computed"}
    assert told["fast"]["seconds"]["repeats"] >= 1


def test_the_runs_say_the_same_with_both_kernels() -> None:
    runs = LAB.runs()
    assert list(runs) == ["math", "fast"] == [settings.kernel for settings in runs.values()]
    ids = []
    for settings in runs.values():
        _, trace = sit(tiny.model("llama"), tiny.raw(kernel=settings.kernel))
        ids.append([one.token.id for one in trace.chosen])
    assert ids[0] == ids[1]


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
@pytest.mark.parametrize("tokens", [1, 7, 40])
def test_a_paper_has_the_length_that_was_asked_for(kind: str, tokens: int) -> None:
    run, _ = sit(tiny.model(kind), of_length(tiny.model(kind), tokens))
    assert len(run.ids) == tokens
    with pytest.raises(Refusal, match="too_many_tokens"):
        of_length(tiny.model(kind), tiny.CONTEXT)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_heads_numbers_are_the_runs_own(kind: str) -> None:
    run, _ = sit(tiny.model(kind), tiny.raw())
    shape = run.model.shape
    for layer, head in ((0, 0), (1, shape.heads - 1), (2, 1)):
        found = Head.of(run, layer, head)
        n = len(run.ids)
        weights = run.lens.rows(layer, 0, n, head)[0]
        group = head // (shape.heads // shape.kv_heads)
        assert run.cache is not None
        expected = weights @ run.cache.values[layer][group, :n].float()
        assert (found.naive - expected).abs().max() <= 1e-5
        assert (found.fast - found.naive).abs().max() <= 1e-5


def test_the_job_tells_them_as_bytes_and_refuses_what_is_gone() -> None:
    run, _ = sit(tiny.model("llama"), tiny.raw())
    engine: Any = SimpleNamespace(run=lambda _: run)
    told = head_qkv(engine, "x", 1, 2)
    n, size = told["positions"], told["size"]
    assert (n, size, told["window"]) == (len(run.ids), 8, 0) and told["difference"] <= 1e-5
    numbers = struct.unpack(f"<{4 * n * size}f", told["data"])
    assert numbers[:size] == pytest.approx(Head.of(run, 1, 2).query[0].tolist())
    assert numbers[-size:] == pytest.approx(Head.of(run, 1, 2).naive[-1].tolist())
    for layer, head, code in ((9, 0, "no_layer"), (0, 9, "no_head")):
        with pytest.raises(Refusal, match=code):
            head_qkv(engine, "x", layer, head)
    run.cache = None
    with pytest.raises(Refusal, match="not_kept"):
        head_qkv(engine, "x", 0, 0)


def test_a_recorded_head_is_kept_and_is_still_this_models() -> None:
    """For a page whose run's tensors are gone; made by `python -m engine record` from the bundled model."""
    recording = next(one for one in recordings() if one.name == heads.EXAM)
    kept = json.loads(heads.RECORDED.read_text("utf-8"))
    numbers = torch.frombuffer(bytearray(b64decode(kept["data"])), dtype=torch.float32)
    query, key, value, exact = numbers.view(4, kept["positions"], kept["size"])
    assert (tiled(query, key, value, kept["scale"], 16, kept["window"]) - exact).abs().max() <= 1e-5
    assert recording.lens is not None and (kept["layer"], kept["head"]) == (recording.lens.layer, recording.lens.head)
    model = open_model("", device="cpu", dtype="float32")
    assert heads.same(model, recording)
    assert not heads.same(model, replace(recording, settings=replace(recording.settings, prompt="Another paper.")))
