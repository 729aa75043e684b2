"""`python -m engine run`: a clean standard output, the same summary as its trace, and refusals in one sentence."""

from __future__ import annotations

import io
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main
from engine.run import Run
from engine.settings import Settings
from engine.trace import Decoded
from engine.trace import file as tracefile
from engine.words import say
from tests.engine import tiny

KEYS = [
    "prompt_tokens", "output_ids", "output_text", "ttft_s", "tpot_s", "itl_s", "kv_bytes", "finish_reason", "device",
    "dtype", "model",
]  # fmt: skip
PROMPT = "What is the cat called?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("tiny")
    tiny.network("llama").save_pretrained(made)
    tiny.tokenizer().save_pretrained(made)
    return str(made)


def run(folder: str, *arguments: str) -> int:
    return main(["run", *arguments, "--model", folder, "--device", "cpu", "--dtype", "fp32", "--max-new-tokens", "6"])


def as_json(folder: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(folder, *arguments, "--json") == 0
    output = capsys.readouterr().out
    result = json.loads(output)
    assert isinstance(result, dict)
    return result


def test_json_is_all_that_is_printed_and_holds_the_summary(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(folder, capsys, PROMPT, "--raw")
    assert list(result) == KEYS
    expected = tiny.sit("llama", Settings(PROMPT, mode="raw", max_new_tokens=6))
    assert tuple(result["output_ids"]) == expected.output_ids
    assert result["output_text"] == expected.output_text
    assert result["prompt_tokens"] == len(expected.started.prompt) if expected.started else False
    assert (result["finish_reason"], result["device"], result["dtype"]) == ("length", "cpu", "float32")
    assert len(result["itl_s"]) == 5
    assert result["model"] == folder


def test_the_answer_comes_first_then_the_numbers(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, PROMPT, "--raw") == 0
    captured = capsys.readouterr()
    answer = tiny.sit("llama", Settings(PROMPT, mode="raw", max_new_tokens=6)).output_text
    shown, numbers = captured.out.split("\n\nmodel ")
    assert shown.isprintable() or not answer.isprintable()
    assert "TTFT" in numbers and say("command.cold") in numbers


def test_the_chat_template_is_the_rule_and_raw_the_exception(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    chat, raw = as_json(folder, capsys, PROMPT), as_json(folder, capsys, PROMPT, "--raw")
    assert chat["prompt_tokens"] > raw["prompt_tokens"]


def test_a_trace_is_saved_with_its_looks_and_replays_to_the_same_summary(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "exam.trace"
    said = as_json(folder, capsys, PROMPT, "--raw", "--temperature", "1.5", "--seed", "3", "--trace", str(path))
    assert main(["replay", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == said
    file = tracefile.read(path)
    assert file.header.title == PROMPT and not file.header.recorded
    assert file.looks is not None and file.looks.rows == 6
    started = file.trace.started
    assert started is not None and started.cold
    assert (started.settings.temperature, started.settings.seed) == (1.5, 3)


def test_sampling_settings_reach_the_engine(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "exam.trace"
    as_json(folder, capsys, PROMPT, "--temperature", "2", "--top-k", "5", "--top-p", "0.5", "--control", "control",
            "--stop", "a", "--stop", "bc", "--timeout", "9", "--trace", str(path))  # fmt: skip
    started = tracefile.read(path).trace.started
    assert started is not None
    assert started.settings == Settings(
        PROMPT, folder, "chat", "control", 6, 2.0, 5, 0.5, stop=("a", "bc"), timeout=9.0
    )


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_dash_reads_standard_input(
    folder: str, ending: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = as_json(folder, capsys, PROMPT)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((PROMPT + ending).encode())))
    assert as_json(folder, capsys, "-")["output_ids"] == typed["output_ids"]


@pytest.mark.parametrize(
    ("arguments", "code", "values"),
    [
        (["  "], "empty_prompt", {}),
        (["a\udcff"], "lone_surrogate", {}),
        (["a", "--temperature", "-1"], "out_of_range", {"field": "temperature", "least": 0, "most": 5}),
        (["a", "--temperature", "nan"], "out_of_range", {"field": "temperature", "least": 0, "most": 5}),
        (["word " * 60], "too_many_tokens", None),
        (["a", "--trace", "/nowhere/at/all.trace"], "file_unwritable", {"file": "/nowhere/at/all.trace"}),
    ],
)
def test_a_refusal_is_one_sentence_and_exit_status_2(
    folder: str, arguments: list[str], code: str, values: dict[str, Any] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    for lang in ("en", "zh"):
        assert run(folder, *arguments, "--lang", lang) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        if values is None:
            assert captured.err.startswith(say(f"errors.{code}", lang, tokens="|", bound=0).split("|")[0])
        else:
            assert captured.err == say(f"errors.{code}", lang, **values) + "\n"


def test_no_model_is_a_refusal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(str(tmp_path), PROMPT) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_interrupt_ends_the_run_as_stopped(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Ctrl-C comes while the second word is being written: what was written is kept."""
    due, calls = Run.due, []

    def pressing(self: Run) -> Any:
        if len(self.chosen) == 2 and not calls:
            calls.append(1)
            signal.raise_signal(signal.SIGINT)
        return due(self)

    monkeypatch.setattr(Run, "due", pressing)
    before = signal.getsignal(signal.SIGINT)
    path = tmp_path / "exam.trace"
    result = as_json(folder, capsys, PROMPT, "--raw", "--trace", str(path))
    assert result["finish_reason"] == "stopped"
    assert len(result["output_ids"]) == 2
    assert signal.getsignal(signal.SIGINT) is before
    file = tracefile.read(path)
    assert sum(isinstance(event, Decoded) for event in file.trace.events) == 1
    assert file.looks is not None and file.looks.rows == 2


def test_a_run_that_breaks_tells_why_and_ends_with_status_1(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaking(*_: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr("engine.cache.keeping.RunCache", breaking)
    assert run(folder, PROMPT, "--json") == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["finish_reason"] == "out_of_memory"
    assert captured.err == say("errors.out_of_memory") + "\n"
