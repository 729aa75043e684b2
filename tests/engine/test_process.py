"""The engine process's turns: what is done between two steps, what is heard inside a prefill, what never ends it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import pytest

from engine import weights
from engine.cache.lens import quantise
from engine.measure import clock
from engine.model import LanguageModel, wrap
from engine.process import EngineProcess, Message
from engine.settings import Refusal, Settings
from engine.trace import Chose, Decoded, Event, Finished, Layer, Started
from tests.engine import tiny


class Line:
    """The other end of the connection, in this thread: what is said when it is asked, and what was heard.

    `reply(message)` may answer a message of the engine's with messages of its own, at once.
    """

    def __init__(self, *messages: Message, reply: Callable[[Message], list[Message]] = lambda message: []) -> None:
        self.waiting = deque(messages)
        self.heard: list[Message] = []
        self.reply = reply

    def poll(self, timeout: float | None) -> bool:
        if timeout is None and not self.waiting:
            raise EOFError  # nothing runs and nobody will say anything any more
        return bool(self.waiting)

    def recv(self) -> Message:
        return self.waiting.popleft()

    def send(self, message: Message) -> None:
        self.heard.append(message)
        self.waiting += self.reply(message)

    def events(self, run: str) -> list[Event]:
        return [event for kind, name, *told in self.heard if (kind, name) == ("events", run) for event in told[0]]


def serve(line: Line, kind: str = "llama", others: Mapping[str, LanguageModel] = MappingProxyType({})) -> EngineProcess:
    engine = EngineProcess(cast(Any, line), "cpu", "float32")
    engine.models |= {"tiny": tiny.model(kind), **others}
    with pytest.raises(EOFError):
        engine.serve()
    return engine


def submit(run: str, settings: Settings) -> Message:
    return ("submit", run, settings, clock.now())


def on(kind: type[Event], number: int, *replies: Message) -> Callable[[Message], list[Message]]:
    """Say `replies` right after the engine told its `number`th event of a kind."""
    seen = 0

    def reply(message: Message) -> list[Message]:
        nonlocal seen
        for event in message[2] if message[0] == "events" else []:
            seen += isinstance(event, kind)
            if isinstance(event, kind) and seen == number:
                return list(replies)
        return []

    return reply


def reason(line: Line, run: str) -> str:
    last = line.events(run)[-1]
    assert isinstance(last, Finished)
    return last.reason


def test_runs_go_on_together_and_each_answers_as_it_would_alone() -> None:
    exams = {"a": tiny.raw("Luna"), "b": tiny.raw(tiny.PAPER[:40]), "c": tiny.raw("Max", temperature=2.0, seed=9)}
    line = Line(*[submit(run, exam) for run, exam in exams.items()])
    serve(line)
    for run, exam in exams.items():
        ids = tuple(event.token.id for event in line.events(run) if isinstance(event, Chose))
        assert ids == tiny.sit("llama", exam).output_ids
    first = [event for event in line.events("a") + line.events("b") if isinstance(event, Started)]
    assert [event.cold for event in first] == [True, False]


def test_a_second_loaded_model_guesses_and_others_are_refused() -> None:
    exam = tiny.raw(draft=3, draft_model="second")
    stranger = wrap(tiny.network("gpt2"), tiny.sentencepiece(), name="stranger")
    names = {"good": "second", "absent": "nobody", "strange": "stranger"}
    line = Line(*[submit(run, replace(exam, model="tiny", draft_model=name)) for run, name in names.items()])
    serve(line, others={"second": tiny.model("gpt2"), "stranger": stranger})
    ids = tuple(event.token.id for event in line.events("good") if isinstance(event, Chose))
    assert ids == tiny.sit("llama", tiny.raw()).output_ids
    assert any(event.drafts for event in line.events("good") if isinstance(event, Decoded))
    ends = {run: line.events(run)[-1] for run in ("absent", "strange")}
    codes = {run: (end.code, dict(end.values)) for run, end in ends.items() if isinstance(end, Finished)}
    assert codes == {
        "absent": ("model_not_ready", {"model": "nobody"}),
        "strange": ("other_vocabulary", {"draft": "stranger", "model": "llama"}),
    }


def test_every_layer_of_a_prefill_is_told_as_it_happens() -> None:
    line = Line(submit("a", tiny.raw()))
    serve(line)
    batches = [message[2] for message in line.heard]
    assert [[event.type for event in batch] for batch in batches[:4]] == [["started"], ["layer"], ["layer"], ["layer"]]
    assert [event.type for event in batches[4]][:2] == ["prefilled", "chose"]


@pytest.mark.parametrize("layer", [1, 2])
def test_a_stop_is_heard_between_two_layers(layer: int) -> None:
    line = Line(submit("a", tiny.raw()), reply=on(Layer, layer, ("stop", "a", "stopped")))
    engine = serve(line)
    assert [event.type for event in line.events("a")] == ["started", *["layer"] * layer, "finished"]
    assert reason(line, "a") == "stopped" and not engine.active


def test_a_stop_counts_for_a_run_that_still_waits_in_the_inbox() -> None:
    """Both come while another run is read: the stop must not be lost because its run has not begun."""
    later = (submit("b", tiny.raw("Luna")), ("stop", "b", "stopped"))
    line = Line(submit("a", tiny.raw()), reply=on(Layer, 1, *later))
    serve(line)
    assert reason(line, "a") == "length"
    assert [event.type for event in line.events("b")] == ["finished"] and reason(line, "b") == "stopped"


def test_stopping_what_is_over_or_unknown_changes_nothing() -> None:
    line = Line(submit("a", tiny.raw()), ("stop", "nobody", "stopped"), ("release", "nobody"))
    serve(line)
    again = Line(("stop", "a", "stopped"))
    serve(again)
    assert reason(line, "a") == "length" and again.heard == []


def job(name: str, run: str, number: str = "j", **arguments: Any) -> Message:
    return ("job", number, name, {"run": run, **arguments})


def test_a_finished_run_can_be_looked_at_until_it_is_released() -> None:
    look = job("attention", "a", layer=1, row=3, head=2)
    line = Line(submit("a", tiny.raw("abcdef")), reply=on(Finished, 1, look, ("release", "a"), look))
    engine = serve(line)
    result, failed = line.heard[-2:]
    run = tiny.exam("llama", tiny.raw("abcdef"))
    tiny.drive([run])
    assert result == ("result", "j", (1, 4, quantise(run.lens.row(1, 2, 3), 65535)))
    assert failed == ("failed", "j", "not_kept", {}) and not engine.kept


def test_a_run_that_is_still_writing_can_be_looked_at_too() -> None:
    line = Line(submit("a", tiny.raw("abcdef")), reply=on(Chose, 3, job("map", "a", layer=0)))
    serve(line)
    (result,) = [message for message in line.heard if message[0] == "result"]
    rows, columns, data = result[2]
    assert rows == columns >= 8 and len(data) == rows * columns
    assert reason(line, "a") == "length"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (job("attention", "a", layer=9, row=0), "no_layer"),
        (job("map", "a", layer=0, head=9), "no_head"),
        (job("attention", "a", layer=0, row=99), "no_row"),
        (job("attention", "b", layer=0, row=0), "not_kept"),
        (job("nonsense", "a"), "job_failed"),
        (job("map", "a", wrong=1), "job_failed"),
    ],
)
def test_a_bad_job_fails_alone(asked: Message, code: str) -> None:
    line = Line(submit("a", tiny.raw("abc")), reply=on(Chose, 2, asked))
    serve(line)
    ((_, number, told, _),) = [message for message in line.heard if message[0] == "failed"]
    assert (number, told, reason(line, "a")) == ("j", code, "length")


def test_many_jobs_slow_a_run_but_do_not_stop_it() -> None:
    """One job between two steps: after each result comes a step's events, until the answer is written."""
    many = [job("map", "a", str(number), layer=0) for number in range(6)]
    line = Line(submit("a", tiny.raw("abc")), reply=on(Chose, 1, *many))
    serve(line)
    kinds = [message[0] for message in line.heard]
    begin = kinds.index("result")
    assert kinds[begin : begin + 12] == ["result", "events"] * 6


def test_a_job_that_still_waits_can_be_taken_back() -> None:
    asked = [job("map", "a", str(number), layer=0) for number in range(3)]
    line = Line(submit("a", tiny.raw()), reply=on(Layer, 1, *asked, ("cancel", "1"), ("cancel", "9")))
    serve(line)
    assert [message[1] for message in line.heard if message[0] in ("result", "failed")] == ["0", "2"]


def refused(settings: Settings) -> Finished:
    line = Line(submit("bad", settings), submit("good", tiny.raw("Luna")))
    serve(line)
    assert reason(line, "good") == "length"
    (event,) = line.events("bad")
    assert isinstance(event, Finished) and event.reason == "error"
    return event


def test_a_prompt_that_cannot_be_taken_is_told_why() -> None:
    assert refused(tiny.raw(" ")).code == "empty_prompt"
    assert refused(tiny.raw("a" * 200)).values == (("tokens", 200), ("bound", tiny.CONTEXT - 1))
    assert refused(tiny.raw("a", model="another")).code == "model_not_ready"


def test_an_error_while_a_prompt_is_read_ends_that_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = type(tiny.model("llama").text).prompt

    def prompt(self: Any, settings: Settings) -> Any:
        if settings.prompt == "odd":
            raise KeyError("odd")
        return real(self, settings)

    monkeypatch.setattr(type(tiny.model("llama").text), "prompt", prompt)
    event = refused(tiny.raw("odd"))
    assert (event.code, event.values) == ("model_failed", (("why", "KeyError: 'odd'"),))


@pytest.fixture
def nothing_loads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    errors: dict[str, Exception] = {"lost": Refusal("weights_absent", model="x", name="lost"), "odd": MemoryError("no")}

    def resolve(name: str, progress: object) -> None:
        raise errors[name]

    monkeypatch.setattr(weights, "resolve", resolve)
    return errors


@pytest.mark.usefixtures("nothing_loads")
def test_a_model_that_cannot_be_loaded_is_refused_and_the_others_go_on() -> None:
    line = Line(("load", "lost"), ("load", "odd"), submit("a", tiny.raw("Luna")))
    serve(line)
    told = [message[2] for message in line.heard if message[:2] == ("status", "refused")]
    assert [fields["code"] for fields in told] == ["weights_absent", "model_not_loaded"]
    assert told[1]["values"] == {"model": "odd", "why": "MemoryError: no"}
    assert reason(line, "a") == "length"
