"""`python -m engine run "PROMPT"`: one exam, here and now. Prints the answer and the numbers; can save the trace."""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from engine.commands import add_model_arguments, open_model
from engine.commands.replay import readable
from engine.settings import Refusal, Settings, check
from engine.trace import Trace
from engine.trace.summary import summary
from engine.words import say

if TYPE_CHECKING:
    from engine.run import Run

_TITLE_CHARACTERS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One argument per field of `Settings`, with its defaults; where to run; what to keep and print."""
    parser.add_argument("prompt", metavar="PROMPT", help=say("command.prompt"))
    usual = Settings("")
    for name in ("max_new_tokens", "seed", "temperature", "top_k", "top_p", "timeout"):
        default: float = getattr(usual, name)
        option, about = f"--{name.replace('_', '-')}", say(f"command.{name}", default=default)
        parser.add_argument(option, type=type(default), default=default, metavar="N", help=about)
    parser.add_argument("--stop", action="append", default=[], metavar="STRING", help=say("command.stop"))
    parser.add_argument("--raw", action="store_true", help=say("command.raw"))
    parser.add_argument("--control", choices=("text", "control"), default="text", help=say("command.control"))
    add_model_arguments(parser)
    parser.add_argument("--trace", type=Path, metavar="FILE", help=say("command.trace"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))


def run(options: argparse.Namespace) -> int:
    """0, or 1 when the run ended in an error. Raises `Refusal` for what cannot be asked, loaded or saved."""
    settings = _settings(options)
    check(settings)
    model = open_model(settings.model, options.device, options.dtype)

    from engine.measure import clock
    from engine.run import admit, complete

    exam = admit("", settings, model, clock.now())
    with _stopped_by_interrupt(exam):
        trace = complete(exam, cold=True)
    if options.trace:
        _save(options.trace, exam, trace)
    result = summary(trace)
    cold = say("command.cold", options.lang)
    print(result.to_json() if options.json else f"{readable(result, options.lang)}\n\n{cold}")
    return _tell_error(trace, options.lang)


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        prompt=_standard_input() if options.prompt == "-" else options.prompt,
        model=options.model,
        mode="raw" if options.raw else "chat",
        control=options.control,
        max_new_tokens=options.max_new_tokens,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
        stop=tuple(options.stop),
        timeout=options.timeout,
    )


def _standard_input() -> str:
    """All of it, less the newline at its end. Bytes that are no UTF-8 become lone surrogates, which are refused."""
    text = sys.stdin.buffer.read().decode("utf-8", errors="surrogateescape")
    return text.removesuffix("\n").removesuffix("\r")


@contextmanager
def _stopped_by_interrupt(exam: Run) -> Iterator[None]:
    """The first Ctrl-C stops the exam, within one layer, as the page's stop button does; the next ends the program."""

    def stop(number: int, frame: FrameType | None) -> None:
        exam.stop_reason = "stopped"
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _save(path: Path, exam: Run, trace: Trace) -> None:
    from engine.recordings.exams import trace_file
    from engine.trace import file as tracefile

    title = " ".join(exam.settings.prompt.split())[:_TITLE_CHARACTERS]
    file = trace_file(exam, trace, secrets.token_urlsafe(12), title)
    try:
        tracefile.write(path, file)
    except OSError as error:
        raise Refusal("file_unwritable", file=str(path)) from error


def _tell_error(trace: Trace, lang: str) -> int:
    end = trace.finished
    if end is None or end.reason not in ("error", "out_of_memory"):
        return 0
    print(say(f"errors.{end.code}", lang, **dict(end.values)), file=sys.stderr)
    return 1
