"""The summary of a trace, and the command that prints it, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.commands.replay import readable
from engine.trace import Finished, Queued, Trace, Wrote
from engine.trace import file as tracefile
from engine.trace.file import Header, TraceFile
from engine.trace.summary import summary
from engine.words import say
from tests.engine.traces import FACTS, run

REASONS = ["eos", "length", "stop_string", "stopped", "timeout", "out_of_memory", "error"]


def engine(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "engine", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.trace"
    tracefile.write(path, TraceFile(Header("run", "A run", "2026-12-01"), run([0.5, 0.75, 1.25])))
    return path


def test_summary_of_a_run() -> None:
    assert json.loads(summary(run([0.5, 0.75, 1.25])).to_json()) == {
        "prompt_tokens": 3,
        "output_ids": [7, 7, 7],
        "output_text": "aaa",
        "ttft_s": 0.5,
        "tpot_s": 0.375,
        "itl_s": [0.25, 0.5],
        "kv_bytes": 5 * FACTS.kv_bytes_per_token,
        "finish_reason": "length",
        "device": "cpu",
        "dtype": "float32",
        "model": "tiny",
    }


def test_one_token_is_not_applicable_rather_than_zero() -> None:
    one = summary(run([0.5]))
    assert one.tpot_s is None
    assert "n/a" in readable(one)


def test_a_run_that_never_started() -> None:
    one = summary(Trace((Queued(0.0, 1), Finished(1.0, "stopped"))))
    assert (one.prompt_tokens, one.model, one.ttft_s, one.kv_bytes, one.finish_reason) == (0, None, None, 0, "stopped")
    assert summary(Trace(())).finish_reason is None
    assert say("cli.reason_none", "zh") in readable(summary(Trace(())), "zh")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_words(reason: str, lang: str) -> None:
    assert say(f"cli.reason_{reason}", lang) in readable(summary(run([0.5], reason=reason)), lang)


def test_a_terminal_does_not_obey_the_answer() -> None:
    trace = run([0.5])
    events = [replace(e, text="开\x1b[2J\x9b\t👩‍🔬\n") if isinstance(e, Wrote) else e for e in trace.events]
    assert readable(summary(Trace(tuple(events)))).startswith("开\\x1b[2J\\x9b\t👩‍🔬\n")


def test_replay_prints_json(saved: Path) -> None:
    done = engine("replay", str(saved), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(summary(run([0.5, 0.75, 1.25])).to_json())


def test_replay_prints_words(saved: Path) -> None:
    english, chinese = engine("replay", str(saved)), engine("replay", str(saved), "--lang", "zh")
    assert english.returncode == chinese.returncode == 0
    assert "375.0 ms" in english.stdout and "TPOT" in english.stdout
    assert "词元" in chinese.stdout


def test_a_refusal_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "poem.trace"
    path.write_text("no trace")
    done = engine("replay", str(path), "--lang", "zh")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", say("errors.trace_not_ours", "zh") + "\n")
    done = engine("replay", str(tmp_path / "none.trace"), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == say("errors.file_unreadable", file=str(tmp_path / "none.trace")) + "\n"


def test_schema_is_the_published_one() -> None:
    published = Path(__file__).parents[2] / "docs" / "trace.schema.json"
    assert engine("schema").stdout == published.read_text("utf-8")


def test_replay_imports_no_torch(saved: Path) -> None:
    code = (
        "import sys; from engine.__main__ import main\n"
        f"main(['replay', {str(saved)!r}, '--json'])\n"
        "print(sorted({'torch', 'transformers', 'numpy'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_bad_usage_is_said_on_standard_error() -> None:
    for arguments in ([], ["sing"], ["replay"]):
        done = engine(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage:" in done.stderr
