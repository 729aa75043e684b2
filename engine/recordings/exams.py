"""A finished run as a trace file, and the recordings that ship with the project.

What is recorded stands in `assets/lessons/examples.json` (entries with `recording`): the same exams as on the page.
Recordings are made in fp32, so that ids can be compared on every machine, and `python -m engine record` says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.jobs.attention import looks_of
from engine.measure import clock
from engine.model import LanguageModel
from engine.run import Run, admit, complete
from engine.settings import Refusal, Settings
from engine.trace import Trace
from engine.trace.codec import settings_from
from engine.trace.file import SUFFIX, Header, Lens, TraceFile, read
from engine.trace.looks import Looks
from engine.words import say

ASSETS = Path(__file__).parent.parent.parent / "assets"
FOLDER = ASSETS / "recordings"
DTYPE = "float32"
RUNS = 5
"""Warm runs of which the one with the median duration is kept."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is to be recorded. The answer must hold one of `right`, where there are any; `lens` is worth looking
    through first (None: the head that looked most at the words it was about to write)."""

    name: str
    title: str
    settings: Settings
    right: tuple[str, ...] = ()
    lens: Lens | None = None

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}{SUFFIX}"


def recordings() -> tuple[Recording, ...]:
    """Every shipped recording, in the order of the page's examples; those of the default model first."""
    examples = json.loads((ASSETS / "lessons" / "examples.json").read_text("utf-8"))["examples"]
    found = [recording for example in examples for recording in _recordings(example, example["languages"][0])]
    return tuple(sorted(found, key=lambda recording: recording.settings.model))


def _recordings(example: dict[str, Any], lang: str) -> Iterator[Recording]:
    if name := example.get("recording"):
        title = say(f"examples.{example['id']}.title", lang)
        lens = Lens(**example["lens"]) if "lens" in example else None
        yield Recording(name, title, settings_from(example["settings"]), tuple(example["right"]), lens)
    for variant in example.get("variants", ()):
        yield from _recordings(variant, lang)


def record(model: LanguageModel, recording: Recording, runs: int = RUNS) -> TraceFile:
    """Sit the exam `runs` times after one that only warms up; the file of the run that took the median time.

    Raises `Refusal`: those of `Run`, `recording_wrong` when the answer is not right, `recording_unsteady` when the
    runs chose different tokens.
    """
    complete(admit("", recording.settings, model, clock.now()), cold=True)
    done = [_sit(model, recording.settings) for _ in range(runs)]
    if len({trace.output_ids for _, trace in done}) > 1:
        raise Refusal("recording_unsteady", name=recording.name)
    answer = done[0][1].output_text
    if recording.right and not any(right in answer for right in recording.right):
        raise Refusal("recording_wrong", name=recording.name, answer=answer)
    exam, trace = sorted(done, key=lambda pair: pair[1].events[-1].at)[runs // 2]
    file = trace_file(exam, trace, recording.name, recording.title)
    header = replace(
        file.header,
        recorded=True,
        lens=recording.lens or file.header.lens,
        machine=f"{file.header.machine}; median of {runs} warm runs",
    )
    return replace(file, header=header)


def _sit(model: LanguageModel, settings: Settings) -> tuple[Run, Trace]:
    exam = admit("", settings, model, clock.now())
    return exam, complete(exam)


def trace_file(exam: Run, trace: Trace, name: str, title: str) -> TraceFile:
    """A finished run as a file, with where its words looked if the run's tensors are still there."""
    looks, lens = None, None
    if exam.chosen and exam.tape is not None:
        kept = looks_of(exam)
        looks, lens = Looks.from_bytes(kept["looks"]), Lens(*kept["lens"])
    facts = exam.model.facts
    created = datetime.now(UTC).isoformat(timespec="seconds")
    machine = f"{facts.device_name or facts.device}, {facts.threads} threads, {facts.dtype}"
    header = Header(name, title, created, lens=lens, machine=machine, weights_sha256=facts.weights_sha256)
    return TraceFile(header, trace, looks)


def same(model: LanguageModel, recording: Recording) -> bool:
    """Whether the shipped file is of this model and its exam, sat again, ends in the same tokens.

    Raises the refusals of `tracefile.read`, and `OSError` when the file is not there.
    """
    file = read(recording.path)
    started = file.trace.started
    return (
        started is not None
        and file.header.weights_sha256 == model.facts.weights_sha256
        and started.settings == recording.settings
        and _sit(model, started.settings)[1].output_ids == file.trace.output_ids
    )
