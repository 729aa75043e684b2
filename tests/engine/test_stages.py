"""Decode in batches and the parts of a pass: really done, on copies, with nothing left behind. No time is asserted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.jobs import stages
from engine.run import Run, complete
from engine.settings import Keeping, Refusal
from tests.engine import tiny


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "SECONDS", 0.0)


def engine(run: Run, active: int = 0) -> Any:
    return SimpleNamespace(run=lambda _: run, active=dict.fromkeys(range(active)), give_way=lambda: None)


def sat(kind: str, **settings: Any) -> Run:
    run = tiny.exam(kind, tiny.raw(max_new_tokens=3, **settings))
    complete(run)
    return run


def notes(run: Run) -> torch.Tensor:
    assert run.cache is not None
    return run.cache._kv[..., : run.cache.length, :].clone()


def hooks(run: Run) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in run.model.network.modules())


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("batch", [1, 4])
def test_a_batch_is_as_many_copies_stepped_together(kind: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run, passes = sat(kind), []
    forward = type(run.model).forward
    monkeypatch.setattr(
        type(run.model),
        "forward",
        lambda model, ids, one: (passes.append((len(ids), one.tokens)), forward(model, ids, one))[1],
    )
    before = notes(run)
    told = stages.decode_batch(engine(run, 2), "x", batch)
    assert passes == [(batch, 1)] * (1 + stages.LEAST)
    assert (told["batch"], told["prompt"], told["active"]) == (batch, len(run.ids), 2)
    assert told["contexts"] == [len(run.ids) + 2 + step for step in range(stages.LEAST)]
    assert len(told["seconds"]) == stages.LEAST and told["best"] == min(told["seconds"]) <= told["middle"]
    assert torch.equal(notes(run), before), "the run itself is as it was"


def test_a_copy_says_what_the_run_itself_said() -> None:
    """The copies' notes are the run's: the first step's logits choose the run's own second word."""
    run = sat("llama")
    (cache,) = stages._copies(run, 1, 4)
    logits = run.model.forward([[run.chosen[0]]], stages.Pass([cache], 1))
    assert int(logits[0].argmax()) == run.chosen[1]


def test_near_the_end_of_the_context_there_are_fewer_steps() -> None:
    run = sat("llama", prompt="a" * (tiny.CONTEXT - 4))
    assert len(run.ids) == tiny.CONTEXT - 4
    assert len(stages.decode_batch(engine(run), "x", 2)["seconds"]) == 2


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("stage", ["prefill", "decode"])
def test_the_parts_of_a_pass_sum_to_it(kind: str, stage: str) -> None:
    run = sat(kind)
    before, hooked = notes(run), hooks(run)
    told = stages.parts(engine(run), "x", stage)
    assert set(told["parts"]) == {*stages.PARTS, "rest"}
    assert sum(told["parts"].values()) == pytest.approx(told["timed"])
    assert all(seconds > 0 for seconds in told["parts"].values())
    assert told["tokens"] == (len(run.ids) if stage == "prefill" else 1)
    assert told["context"] == len(run.ids) + (stage == "decode")
    assert told["calls"] > 20 * run.model.shape.layers
    assert hooks(run) == hooked and torch.equal(notes(run), before)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_every_product_of_a_model_is_in_a_part(kind: str) -> None:
    model = tiny.model(kind)
    parts = stages.parts_of(model)
    names = dict(model.network.named_modules())
    inside = {id(child) for module, part in parts.items() if part == "mlp" for child in module.modules()}
    for name, module in names.items():
        if stages._is_product(module):
            assert module in parts or id(module) in inside, name
    layers = model.shape.layers
    count = {part: list(parts.values()).count(part) for part in stages.PARTS}
    assert count["attention"] == count["mlp"] == layers and count["logits"] == 1
    assert count["projections"] == layers * (2 if kind in ("gpt2", "neox") else 4)
    assert count["norms"] >= 2 * layers + 1


def test_hooks_go_when_the_pass_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sat("llama")
    hooked = hooks(run)

    def fail(once: Any, parts: Any) -> Any:
        assert hooks(run) > hooked
        raise RuntimeError("no")

    monkeypatch.setattr(stages, "_parts_of", fail)
    with pytest.raises(RuntimeError):
        stages.parts(engine(run), "x", "decode")
    assert hooks(run) == hooked


@pytest.mark.parametrize("after", [0, 2])
def test_a_long_pass_gives_way_between_two_layers(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run, desk = sat("llama"), engine(sat("llama"))
    asked = 0

    def give_way() -> None:
        nonlocal asked
        asked += 1
        if asked > after:
            raise Refusal("others_at_work")

    monkeypatch.setattr(stages, "CHUNK", 4)
    desk.give_way = give_way
    assert refused(lambda: stages.parts(desk, "x", "prefill")) == "others_at_work"
    assert asked == after + 1
    assert refused(lambda: stages.decode_batch(desk, "x", 2)) == "others_at_work"
    assert hooks(run) == 0 and tiny.sit("llama", tiny.raw()).finished, "the model still works"


def refused(work: Any) -> str:
    with pytest.raises(Refusal) as refusal:
        work()
    return refusal.value.code


def test_what_cannot_be_done_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sat("llama")
    for batch in (0, -1, 3, 33, 10**9):
        assert refused(lambda batch=batch: stages.decode_batch(engine(run), "x", batch)) == "no_batch"
    assert refused(lambda: stages.parts(engine(run), "x", "lunch")) == "no_stage"
    monkeypatch.setattr(stages, "CHUNK", 4)
    assert refused(lambda: stages.parts(engine(run, 1), "x", "prefill")) == "others_at_work"
    assert stages.parts(engine(run, 1), "x", "decode")["active"] == 1
    monkeypatch.setattr(stages, "LONGEST", 4)
    assert refused(lambda: stages.parts(engine(run), "x", "prefill")) == "too_long_to_time"
    monkeypatch.setattr(stages, "free_bytes", lambda _: 1000)
    assert refused(lambda: stages.decode_batch(engine(run), "x", 32)) == "batch_too_large"
    squeezed = tiny.exam("llama", tiny.raw(max_new_tokens=2, keeping=Keeping(dtype="int8")))
    complete(squeezed)
    assert refused(lambda: stages.parts(engine(squeezed), "x", "decode")) == "keeping_not_timed"
    run.cache = None
    assert refused(lambda: stages.decode_batch(engine(run), "x", 1)) == "not_kept"
    waiting = tiny.exam("llama", tiny.raw())
    waiting.allocate()
    assert refused(lambda: stages.parts(engine(waiting), "x", "decode")) == "unfinished"
    monkeypatch.setattr(stages, "_block", lambda module: "")
    assert refused(lambda: stages.parts_of(run.model)) == "no_parts"
