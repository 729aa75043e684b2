"""What is measured of a machine: by the engine's own jobs, quietly where it can be, and kept as a recording."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import weights
from engine.__main__ import main
from engine.jobs import machine, stages
from engine.machine import pieces as making
from engine.machine import recorded as module
from engine.machine.pieces import ANSWER, LENGTHS, quietest
from engine.machine.recorded import kept, recorded
from engine.machine.results import fits_of, subject
from engine.recordings.exams import Recording, recordings
from engine.trace import file as tracefile
from tests.engine import tiny

SWEEP = Path(__file__).parent.parent.parent / "assets" / "stations" / "waiting" / "sweep.js"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tiny model, one exam, and little of everything."""
    monkeypatch.setattr("engine.commands.measure.open_model", lambda *_: tiny.model("llama"))
    monkeypatch.setattr(making, "recordings", lambda: (Recording("tiny", "A tiny exam", tiny.raw()),))
    monkeypatch.setattr(making, "LENGTHS", (8, 9, 10, 11))
    monkeypatch.setattr(machine, "plan", lambda device: (machine.PRODUCTS["cpu"][0],))
    monkeypatch.setattr(machine, "SECONDS", 0)
    monkeypatch.setattr(stages, "BATCHES", (1, 2))
    monkeypatch.setattr(stages, "SECONDS", 0)
    monkeypatch.setattr(making, "rest", lambda: None)
    monkeypatch.setattr(module, "FOLDER", tmp_path / "measures")


def test_the_command_measures_everything_and_keeps_it(short: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert recorded("llama") is None
    assert main(["measure", "--json", "--record"]) == 0
    told, facts = json.loads(capsys.readouterr().out), tiny.model("llama").facts
    prompt = len(tiny.model("llama").text.prompt(tiny.raw()).tokens)
    product = machine.PRODUCTS["cpu"][0].name
    assert told["plan"] == list(told["results"]) == [
        f"peak/{product}", f"batch/{prompt}/1", f"batch/{prompt}/2", f"parts/{prompt}/prefill",
        f"parts/{prompt}/decode", "wait/8", "wait/9", "wait/10", "wait/11",
    ]  # fmt: skip
    assert told["machine"] == subject(facts) and told["versions"] == dict(facts.versions)
    assert told["results"]["wait/8"]["prompt"] == 8 and told["fits"]["ttft"]["points"][0][0] == 8
    again = recorded("llama")
    same = {key: told[key] for key in ("model", "machine", "versions", "taken", "results", "fits")}
    assert json.loads(json.dumps(again)) == same


def test_recorded_again_only_what_was_disturbed_is_measured_again(
    short: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    busy = [0.9]
    monkeypatch.setattr("engine.measure.quiet.Elsewhere.cores", property(lambda self: busy[0]))
    assert main(["measure", "--record"]) == 0
    first = kept("llama")
    assert first and first["disturbed"] == dict.fromkeys(first["plan"], 0.9)
    busy[0] = 0.05
    assert main(["measure", "--record"]) == 0
    calm = kept("llama")
    assert calm and calm["disturbed"] == {} and {one["busy"] for one in calm["results"].values()} == {0.05}
    busy[0] = 0.0
    assert main(["measure", "--record"]) == 0
    assert kept("llama") == calm, "there was nothing to do better"


def test_of_a_piece_the_quietest_try_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "rest", lambda: None)

    def work(*busy: float | None) -> Callable[[], dict[str, Any]]:
        told = iter(busy)
        return lambda: {"busy": next(told)}

    assert quietest(work(0.9, 0.05, 0.0))["busy"] == 0.05, "quiet enough"
    assert quietest(work(0.9, 0.4, 0.6, 0.0), tries=3)["busy"] == 0.4, "not for ever"
    assert quietest(work(None))["busy"] is None, "nobody tells"
    assert quietest(work(0.9), {"busy": 0.3, "taken": "then"}, tries=1) == {"busy": 0.3, "taken": "then"}
    assert quietest(work(0.2), {"busy": 0.3, "taken": "then"}, tries=1)["busy"] == 0.2
    assert quietest(work(), {"busy": 0.1, "taken": "then"})["taken"] == "then"


def test_what_another_version_recorded_counts_as_none(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["measure", "--record"]) == 0
    assert recorded("llama") and recorded(str(module.FOLDER / "llama")) is None, "a folder is not a name"
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    assert recorded("llama") is None


def test_the_shipped_recording_is_whole_and_its_figures_follow() -> None:
    file, told = kept(weights.DEFAULT), recorded(weights.DEFAULT)
    assert file and told, "recorded by an older version"
    results = file["results"]
    assert list(results) == file["plan"] == planned()
    assert told["fits"] == fits_of(results) and told["fits"]["ttft"]["b"] > 0 and told["fits"]["tpot"]["a"] > 0
    assert file["taken"] == max(one["taken"] for one in results.values())
    known = weights.known(weights.DEFAULT).gguf_sha256
    assert (file["machine"]["model"], file["machine"]["weights"]) == (weights.DEFAULT, known)
    assert file["versions"]["torch"] == file["machine"]["torch"]
    for name, one in results.items():
        kind = name.split("/")[0]
        assert one["busy"] is None or one["busy"] >= 0
        if kind == "peak":
            assert one["rate"] == pytest.approx(one["work"] / one["best"])
        elif kind == "parts":
            assert sum(one["parts"].values()) == pytest.approx(one["timed"])
        elif kind == "wait":
            assert len(one["itl"]) == len(one["contexts"]) and one["ttft"] >= one["prefill"]


def test_the_shipped_recording_says_which_pieces_others_disturbed() -> None:
    """All that kept more than half a core busy, with how much, and nothing else."""
    file = kept(weights.DEFAULT)
    assert file
    loud = {name: one["busy"] for name, one in file["results"].items() if (one["busy"] or 0) > 0.5}
    assert file["disturbed"] == loud


def test_the_recorded_runs_were_sat_on_the_machine_that_was_measured() -> None:
    """So that a page can set them under its roof."""
    file = kept(weights.DEFAULT)
    for recording in (one for one in recordings() if not one.settings.model):
        started = tracefile.read(recording.path).trace.started
        assert file and started and subject(started.facts) == file["machine"]


def planned() -> list[str]:
    """The names of all pieces, without a model: prompts are as long as they are in the recordings."""
    traces = [tracefile.read(one.path).trace for one in recordings() if not one.settings.model]
    prompts = [len(trace.started.prompt) for trace in traces if trace.started]
    return [
        *(f"peak/{shape.name}" for shape in machine.plan("cpu")),
        *(
            name
            for prompt in prompts
            for name in (
                *(f"batch/{prompt}/{batch}" for batch in stages.BATCHES),
                f"parts/{prompt}/prefill",
                f"parts/{prompt}/decode",
            )
        ),
        *(f"wait/{length}" for length in LENGTHS),
    ]


def test_the_page_offers_the_lengths_that_are_recorded() -> None:
    text = SWEEP.read_text("utf-8")
    lengths = re.search(r"LENGTHS = \[([\d, ]+)\]", text)
    answer = re.search(r"ANSWER = (\d+)", text)
    assert lengths and answer
    assert (tuple(map(int, lengths[1].split(", "))), int(answer[1])) == (LENGTHS, ANSWER)
