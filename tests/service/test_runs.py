"""The queue: order, room, what the waiting are told, and who is ended when nobody looks."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from engine.settings import MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS, Refusal, Settings
from engine.trace import Finished, Queued
from engine.words import say
from service import runs as module
from service.bounds import RANGES, check, check_owner
from service.runs import FIRST_GRACE, GRACE, KEPT_RUNS, MAX_ACTIVE, MAX_QUEUED, STUCK, Run, Runs
from tests.engine.traces import FACTS, started
from tests.service.fakes import Clock, Message, story


class Desk:
    """The queue with its edges in sight."""

    def __init__(self, ready: bool = True) -> None:
        self.sent: list[Message] = []
        self.over: list[Run] = []
        self.clock = Clock()
        self.runs = Runs(self.sent.append, self.over.append, self.clock)
        if ready:
            self.runs.model_ready("small", FACTS, None)

    def submit(self, prompt: str = "Hi!", **more: object) -> str:
        return self.runs.submit(Settings(prompt, model="small", **more), keep=True)  # type: ignore[arg-type]

    def submitted(self) -> list[str]:
        return [message[1] for message in self.sent if message[0] == "submit"]

    def aheads(self, run_id: str) -> list[int]:
        return [event.ahead for event in self.runs.live[run_id].events if isinstance(event, Queued)]


def test_a_run_goes_to_the_engine_at_once_with_the_time_start_was_pressed() -> None:
    desk = Desk()
    run = desk.submit()
    assert desk.sent == [("submit", run, Settings("Hi!", model="small"), 100.0)]
    assert desk.runs.live[run].events == [Queued(0.0, 0)]


def test_the_queue_keeps_its_order_and_tells_how_many_are_ahead() -> None:
    desk = Desk()
    first = [desk.submit() for _ in range(MAX_ACTIVE)]
    waiting = [desk.submit() for _ in range(3)]
    assert desk.submitted() == first
    assert [desk.aheads(run) for run in waiting] == [[0], [1], [2]]
    desk.clock.time += 2
    desk.runs.take(first[5], story())
    assert desk.submitted() == [*first, waiting[0]]
    assert [desk.aheads(run) for run in waiting] == [[0], [1, 0], [2, 1]]
    assert desk.runs.live[waiting[2]].events[-1].at == 2.0
    desk.runs.stop(waiting[1])
    assert desk.aheads(waiting[2]) == [2, 1, 0]
    assert desk.over[-1].id == waiting[1] and desk.over[-1].events[-1].reason == "stopped"  # type: ignore[union-attr]


def test_a_run_waits_for_the_model_that_guesses_for_it_too() -> None:
    desk = Desk()
    run = desk.submit(draft=4, draft_model="smaller")
    idle = desk.submit(draft_model="smaller")
    assert desk.submitted() == [idle], "without guesses the second model is not needed"
    desk.runs.model_ready("smaller", replace(FACTS, layers=1), None)
    assert desk.submitted() == [idle, run]
    alone, both = desk.runs.live[idle].bytes, desk.runs.live[run].bytes
    assert both == alone + alone // FACTS.layers, "its notes count as well"
    lost = desk.submit(draft=4, draft_model="broken")
    desk.runs.model_refused("broken", Refusal("tap_unsupported", model="broken"))
    ending = desk.over[-1]
    assert ending.id == lost and ending.events[-1].code == "tap_unsupported"  # type: ignore[union-attr]


def test_memory_lets_in_what_fits_and_always_one() -> None:
    desk = Desk()
    huge = replace(FACTS, context=10**9, head_size=10**6)  # one token takes 128 MB
    desk.runs.model_ready("huge", huge, None)
    runs = [desk.runs.submit(Settings("Hi!", model="huge"), keep=True) for _ in range(2)]
    assert desk.submitted() == runs[:1]
    small = desk.submit()
    assert desk.submitted() == runs[:1], "nobody overtakes: a large run would wait for ever"
    desk.runs.take(runs[0], [Finished(1.0, "eos")])
    assert desk.submitted() == runs
    desk.runs.take(runs[1], [Finished(1.0, "eos")])
    assert desk.submitted() == [*runs, small]


def test_a_tokenised_prompt_replaces_its_estimate() -> None:
    desk = Desk()
    run = desk.submit("Hi!", max_new_tokens=5)
    estimate = desk.runs.live[run].bytes
    desk.runs.take(run, [started(0.0, "Hi!")])
    per_token = FACTS.kv_bytes_per_token + FACTS.layers * FACTS.heads * FACTS.head_size * FACTS.value_bytes
    assert estimate == FACTS.context * per_token  # 64 tokens for the template alone
    assert desk.runs.live[run].bytes == 8 * per_token


def test_runs_wait_for_their_model_and_others_do_not() -> None:
    desk = Desk()
    waits = desk.runs.submit(Settings("Hi!", model="other"), keep=True)
    goes = desk.submit()
    assert desk.submitted() == [goes]
    desk.runs.model_ready("other", FACTS, None)
    assert desk.submitted() == [goes, waits]


def test_a_model_that_cannot_be_loaded_ends_the_runs_that_wait_for_it() -> None:
    desk = Desk(ready=False)
    run = desk.submit()
    desk.runs.model_refused("small", Refusal("tap_unsupported", model="small"))
    assert desk.over[0].id == run
    last = desk.over[0].events[-1]
    assert isinstance(last, Finished)
    assert (last.reason, last.code, last.values) == ("error", "tap_unsupported", (("model", "small"),))


def test_the_queue_is_bounded() -> None:
    desk = Desk(ready=False)
    for _ in range(MAX_QUEUED):
        desk.submit()
    with pytest.raises(Refusal, match="queue_full") as refused:
        desk.submit()
    assert str(MAX_QUEUED) in say("errors.queue_full", **refused.value.values)


def test_ids_are_long_random_and_safe_in_paths() -> None:
    desk = Desk(ready=False)
    ids = {desk.submit() for _ in range(MAX_QUEUED)}
    assert len(ids) == MAX_QUEUED
    assert all(len(run) == 16 and run.replace("-", "").replace("_", "").isalnum() for run in ids)


def test_a_run_nobody_watches_is_ended_after_its_grace() -> None:
    desk = Desk()
    run = desk.runs.submit(Settings("Hi!", model="small"))
    desk.clock.time += FIRST_GRACE
    desk.runs.tick()
    assert ("stop", run, "stopped") not in desk.sent
    desk.clock.time += 0.1
    desk.runs.tick()
    assert desk.sent[-1] == ("stop", run, "stopped")


def test_asking_for_a_run_keeps_it_and_leaving_ends_it_sooner() -> None:
    desk = Desk()
    run = desk.runs.submit(Settings("Hi!", model="small"))
    desk.clock.time += FIRST_GRACE
    desk.runs.touch(desk.runs.live[run])
    desk.clock.time += FIRST_GRACE
    desk.runs.tick()
    assert len(desk.sent) == 1
    desk.runs.left(desk.runs.live[run])
    desk.clock.time += GRACE + 0.1
    desk.runs.tick()
    assert desk.sent[-1] == ("stop", run, "stopped")


def test_keep_lets_a_run_go_on_alone() -> None:
    desk = Desk()
    desk.submit()
    desk.clock.time += 100
    assert not desk.runs.tick()
    assert len(desk.sent) == 1


def test_waiting_counts_in_the_time_limit() -> None:
    desk = Desk(ready=False)
    run = desk.submit(timeout=30.0)
    desk.clock.time += 31
    desk.runs.tick()
    assert desk.over[0].id == run
    assert desk.over[0].events[-1] == Finished(31.0, "timeout")


def test_an_engine_that_does_not_end_a_run_is_stuck() -> None:
    desk = Desk()
    desk.submit(timeout=30.0)
    desk.clock.time += 30 + STUCK
    assert not desk.runs.tick()
    desk.clock.time += 1
    assert desk.runs.tick()


def test_finished_runs_stay_in_the_engine_until_newer_ones_need_the_room() -> None:
    desk = Desk()
    runs = []
    for _ in range(KEPT_RUNS + 2):
        runs.append(desk.submit())
        desk.runs.take(runs[-1], story())
    assert [message for message in desk.sent if message[0] == "release"] == [("release", run) for run in runs[:2]]
    assert list(desk.runs.kept) == runs[2:]


def test_kept_runs_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 1)
    desk = Desk()
    runs = []
    for _ in range(2):
        runs.append(desk.submit())
        desk.runs.take(runs[-1], story())
    assert list(desk.runs.kept) == runs[1:], "the last one always stays"


def test_a_run_out_of_memory_is_not_kept() -> None:
    desk = Desk()
    run = desk.submit()
    desk.runs.take(run, [*story()[:-1], Finished(9.0, "out_of_memory")])
    assert not desk.runs.kept


def test_when_the_engine_dies_its_runs_end_and_the_waiting_go_on_waiting() -> None:
    desk = Desk()
    runs = [desk.submit() for _ in range(MAX_ACTIVE + 1)]
    desk.runs.take(runs[0], story()[:4])
    desk.runs.engine_gone(final=False)
    assert [run.id for run in desk.over] == runs[:-1]
    assert {run.events[-1].code for run in desk.over} == {"engine_died"}  # type: ignore[union-attr]
    assert list(desk.runs.live) == runs[-1:]
    desk.runs.model_ready("small", FACTS, None)
    assert desk.submitted()[-1] == runs[-1]
    desk.runs.take(runs[0], story())  # late words of the dead process change nothing
    assert desk.over[0].events[-1].code == "engine_died"  # type: ignore[union-attr]


def test_when_the_engine_will_not_come_back_nobody_waits() -> None:
    desk = Desk(ready=False)
    desk.submit()
    desk.runs.engine_gone(final=True)
    assert desk.over[0].events[-1].code == "engine_failed"  # type: ignore[union-attr]


LARGE = sys.float_info.max
BAD: list[tuple[dict[str, object], str, str]] = [
    ({"prompt": ""}, "empty_prompt", ""),
    ({"prompt": " \n\t\u3000"}, "empty_prompt", ""),
    ({"prompt": "x" * (MAX_PROMPT_CHARACTERS + 1)}, "prompt_too_long", "60000"),
    ({"prompt": "a\ud800b"}, "lone_surrogate", ""),
    ({"stop": ("\udfff",)}, "lone_surrogate", ""),
    ({"stop": ("a",) * 9}, "too_many_stops", "8"),
    ({"stop": ("",)}, "stop_length", "100"),
    ({"stop": ("a" * 101,)}, "stop_length", "100"),
    ({"model": "m" * 501}, "name_too_long", "500"),
    *(({field: value}, "out_of_range", str(bound)) for field, (least, most) in RANGES.items()
      for value, bound in [(least - 1, least), (most + 1, most), (float("nan"), least), (LARGE, most)]),
]  # fmt: skip


@pytest.mark.parametrize(("values", "code", "bound"), BAD)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_bound_is_refused_with_the_bound_in_the_sentence(
    values: dict[str, object], code: str, bound: str, lang: str
) -> None:
    with pytest.raises(Refusal) as refused:
        check(Settings(**{"prompt": "Hi!", **values}))  # type: ignore[arg-type]
    assert refused.value.code == code
    assert bound in say(f"errors.{code}", lang, **refused.value.values).replace(",", "")


def test_what_is_allowed_is_let_through() -> None:
    check(
        Settings("x" * MAX_PROMPT_CHARACTERS, max_new_tokens=MAX_NEW_TOKENS, temperature=5.0, top_p=0.01, stop=("a",))
    )
    for prompt in ["\0", "\u202eabc", "e\u0301", "<script>", "$x$", "\u0000x", "<|im_end|>"]:
        check(Settings(prompt))


@pytest.mark.parametrize("owner", ["a b", "../x", "a" * 65, "é", "a\n"])
def test_owners_are_plain(owner: str) -> None:
    with pytest.raises(Refusal, match="bad_owner"):
        check_owner(owner)
