"""The engine as a process of its own, over a real connection: started as the service starts it, warnings as errors."""

from __future__ import annotations

import json
import pickle
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

import pytest

from engine.settings import Settings
from engine.trace import Chose, Event, Finished, Trace
from engine.trace.looks import Looks
from tests.engine import tiny

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-W", "error", "-m", "engine.process"]
PATIENCE = 120.0
"""Seconds after which something has gone wrong. Only a failure waits so long."""


class Engine:
    """A running engine process and our end of its connection."""

    def __init__(self) -> None:
        key = secrets.token_bytes(32)
        with Listener(("127.0.0.1", 0), authkey=key) as listener:
            greeting = {"address": listener.address, "key": key.hex(), "device": "cpu", "dtype": "float32"}
            self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(greeting).encode() + b"\n")
            self.process.stdin.close()
            self.connection: Connection[Any, Any] = listener.accept()
        self.heard: list[tuple[Any, ...]] = []

    def say(self, *message: Any) -> None:
        self.connection.send(message)

    def hear(self, *beginning: Any) -> tuple[Any, ...]:
        """The next message that begins like this; those before it are kept in `heard`."""
        while True:
            assert self.connection.poll(PATIENCE), f"nothing was said; before: {self.heard[-3:]}"
            message = self.connection.recv()
            self.heard.append(message)
            if message[: len(beginning)] == beginning:
                return tuple(message)

    def finish(self, run: str) -> Trace:
        """Hear until a run is over: all its events."""
        while not isinstance(self.hear("events", run)[2][-1], Finished):
            pass
        events: list[Event] = []
        for message in self.heard:
            events += message[2] if message[:2] == ("events", run) else []
        return Trace(tuple(events))

    def ended(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("model")
    tiny.network("llama").save_pretrained(made)
    tiny.tokenizer().save_pretrained(made)
    return str(made)


@pytest.fixture(scope="module")
def engine(folder: str) -> Iterator[Engine]:
    engine = Engine()
    engine.say("load", folder)
    engine.hear("status", "ready")
    yield engine
    engine.close()


@pytest.fixture
def fresh() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def test_loading_is_told_from_the_first_moment_on(engine: Engine, folder: str) -> None:
    told = [message for message in engine.heard if message[0] == "status"]
    assert [message[1] for message in told] == ["loading"] * (len(told) - 1) + ["ready"]
    progress = [message[2]["progress"] for message in told[:-1]]
    assert progress[0] == 0.0 and progress == sorted(progress)
    assert {message[2]["model"] for message in told} == {folder}
    assert told[-1][2]["facts"].layers == 3 and len(told[-1][2]["facts"].weights_sha256) == 64


def test_an_exam_from_start_to_end_and_a_look_at_it(engine: Engine, folder: str) -> None:
    exam = tiny.raw("abcdef", model=folder)
    engine.say("submit", "one", exam, time.perf_counter())
    trace = engine.finish("one")
    assert trace.output_ids == tiny.sit("llama", tiny.raw("abcdef")).output_ids
    assert trace.started is not None and trace.started.cold and trace.started.settings == exam
    assert trace.ttft is not None and 0 < trace.ttft < PATIENCE
    rows = 6 + len(trace.output_ids) - 1
    for job, arguments in {"attention": {"layer": 0, "head": 1, "row": 4}, "map": {"layer": 2}, "looks": {}}.items():
        engine.say("job", job, job, {"run": "one", **arguments})
    assert [engine.hear("result", "attention")[2][:2], engine.hear("result", "map")[2][:2]] == [(1, 5), (rows, rows)]
    looks = Looks.from_bytes(engine.hear("result", "looks")[2]["looks"])
    looks.check(len(trace.output_ids), 3, 4, 6)
    engine.say("job", "wrong", "map", {"run": "one", "layer": 99})
    assert engine.hear("failed", "wrong")[2:] == ("no_layer", {"layer": 100, "layers": 3})
    engine.say("release", "one")
    engine.say("job", "late", "map", {"run": "one", "layer": 0})
    assert engine.hear("failed", "late")[2:] == ("not_kept", {})


def test_what_it_says_is_understood_without_torch(engine: Engine) -> None:
    """Torch's own version is no plain string: whoever unpickled it loaded torch, a second and 200 MB."""
    assert {"status", "events", "result"} <= {message[0] for message in engine.heard}
    program = "import pickle, sys; pickle.load(sys.stdin.buffer); sys.exit('torch' in sys.modules)"
    said = pickle.dumps(engine.heard)
    assert subprocess.run([sys.executable, "-c", program], input=said, cwd=ROOT, check=False).returncode == 0


def test_a_stop_reaches_a_run_that_writes(engine: Engine) -> None:
    """It writes for a fifth of a second; where somebody else had the machine just then, it is tried again."""
    reasons = []
    while "stopped" not in reasons and len(reasons) < 20:
        run = f"long {len(reasons)}"
        engine.say("submit", run, tiny.raw("a", max_new_tokens=90, stop=("never",)), time.perf_counter())
        engine.hear("events", run)
        engine.say("stop", run, "stopped")
        finished = engine.finish(run).finished
        reasons.append(finished.reason if finished else "")
    assert reasons[-1] == "stopped"
    engine.say("submit", "next", tiny.raw("b"), time.perf_counter())
    assert engine.finish("next").output_ids == tiny.sit("llama", tiny.raw("b")).output_ids


def test_refusals_are_told_and_the_next_run_works(engine: Engine) -> None:
    engine.say("load", "no-such-model")
    assert engine.hear("status", "refused")[2]["code"] == "unknown_model"
    engine.say("submit", "bad", Settings("x", model="no-such-model"), time.perf_counter())
    finished = engine.finish("bad").finished
    assert finished is not None and (finished.reason, finished.code) == ("error", "model_not_ready")
    engine.say("submit", "good", tiny.raw("c"), time.perf_counter())
    assert any(isinstance(event, Chose) for event in engine.finish("good").events)


def test_it_ends_when_it_is_told_to(fresh: Engine) -> None:
    fresh.say("quit")
    assert fresh.ended() == 0
    assert fresh.process.stderr is not None and fresh.process.stderr.read() == b""


def test_it_ends_by_itself_when_the_connection_does(fresh: Engine) -> None:
    fresh.connection.close()
    assert fresh.ended() == 0


def test_it_ends_by_itself_while_it_writes(fresh: Engine, folder: str) -> None:
    fresh.say("load", folder)
    fresh.hear("status", "ready")
    for number in range(3):
        fresh.say("submit", str(number), tiny.raw("a", max_new_tokens=90), time.perf_counter())
    fresh.hear("events", "2")
    fresh.connection.close()
    assert fresh.ended() == 0


LISTENER = """
import json, subprocess, sys
from multiprocessing.connection import Listener
with Listener(("127.0.0.1", 0), authkey=b"key") as listener:
    engine = subprocess.Popen(json.loads(sys.argv[1]), stdin=subprocess.PIPE)
    engine.stdin.write(json.dumps({"address": listener.address, "key": b"key".hex()}).encode() + b"\\n")
    engine.stdin.close()
    connection = listener.accept()
    print("connected", flush=True)
    sys.stdin.read()
"""


def test_it_ends_by_itself_when_the_other_process_is_killed() -> None:
    """The engine holds the same standard output: the pipe's end comes when both processes have ended."""
    command = [sys.executable, "-c", LISTENER, json.dumps(COMMAND)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline().strip() == b"connected"
        listener.kill()
        assert listener.stdout.read() == b""


def test_it_connects_before_it_loads_torch() -> None:
    """So that the service hears from it at once: torch and transformers take seconds."""
    code = "import sys, engine.process; print(*{'torch', 'transformers', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
