"""This machine's peaks: what is timed, how the best is found, and what is refused. No time is asserted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.jobs import machine
from engine.settings import Refusal
from tests.engine import tiny

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")


def engine(**models: Any) -> Any:
    return SimpleNamespace(models=models, active={"somebody": None})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SECONDS", 0.0)
    monkeypatch.setattr(machine, "array_bytes", lambda: 2**20)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", [shape.name for shape in machine.plan("cpu")])
def test_each_shape_of_the_plan_is_timed(name: str) -> None:
    told = machine.peak(engine(tiny=tiny.model("llama")), "tiny", name)
    assert told["repeats"] == machine.LEAST and 0 < told["best"] <= told["middle"]
    assert told["rate"] == told["work"] / told["best"]
    assert (told["name"], told["active"]) == (name, 1)


def test_a_product_counts_a_multiplication_and_an_addition_per_step() -> None:
    shape = machine.Shape("x", "compute", 3, 5, 7)
    assert shape.flops == 2 * 3 * 5 * 7
    work, once = machine._work(shape, torch.float32, CPU)
    assert work == shape.flops and once().shape == (3, 7)


@pytest.mark.usefixtures("quick")
def test_the_three_ways_of_reading_read_the_same_array() -> None:
    works = [machine._work(shape, torch.float32, CPU) for shape in machine.READS]
    side = 512
    assert [work for work, _ in works] == [side * side * 4] * 3
    lying, transposed, total = (once() for _, once in works)
    assert lying.shape == transposed.shape == (1, side) and total.shape == ()
    assert not torch.equal(lying, transposed)


@pytest.mark.usefixtures("quick")
def test_memory_is_read_in_fp32_too_when_the_model_is_not() -> None:
    works = dict(
        zip(machine.READS, [machine._work(shape, torch.bfloat16, CPU) for shape in machine.READS], strict=True)
    )
    dtypes = {shape.name: once().dtype for shape, (_, once) in works.items()}
    assert dtypes == {"matvec": torch.bfloat16, "matvec-transposed": torch.float32, "sum": torch.float32}


def test_the_first_repetition_does_not_count_and_patience_decides_how_many() -> None:
    times = iter(range(100))
    done = []

    def now() -> float:
        return next(times) * 0.05

    seconds = machine.timed(lambda: done.append(1), CPU, now)
    assert seconds == pytest.approx([0.05] * 6) and len(done) == 7


def test_what_is_not_in_the_plan_is_refused() -> None:
    for name in ("product-1-1-1", "", "x" * 9999, "product-8192-8192-8192"):
        with pytest.raises(Refusal) as refusal:
            machine.peak(engine(tiny=tiny.model("llama")), "tiny", name)
        assert refusal.value.code == "no_shape" and len(str(refusal.value.values["name"])) <= 40
    with pytest.raises(Refusal) as refusal:
        machine.peak(engine(), "tiny", "sum")
    assert refusal.value.code == "model_not_ready"


def test_a_larger_device_gets_larger_products() -> None:
    most = {device: max(shape.flops for shape in machine.plan(device)) for device in ("cpu", "cuda:0", "mps:0")}
    assert most["cpu"] < most["cuda:0"] == most["mps:0"]
    assert all({"compute", "bandwidth"} == {shape.kind for shape in machine.plan(device)} for device in most)


def test_an_array_is_larger_than_any_cache_but_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index, size in enumerate(["48K", "2048K", "30M", "nonsense", ""]):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(size)
    assert machine.last_cache(tmp_path) == 30 * 2**20
    assert machine.last_cache(tmp_path / "nowhere") == 0
    for cache, expected in [(0, 2**28), (100 * 2**20, 400 * 2**20), (2**40, 2**30)]:
        monkeypatch.setattr(machine, "last_cache", lambda cache=cache: cache)
        assert machine.array_bytes() == expected


def test_another_machine_dtype_or_torch_is_another_identity() -> None:
    facts = tiny.model("llama").facts
    own = machine.identity(facts)
    assert own["torch"] == torch.__version__ and own["threads"] == torch.get_num_threads()
    from dataclasses import replace

    for change in ({"device_name": "another"}, {"threads": 99}, {"dtype": "bfloat16"}, {"versions": ()}):
        assert machine.identity(replace(facts, **change)) != own
