"""A long measurement ends at once when a run waits to begin, or when nobody waits for it any more."""

from __future__ import annotations

import pytest

from engine.jobs import stages
from engine.process import Message
from engine.trace import Finished
from tests.engine import tiny
from tests.engine.test_process import Line, on, reason, serve, submit

PARTS = ("job", "1", "parts", {"run": "a", "stage": "prefill"})
BATCH = ("job", "1", "decode_batch", {"run": "a", "batch": 4})


@pytest.fixture(autouse=True)
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every paper counts as a long one, whose passes give way between layers."""
    monkeypatch.setattr(stages, "CHUNK", 4)
    monkeypatch.setattr(stages, "SECONDS", 0.0)


def said(line: Line) -> list[Message]:
    return [message for message in line.heard if message[0] in ("result", "failed")]


@pytest.mark.parametrize("job", [PARTS, BATCH])
def test_undisturbed_it_gives_a_result(job: Message) -> None:
    line = Line(submit("a", tiny.raw(max_new_tokens=3)), reply=on(Finished, 1, job))
    serve(line)
    ((kind, number, result),) = said(line)
    assert (kind, number) == ("result", "1") and result["active"] == 0


@pytest.mark.parametrize("job", [PARTS, BATCH])
def test_a_run_that_waits_to_begin_ends_it(job: Message) -> None:
    line = Line(
        submit("a", tiny.raw(max_new_tokens=3)),
        reply=on(Finished, 1, job, submit("b", tiny.raw("Max", max_new_tokens=3))),
    )
    serve(line)
    assert said(line) == [("failed", "1", "others_at_work", {})]
    assert reason(line, "b") == "length"


@pytest.mark.parametrize("job", [PARTS, BATCH])
def test_who_goes_away_ends_it(job: Message) -> None:
    line = Line(submit("a", tiny.raw(max_new_tokens=3)), reply=on(Finished, 1, job, ("cancel", "1")))
    serve(line)
    assert said(line) == [("failed", "1", "job_cancelled", {})]


def test_somebody_elses_cancel_does_not() -> None:
    line = Line(submit("a", tiny.raw(max_new_tokens=3)), reply=on(Finished, 1, PARTS, ("cancel", "7")))
    serve(line)
    assert said(line)[0][:2] == ("result", "1")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("parts", {"run": "a", "stage": None}),
        ("parts", {"run": "never"}),
        ("decode_batch", {"run": "a", "batch": "many"}),
        ("decode_batch", {"run": "never", "batch": 2**70}),
        ("peak", {"model": "tiny", "name": ["sum"]}),
        ("peak", {"model": "nobody", "name": "sum"}),
        ("peak", {}),
    ],
)
def test_hostile_arguments_end_in_a_refusal_and_the_desk_goes_on(name: str, arguments: dict[str, object]) -> None:
    ask = on(Finished, 1, ("job", "1", name, arguments))
    after = submit("b", tiny.raw("Max", max_new_tokens=3))
    line = Line(
        submit("a", tiny.raw(max_new_tokens=3)),
        reply=lambda message: [after] if message[0] in ("result", "failed") else ask(message),
    )
    serve(line)
    ((kind, _, code, _),) = said(line)
    assert kind == "failed" and code != "others_at_work" and reason(line, "b") == "length"
