"""What a run keeps: K and V as the formula says, queries that grow with n, and no model-wide state."""

from __future__ import annotations

import gc
import hashlib
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from engine.cache import RunCache, Shape, Tape
from engine.run import complete
from engine.trace import KV, Decoded, Prefilled
from tests.engine import tiny


def tensors_of(thing: object) -> int:
    """Bytes of all storages that are reachable from an object's own attributes."""
    storages: dict[int, int] = {}

    def walk(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        elif isinstance(value, (list, tuple)):
            for inner in value:
                walk(inner)

    for value in vars(thing).values():
        walk(value)
    return sum(storages.values())


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_kv_bytes_are_what_the_library_itself_would_hold(kind: str) -> None:
    """The library's own cache, sliding layers included, has exactly the bytes we tell, at every moment."""
    run = tiny.exam(kind, tiny.raw("Anna's cat", max_new_tokens=8))
    told = [event.kv for event in complete(run).events if isinstance(event, (Prefilled, Decoded))]
    network = tiny.network(kind)
    with torch.inference_mode():
        cache = network(torch.tensor([run.ids]), use_cache=True).past_key_values
        theirs = [held(cache)]
        for index in run.chosen[:-1]:
            cache = network(torch.tensor([[index]]), cache=cache, use_cache=True).past_key_values
            theirs.append(held(cache))
    assert [kv.bytes for kv in told] == theirs
    assert [kv.length for kv in told] == list(range(len(run.ids), len(run.ids) + len(run.chosen)))


def held(cache: Any) -> int:
    return sum(
        tensor.numel() * tensor.element_size() for layer in cache.layers for tensor in (layer.keys, layer.values)
    )


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_kv_bytes_follow_the_formula(kind: str) -> None:
    facts, shape = tiny.model(kind).facts, tiny.model(kind).shape
    assert facts.kv_bytes_per_token == 2 * 3 * shape.kv_heads * shape.head_size * 4
    for length in (1, 6, 7, 8, 9, 50):
        kept = sum(min(length, tiny.WINDOW - 1) if kind == "sliding" else length for kind in facts.layer_kinds)
        assert shape.bytes_at(length) == kept * facts.kv_bytes_per_token // facts.layers


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_allocated_bytes_are_those_of_the_tensors_and_enough_for_the_whole_run(kind: str) -> None:
    run = tiny.exam(kind, tiny.raw(max_new_tokens=7))
    complete(run)
    assert run.cache is not None and run.tape is not None
    places = len(run.ids) + 7
    assert run.cache.snapshot().allocated == tensors_of(run.cache) == places * run.model.facts.kv_bytes_per_token
    assert run.tape.bytes == tensors_of(run.tape)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_tape_grows_with_n_and_owns_what_it_keeps(kind: str) -> None:
    """Queries and nothing else: `layers x heads x head_size` numbers per position, of GPT-2's joint q, k, v too."""
    shape, sizes = tiny.model(kind).shape, []
    for letters in (10, 20, 40):
        run = tiny.exam(kind, tiny.raw("abcdefghij" * (letters // 10), max_new_tokens=4))
        complete(run)
        assert run.tape is not None and len(run.ids) == letters
        sizes.append(run.tape.bytes)
        assert (
            tensors_of(run.tape) == run.tape.bytes == 4 * shape.layers * shape.heads * shape.head_size * (letters + 4)
        )
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_a_tape_is_less_than_a_thirtieth_of_all_maps_at_2048_positions() -> None:
    """With the bundled model's sizes, without its bytes: tensors on the meta device have sizes only."""
    shape = Shape(30, 9, 3, 64, (0,) * 30, torch.bfloat16, torch.device("meta"))
    tape = Tape(shape, 48)
    tape.add_chunk(0, [torch.empty((9, 2000, 64), dtype=shape.dtype, device=shape.device) for _ in range(30)])
    assert tape.bytes == 30 * 9 * 2048 * 64 * 2
    assert tape.bytes * 30 <= 30 * 9 * 2048 * 2048 * 2


def test_a_pass_that_was_not_kept_leaves_no_mark() -> None:
    cache = RunCache(tiny.model("llama").shape, 8)
    cache.write(0, torch.ones(2, 3, 8), torch.ones(2, 3, 8))
    assert cache.snapshot() == KV(0, 0, 8 * tiny.model("llama").facts.kv_bytes_per_token)
    assert Tape(cache.shape, 5).length == 0


def everything_of(module: nn.Module) -> dict[str, Any]:
    """Every attribute of every module of a network, tensors by content."""
    return {f"{name}.{key}": repr(value) for name, part in module.named_modules() for key, value in vars(part).items()}


def fingerprint(module: nn.Module) -> str:
    state = hashlib.sha256()
    for name, tensor in sorted([*module.named_parameters(), *module.named_buffers()]):
        state.update(name.encode() + tensor.detach().numpy().tobytes())
    return state.hexdigest()


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_runs_leave_nothing_on_the_model(kind: str) -> None:
    model = tiny.model(kind)
    before, weights = everything_of(model.network), fingerprint(model.network)
    exams = [tiny.raw("Luna", temperature=2.0, seed=4), tiny.raw(max_new_tokens=20), tiny.raw("Max", stop=("a",))]
    runs = [tiny.exam(kind, exam, str(number)) for number, exam in enumerate(exams)]
    tiny.drive(runs)
    for run, exam in zip(runs, exams, strict=True):
        assert tuple(run.chosen) == tiny.sit(kind, exam).output_ids
    assert everything_of(model.network) == before
    assert fingerprint(model.network) == weights


def test_a_run_that_is_let_go_is_gone() -> None:
    run = tiny.exam("llama", tiny.raw())
    complete(run)
    assert run.cache is not None
    tensors = [weakref.ref(run.cache.keys[0]), weakref.ref(run.cache)]
    del run
    gc.collect()
    assert [tensor() for tensor in tensors] == [None, None]


@pytest.fixture
def training() -> Iterator[None]:
    """Weights that want gradients, as a freshly loaded model's do."""
    parameters = list(tiny.model("gpt2").network.parameters())
    assert all(parameter.requires_grad for parameter in parameters)
    yield
    assert all(parameter.grad is None for parameter in parameters)


@pytest.mark.usefixtures("training")
def test_no_gradient_is_recorded() -> None:
    run = tiny.exam("gpt2", tiny.raw())
    complete(run)
    assert run.cache is not None and run.tape is not None
    kept = [*run.cache.keys, *run.cache.values, run.tape.queries(0, 0, run.tape.length), run.lens.map(0, None)]
    assert not any(tensor.requires_grad for tensor in kept)
    assert torch.is_grad_enabled()
