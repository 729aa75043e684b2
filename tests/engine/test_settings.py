"""What a person can change about a run: heads that are off, a bound on the notes, every way of choosing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.cache.keeping import fitting
from engine.run import complete
from engine.settings import Keeping, Refusal, Settings, check
from engine.trace import Decoded, Prefilled
from tests.engine import tiny
from tests.engine.test_answers import generated, ids_of

PROMPT = tiny.PAPER[:40]


def _without(kind: str, off: dict[int, list[int]]) -> Any:
    """The library's own model, its output projections' columns of those heads zeroed: what `heads_off` must equal."""
    network = tiny.network(kind)
    shape = tiny.model(kind).shape
    layers = next(m for m in network.modules() if isinstance(m, nn.ModuleList) and len(m) == shape.layers)
    for layer, heads in off.items():
        attention = next(m for n, m in layers[layer].named_children() if n in ("self_attn", "attn", "attention"))
        out = next(m for n, m in attention.named_children() if n in ("o_proj", "c_proj", "dense"))
        for head in heads:
            part = slice(head * shape.head_size, (head + 1) * shape.head_size)
            with torch.no_grad():
                (out.weight[part] if type(out).__name__ == "Conv1D" else out.weight[:, part]).zero_()
    return network


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_head_that_is_off_gives_nothing(kind: str) -> None:
    off = {0: [1, 3], 2: [0]}
    heads = tuple((layer, head) for layer, heads in off.items() for head in heads)
    settings = tiny.raw(PROMPT, heads_off=heads)
    ids = ids_of(kind, settings)
    theirs: Tensor = _without(kind, off).generate(
        torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=12, do_sample=False
    )
    ours = tiny.sit(kind, settings).output_ids
    assert ours == tuple(theirs[0, len(ids) :].tolist())
    assert ours != tiny.sit(kind, tiny.raw(PROMPT)).output_ids


def test_heads_are_off_for_one_run_only() -> None:
    exams = [tiny.raw(PROMPT), tiny.raw(PROMPT, heads_off=((0, 1), (1, 2))), tiny.raw("Luna", heads_off=((2, 3),))]
    runs = [tiny.exam("llama", exam, str(number)) for number, exam in enumerate(exams)]
    tiny.drive(runs)
    for run, exam in zip(runs, exams, strict=True):
        assert tuple(run.chosen) == tiny.sit("llama", exam).output_ids


@pytest.mark.parametrize(("head", "code"), [((3, 0), "no_layer"), ((0, 4), "no_head"), ((-1, 0), "no_layer")])
def test_a_head_that_is_not_there_is_refused(head: tuple[int, int], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        tiny.exam("llama", tiny.raw(heads_off=(head,)))
    assert refused.value.code == code


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_a_bound_on_the_notes_ends_the_run_where_they_reach_it(kind: str) -> None:
    shape = tiny.model(kind).shape
    prompt = len(ids_of(kind, tiny.raw(PROMPT)))
    run = tiny.exam(kind, tiny.raw(PROMPT, memory=shape.bytes_at(prompt + 4)))
    trace = complete(run)
    assert trace.finished is not None
    assert (trace.finished.reason, trace.finished.code) == ("out_of_memory", "notes_bound")
    held = [event.kv for event in trace.events if isinstance(event, (Prefilled, Decoded))]
    most = fitting(shape, run.settings.keeping, run.settings.memory, prompt + 12)
    assert held[-1].length == min(most, prompt + 11)
    assert max(kv.bytes for kv in held) <= run.settings.memory
    assert run.cache is None


def test_a_bound_too_low_for_the_paper_ends_the_run_before_it_reads() -> None:
    trace = tiny.sit("llama", tiny.raw(PROMPT, memory=100))
    assert trace.finished is not None and trace.finished.code == "notes_bound"
    assert not any(isinstance(event, Prefilled) for event in trace.events)


def test_a_bound_with_room_changes_nothing() -> None:
    shape = tiny.model("llama").shape
    exam = tiny.raw(PROMPT)
    room = shape.bytes_at(len(ids_of("llama", exam)) + 11)
    assert tiny.sit("llama", replace(exam, memory=room)).output_ids == tiny.sit("llama", exam).output_ids


@pytest.mark.parametrize(
    "how",
    [
        {"temperature": 1.0, "min_p": 0.3, "seed": 3},
        {"temperature": 1.7, "repetition_penalty": 1.5, "min_p": 0.05, "top_k": 30, "top_p": 0.9, "seed": 8},
    ],
)
def test_drawn_ids_are_those_of_generate(how: dict[str, Any]) -> None:
    settings = tiny.raw(PROMPT, **how)
    theirs = {"top_k": 0, "top_p": 1.0, **how}
    expected = generated("llama", ids_of("llama", settings), "sdpa", do_sample=True, **theirs)
    assert tiny.sit("llama", settings).output_ids == expected


@pytest.mark.parametrize("penalty", [0.5, 1.8])
def test_a_greedy_answer_is_penalised_as_generate_does(penalty: float) -> None:
    settings = tiny.raw(PROMPT, repetition_penalty=penalty)
    how = {"do_sample": False, "repetition_penalty": penalty}
    ours = tiny.sit("llama", settings).output_ids
    assert ours == generated("llama", ids_of("llama", settings), "sdpa", **how)
    assert ours != tiny.sit("llama", tiny.raw(PROMPT)).output_ids


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"min_p": 1.5}, "out_of_range"),
        ({"repetition_penalty": 0.0}, "out_of_range"),
        ({"memory": -1}, "out_of_range"),
        ({"heads_off": ((0, 0),) * 2000}, "too_many_heads_off"),
    ],
)
def test_bounds(how: dict[str, Any], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        check(Settings("a", **how))
    assert refused.value.code == code


@pytest.mark.parametrize("how", [{"kernel": "math"}, {"grouped": False}, {"kernel": "math", "grouped": False}])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_how_attention_is_computed_changes_no_word(kind: str, how: dict[str, Any]) -> None:
    """Alone, beside runs of other ways, and in chunks, which a reader beside a writer reads in."""
    exam = tiny.raw(tiny.PAPER[:70])
    usual = tiny.sit(kind, exam).output_ids
    assert tiny.sit(kind, replace(exam, **how)).output_ids == usual
    runs = [
        tiny.exam(kind, tiny.raw("Luna"), "0"),
        tiny.exam(kind, replace(exam, **how), "1"),
        tiny.exam(kind, exam, "2"),
    ]
    tiny.drive(runs)
    assert tuple(runs[1].chosen) == tuple(runs[2].chosen) == usual


def test_the_formula_as_it_stands_is_really_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.model import tap

    taken = []
    monkeypatch.setattr(tap, "sdpa_kernel", lambda backend: taken.append(backend) or tap.nullcontext())
    tiny.sit("llama", tiny.raw(PROMPT))
    assert not taken
    tiny.sit("llama", tiny.raw(PROMPT, kernel="math"))
    assert len(taken) == 3 * 12  # every layer of the prefill and of eleven decode steps


@pytest.mark.parametrize(
    "keeping",
    [
        Keeping(dtype="int4", block=16), Keeping(last=8, block=16), Keeping(dtype="fp8", last=4), Keeping(first=4),
        Keeping(heavy=2), Keeping(last=-1), Keeping(last=2**40),
    ],
)  # fmt: skip
def test_notes_are_kept_in_one_way_at_a_time(keeping: Keeping) -> None:
    with pytest.raises(Refusal) as refused:
        check(Settings("a", keeping=keeping))
    assert refused.value.code == "bad_keeping"
