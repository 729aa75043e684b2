"""What a run tells while it happens: the order of its events, its two clocks, its candidates."""

from __future__ import annotations

from dataclasses import replace
from math import isclose, log2

import pytest
import torch

from engine import run as story
from engine.cache import RunCache
from engine.measure import clock
from engine.measure.clock import Marks
from engine.model.tap import Pass
from engine.run import complete, passes
from engine.trace import (
    Chose,
    Decoded,
    Event,
    Finished,
    Layer,
    Prefilled,
    Trace,
    Wrote,
    invariants,
    norm_byte,
    norm_of,
    state_at,
)
from engine.trace.codec import from_json, to_json
from tests.engine import tiny


def chunked(kind: str, monkeypatch: pytest.MonkeyPatch) -> list[list[Event]]:
    """The events of a run that writes while another reads in chunks, and of that other."""
    monkeypatch.setattr(passes, "CHUNK", 10)
    model = replace(tiny.model(kind), end_ids=frozenset())
    runs = [story.admit(text, tiny.raw(text), model, clock.now()) for text in ("Luna", tiny.PAPER)]
    told: dict[str, list[Event]] = {run.id: [run.started(number == 0)] for number, run in enumerate(runs)}
    story.step(model, runs[:1], lambda run, event: told[run.id].append(event))
    tiny.drive(runs, told)
    return list(told.values())


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_live_trace_keeps_every_rule_at_every_moment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for events in [list(tiny.sit(kind, tiny.raw()).events), *chunked(kind, monkeypatch)]:
        invariants.check(events)
        prompt = state_at(events).prompt
        for number in range(len(events) + 1):
            state = state_at(events, number)
            between = number == len(events) or isinstance(events[number], (Decoded, Finished))
            if state.chosen and between:
                assert state.columns == prompt + state.chosen - 1
        assert [from_json(to_json(event)) for event in events] == events


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_layers_come_one_by_one_and_their_times_are_the_pass(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for events in chunked(kind, monkeypatch):
        layers: list[Layer] = []
        for event in events:
            if isinstance(event, Layer):
                layers.append(event)
            elif isinstance(event, Prefilled):
                assert [(layer.index, layer.start, layer.stop) for layer in layers] == [
                    (index, event.start, event.stop) for index in range(3)
                ]
                total = sum(layer.seconds for layer in layers) + event.rest_seconds
                assert isclose(total, event.seconds, rel_tol=1e-9)
                layers = []
            elif isinstance(event, Decoded):
                assert len(event.layer_seconds) == 3
                assert isclose(sum(event.layer_seconds) + event.rest_seconds, event.seconds, rel_tol=1e-9)
        assert not layers


def test_a_run_tells_its_story_in_order() -> None:
    trace = tiny.sit("llama", tiny.raw("abc", max_new_tokens=3))
    kinds = [event.type for event in trace.events if not isinstance(event, Wrote)]
    assert kinds == [
        "started",
        "layer",
        "layer",
        "layer",
        "prefilled",
        "chose",
        "decoded",
        "chose",
        "decoded",
        "chose",
        "finished",
    ]
    started = trace.started
    assert started is not None and started.facts == tiny.model("llama").facts and started.settings.prompt == "abc"


def test_times_count_from_the_moment_start_was_pressed() -> None:
    """A fake clock that stands still: whoever waited four seconds has them in every `at`, and in TTFT."""
    trace = complete(story.admit("", tiny.raw(), tiny.model("llama"), 6.0, now=lambda: 10.0))
    assert {event.at for event in trace.events} == {4.0}
    assert (trace.ttft, trace.tpot) == (4.0, 0.0)


def test_what_listening_costs_is_not_the_models_time() -> None:
    """Marks of a fake clock: a listener that takes a second between two layers adds nothing to either."""
    times = iter([0.0, 1.0, 2.0, 2.5, 4.0])
    marks = Marks(torch.device("cpu"), lambda: next(times))
    assert marks.mark() == 1.0
    marks.resume()  # at 2.0: the second from 1.0 to 2.0 was the listener's
    assert marks.mark() == 0.5
    marks.mark()
    assert list(marks.seconds()) == [1.0, 0.5, 1.5]


def test_a_pass_does_not_count_what_its_listener_does() -> None:
    """A fake clock that moves in the listener only: no layer took any time."""
    time = [0.0]
    model = tiny.model("llama")

    def listen(layer: int, seconds: float) -> None:
        time[0] += 1.0

    one = Pass([RunCache(model.shape, 3)], 3, listen)
    one.marks = Marks(model.shape.device, lambda: time[0])
    model.forward([[5, 6, 7]], one)
    one.marks.mark()
    assert time == [3.0] and list(one.marks.seconds()) == [0.0] * 4


def test_only_a_run_that_is_said_to_be_cold_is_cold() -> None:
    cold = complete(tiny.exam("llama", tiny.raw()), cold=True).started
    warm = complete(tiny.exam("llama", tiny.raw())).started
    assert cold is not None and warm is not None and (cold.cold, warm.cold) == (True, False)


def choices(kind: str, **how: object) -> tuple[Trace, list[Chose]]:
    trace = tiny.sit(kind, tiny.raw(tiny.PAPER[:40], **how))
    return trace, list(trace.chosen)


@pytest.mark.parametrize("how", [{}, {"temperature": 1.7, "top_k": 200, "seed": 2}])
def test_candidates_are_the_models_own_distribution_before_temperature_and_cuts(how: dict[str, object]) -> None:
    trace, chosen = choices("qwen3", **how)
    assert trace.started is not None
    ids = [token.id for token in trace.started.prompt]
    with torch.inference_mode():
        logits = tiny.network("qwen3")(torch.tensor([[*ids, *trace.output_ids]])).logits[0]
    for number, choice in enumerate(chosen):
        own = logits[len(ids) - 1 + number].softmax(-1)
        best = own.topk(10)
        assert [candidate.id for candidate in choice.candidates] == best.indices.tolist()
        assert [candidate.probability for candidate in choice.candidates] == pytest.approx(
            best.values.tolist(), abs=1e-5
        )
        assert choice.probability == pytest.approx(float(own[choice.token.id]), abs=1e-5)
        assert choice.rank == int((own > own[choice.token.id]).sum())
        assert choice.entropy == pytest.approx(-sum(p * log2(p) for p in own.tolist() if p), abs=1e-3)
    assert how or all(choice.rank == 0 for choice in chosen)
    assert not how or any(choice.rank >= 10 for choice in chosen)


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_norms_are_those_of_the_notes(kind: str) -> None:
    """One byte per position (layer events) or layer (decode): the length of its K and V over all KV heads."""
    run = tiny.exam(kind, tiny.raw(tiny.PAPER[:30]))
    events = complete(run).events
    assert run.cache is not None
    keys, values = (
        torch.stack([t.transpose(0, 1).flatten(1).norm(dim=-1) for t in of])
        for of in (run.cache.keys, run.cache.values)
    )
    for event in events:
        if isinstance(event, Layer):
            for told, norms in ((event.key_norms, keys), (event.value_norms, values)):
                assert list(told) == pytest.approx(
                    [norm_byte(float(n)) for n in norms[event.index, : event.stop]], abs=1
                )
        elif isinstance(event, Decoded):
            for told, norms in ((event.key_norms, keys), (event.value_norms, values)):
                assert [norm_of(b) for b in told] == pytest.approx(norms[:, event.position].tolist(), rel=0.03)


def test_facts_are_read_off_the_model() -> None:
    facts, network = tiny.model("qwen3").facts, tiny.network("qwen3")
    assert (facts.layers, facts.heads, facts.kv_heads, facts.head_size, facts.hidden_size) == (3, 4, 1, 16, 32)
    assert (facts.vocabulary, facts.context, facts.value_bytes, facts.dtype) == (
        tiny.VOCABULARY,
        tiny.CONTEXT,
        4,
        "float32",
    )
    assert facts.parameters == sum(parameter.numel() for parameter in network.parameters())
    assert facts.weight_bytes == 4 * facts.parameters + sum(b.numel() * b.element_size() for b in network.buffers())
    gemma = tiny.model("gemma3").facts
    assert (gemma.window, gemma.layer_kinds) == (tiny.WINDOW, ("sliding", "full", "sliding"))


def test_tied_weights_are_counted_once() -> None:
    network = tiny.network("gpt2")
    assert network.get_output_embeddings().weight is network.get_input_embeddings().weight
    assert tiny.model("gpt2").facts.parameters == sum(parameter.numel() for parameter in network.parameters())
