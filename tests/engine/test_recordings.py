"""The shipped recordings: whole, small, right, and made by today's engine from the weights they name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine import weights
from engine.__main__ import main
from engine.commands import open_model
from engine.labs import LABS
from engine.model import LanguageModel
from engine.recordings import exams as module
from engine.recordings.exams import FOLDER, RUNS, Recording, record, recordings, same
from engine.settings import Refusal
from engine.trace import Layer
from engine.trace import file as tracefile
from engine.trace.file import Lens
from engine.words import say
from tests.engine import tiny

pytestmark = pytest.mark.slow

NAMES = ["open-book", "closed-book", "long-paper", "chinese"]
MEGABYTE = 2**20


@pytest.fixture(scope="session")
def opened() -> Callable[[str], LanguageModel]:
    """Models by name, in fp32, each loaded once."""
    models: dict[str, LanguageModel] = {}

    def get(name: str) -> LanguageModel:
        if name not in models:
            models[name] = open_model(name, device="cpu", dtype=module.DTYPE)
        return models[name]

    return get


def test_four_exams_are_recorded_and_nothing_else_lies_there() -> None:
    assert [recording.name for recording in recordings()] == NAMES
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(["labs", *(f"{name}.trace" for name in NAMES)])
    assert {path.stem for path in (FOLDER / "labs").iterdir()} == LABS.keys()


@pytest.mark.parametrize("recording", recordings(), ids=NAMES)
def test_a_recording_is_whole_small_and_right(recording: Recording) -> None:
    file = tracefile.read(recording.path)
    started, header = file.trace.started, file.header
    assert started is not None
    assert recording.path.stat().st_size < MEGABYTE
    data = tracefile.to_bytes(file)  # as today's version writes it: the same bytes wherever that is
    assert tracefile.to_bytes(tracefile.read(data)) == data
    assert header.recorded and header.id == recording.name and header.title == recording.title
    assert header.weights_sha256 == weights.known(recording.settings.model).gguf_sha256
    assert f"median of {RUNS} warm runs" in header.machine and "float32" in header.machine
    assert started.settings == recording.settings
    assert started.facts.dtype == "float32" and not started.cold
    assert file.looks is not None and header.lens is not None
    assert any(isinstance(event, Layer) for event in file.trace.events)
    assert file.trace.finished is not None and file.trace.finished.reason in ("eos", "stop_string")
    assert not recording.right or any(right in file.trace.output_text for right in recording.right)


@pytest.mark.parametrize("recording", recordings(), ids=NAMES)
def test_todays_engine_chooses_the_same_tokens(recording: Recording, opened: Callable[[str], LanguageModel]) -> None:
    """Gemma's exam is sat again only where somebody accepted its terms and fetched it; the bundled model's always."""
    if recording.settings.model in ("", weights.DEFAULT) or weights.present(recording.settings.model):
        assert same(opened(recording.settings.model), recording)
    else:
        assert tracefile.read(recording.path).trace.output_ids


def test_the_long_paper_is_long_and_the_closed_book_is_the_open_one_without_its_passage() -> None:
    by_name = {recording.name: recording for recording in recordings()}
    started = tracefile.read(by_name["long-paper"].path).trace.started
    assert started is not None and 1300 < len(started.prompt) < 1700
    opened, closed = by_name["open-book"].settings.prompt, by_name["closed-book"].settings.prompt
    assert opened.endswith(closed) and "Luna" in opened and "Luna" not in closed


def test_anna_s_cat_is_looked_up_where_it_stands() -> None:
    """Layer 23, head 1 (from 0): when `Luna` is written, its strongest position by far is the passage's `Luna`."""
    file = tracefile.read(FOLDER / "open-book.trace")
    started, lens = file.trace.started, file.header.lens
    assert started is not None and file.looks is not None
    assert lens == Lens(23, 1)
    tokens = [event.token.text for event in file.trace.chosen]
    row = len(started.prompt) - 1 + tokens.index(" Luna")
    looks = {p: w for p, w in file.looks.row(23, 1, row, len(started.prompt)) if p < len(started.prompt)}
    found = {started.prompt[position].text: weight for position, weight in looks.items()}
    assert found[" Luna"] == pytest.approx(0.43, abs=0.02)


@pytest.fixture
def exam() -> Recording:
    return Recording("tiny", "A tiny exam", tiny.raw(), right=())


def test_of_several_warm_runs_the_median_one_is_kept(exam: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([5.0, 1.0, 4.0, 2.0, 3.0])
    sit = module._sit

    def timed(*arguments: object) -> object:
        run, trace = sit(*arguments)  # type: ignore[arg-type]
        end = replace(trace.events[-1], at=next(ends) + 1000)
        return run, replace(trace, events=(*trace.events[:-1], end))

    monkeypatch.setattr(module, "_sit", timed)
    file = record(tiny.model("llama"), exam)
    assert file.trace.events[-1].at == 1003
    assert file.header.recorded and file.header.machine.endswith("median of 5 warm runs")
    assert file.looks is not None and file.header.lens is not None


def test_a_wrong_answer_is_not_recorded(exam: Recording) -> None:
    with pytest.raises(Refusal) as refusal:
        record(tiny.model("llama"), replace(exam, right=("Luna",)), runs=1)
    assert refusal.value.code == "recording_wrong"


def test_another_exam_or_other_weights_are_not_the_same(
    exam: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    model = tiny.model("llama")
    tracefile.write(exam.path, record(model, exam, runs=1))
    assert same(model, exam)
    assert not same(model, replace(exam, settings=replace(exam.settings, prompt="Another")))
    assert not same(replace(model, facts=replace(model.facts, weights_sha256="00")), exam)
    assert not same(tiny.model("qwen3"), exam)  # other weights that carry the same (empty) hash choose other tokens


def test_the_command_records_and_checks(
    exam: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(module, "recordings", lambda: (exam,))
    monkeypatch.setattr("engine.commands.record.open_model", lambda name, dtype: tiny.model("llama"))
    assert main(["record", "--only", "tiny"]) == 0
    assert capsys.readouterr().out.startswith("tiny: 12 tokens")
    assert main(["record", "--check"]) == 0
    assert capsys.readouterr().out == say("command.same", name="tiny") + "\n"
    monkeypatch.setattr("engine.commands.record.open_model", lambda name, dtype: tiny.model("qwen3"))
    assert main(["record", "--check"]) == 1
    assert main(["record", "--only", "unheard-of"]) == 2
    assert capsys.readouterr().err == say("errors.no_recording", name="unheard-of", known="tiny") + "\n"
