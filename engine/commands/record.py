"""`python -m engine record`: makes the recordings in `assets/recordings`, or checks that they still hold."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from engine.commands import open_model
from engine.settings import Refusal
from engine.trace import file as tracefile
from engine.words import say

if TYPE_CHECKING:
    from engine.model import LanguageModel
    from engine.recordings.exams import Recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which recording; whether to write it."""
    parser.add_argument("--only", metavar="NAME", help=say("command.only"))
    parser.add_argument("--check", action="store_true", help=say("command.check"))


def run(options: argparse.Namespace) -> int:
    """0, or 1 when a recording no longer comes out the same. Raises `Refusal` (weights absent, wrong answer, …)."""
    from engine.recordings.exams import DTYPE, recordings

    chosen = [recording for recording in recordings() if options.only in (None, recording.name)]
    if not chosen:
        raise Refusal("no_recording", name=options.only, known=", ".join(r.name for r in recordings()))
    models: dict[str, LanguageModel] = {}
    steady = True
    for recording in chosen:
        name = recording.settings.model
        if name not in models:
            models[name] = open_model(name, dtype=DTYPE)
        work = _check if options.check else _make
        steady &= work(models[name], recording, options.lang)
    return 0 if steady else 1


def _make(model: LanguageModel, recording: Recording, lang: str) -> bool:
    from engine.labs import heads
    from engine.recordings.exams import record

    file = record(model, recording)
    tracefile.write(recording.path, file)
    if recording.name == heads.EXAM:
        heads.write(model, recording)
    trace = file.trace
    print(
        say(
            "command.recorded",
            lang,
            name=recording.name,
            bytes=f"{recording.path.stat().st_size:,}",
            tokens=len(trace.chosen),
            ttft=f"{(trace.ttft or 0) * 1000:,.0f}",
            tpot=f"{(trace.tpot or 0) * 1000:,.1f}",
            answer=trace.output_text.strip(),
        )
    )
    return True


def _check(model: LanguageModel, recording: Recording, lang: str) -> bool:
    from engine.labs import heads
    from engine.recordings.exams import same

    steady = same(model, recording) and (recording.name != heads.EXAM or heads.same(model, recording))
    print(say("command.same" if steady else "command.different", lang, name=recording.name))
    return steady
