"""The shell all labs share: pieces measured one by one, the same by command and by job, on a tiny model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine import labs
from engine.__main__ import main
from engine.commands import lab as command
from engine.labs.base import Lab, giving_way, spread
from engine.labs.jobs import lab_piece, lab_plan
from engine.labs.recorded import recorded
from engine.labs.timing import alternate, sit
from engine.model import LanguageModel
from engine.settings import Refusal, Settings
from tests.engine import tiny


class Words(Lab):
    """Counts the words of an answer, twice as many in its second piece."""

    name = "words"
    stage = "decode"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        return [{"piece": f"words/{n}", "n": n} for n in (2, 4)]

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        if piece["n"] == 4 and model.facts.model == "gpt2":
            raise Refusal("job_cancelled")
        _, trace = sit(model, tiny.raw(max_new_tokens=piece["n"]))
        return {"words": len(trace.chosen), "reason": trace.finished.reason if trace.finished else ""}

    def figures(self, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        counts = [results.get(f"words/{n}", {}).get("words") for n in (2, 4)]
        return {"words": counts, "gained": None if None in counts else {"n": counts[1] - counts[0]}}

    def runs(self) -> dict[str, Settings]:
        return {"before": tiny.raw(max_new_tokens=2), "after": tiny.raw(max_new_tokens=4)}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """As much of an engine process as labs ask for."""
    monkeypatch.setitem(labs.LABS, "words", Words())
    models = {kind: tiny.model(kind) for kind in ("llama", "gpt2")}
    return SimpleNamespace(models=models, active={}, give_way=lambda: None)


def refused(code: str, ask: Any, *arguments: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        ask(*arguments)
    assert refusal.value.code == code


def test_a_piece_is_measured_by_its_name(engine: Any) -> None:
    plan = lab_plan(engine, "llama", "words")
    assert [piece["piece"] for piece in plan] == ["words/2", "words/4"]
    told = lab_piece(engine, "llama", "words", "words/4")
    assert told["words"] == 4 and told["reason"] == "length"
    assert told.keys() == {"words", "reason", "busy"} and json.dumps(told)


def test_what_is_not_there_is_refused(engine: Any) -> None:
    refused("no_lab", lab_plan, engine, "llama", "lunch")
    refused("no_piece", lab_piece, engine, "llama", "words", "words/9")
    refused("model_not_ready", lab_plan, engine, "nobody", "words")
    refused("job_cancelled", lab_piece, engine, "gpt2", "words", "words/4")


def test_nobody_is_kept_waiting(engine: Any) -> None:
    engine.active = {"somebody": object()}
    refused("others_at_work", lab_piece, engine, "llama", "words", "words/2")
    engine.active = {}

    asked = []

    def no() -> None:
        asked.append(1)
        if len(asked) > 3:
            raise Refusal("others_at_work")

    engine.give_way = no
    refused("others_at_work", lab_piece, engine, "llama", "words", "words/2")
    assert len(asked) == 4, "between two layers, too"


def test_the_command_gives_what_the_job_gives(
    engine: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "open_model", lambda name, *_: tiny.model(name))
    assert main(["lab", "words", "--model", "llama", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.keys() == {"lab", "model", "machine", "taken", "plan", "results", "figures"}
    assert told["model"] == "llama" and told["machine"]["dtype"] == "float32"
    assert [told["results"][piece]["words"] for piece in ("words/2", "words/4")] == [2, 4]
    assert told["figures"] == Words().figures(told["results"]) == {"words": [2, 4], "gained": {"n": 2}}
    assert main(["lab", "words", "--model", "gpt2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["figures"] == {"words": [2, None], "gained": None} and "2/2 words/4" in err
    assert main(["lab", "words", "--model", "llama"]) == 0
    assert capsys.readouterr().out.split() == ["words", "0:", "2", "1:", "4", "gained", "n:", "2"]


def test_the_command_keeps_a_recording_that_gives_the_same_figures(
    engine: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "open_model", lambda name, *_: tiny.model(name))
    monkeypatch.setattr("engine.labs.recorded.FOLDER", tmp_path / "labs")
    assert recorded(Words()) is None
    assert main(["lab", "words", "--model", "llama", "--json", "--record"]) == 0
    told = json.loads(capsys.readouterr().out)
    again = recorded(Words())
    assert again and again["runs"].keys() == {"before", "after"}
    for same in ("model", "machine", "taken", "plan", "results", "figures"):
        assert again[same] == told[same]


@pytest.mark.parametrize("name", labs.LABS)
def test_every_labs_recording_is_shipped_and_whole(name: str) -> None:
    told = recorded(labs.LABS[name])
    assert told, "recorded by an older version of the lab"
    assert told["figures"]["gained"], "the entry page has nothing to say"
    assert {piece["piece"] for piece in told["plan"]} == told["results"].keys()
    assert max(result["busy"] or 0 for result in told["results"].values()) < 0.6, "recorded on a busy machine"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_command_lists_the_labs_and_refuses_others(
    engine: Any, capsys: pytest.CaptureFixture[str], lang: str
) -> None:
    assert main(["lab", "--lang", lang]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(labs.LABS)
    assert main(["lab", "lunch", "--lang", lang]) == 2
    assert "lunch" in capsys.readouterr().err


def test_a_run_that_fails_is_a_refusal() -> None:
    refused("no_layer", sit, tiny.model("llama"), tiny.raw(heads_off=((9, 0),)))
    refused("notes_bound", sit, tiny.model("llama"), tiny.raw(memory=8))


def test_sides_take_turns_and_a_slow_machine_counts_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    time = [0.0]
    monkeypatch.setattr("engine.measure.clock.now", lambda: time[0])
    order: list[str] = []

    def side(name: str, seconds: float) -> Any:
        def do() -> None:
            order.append(name)
            time[0] += seconds

        return do

    device = tiny.model("llama").shape.device
    taken = alternate({"a": side("a", 0.1), "b": side("b", 0.2)}, device, rounds=3, seconds=10)
    assert order == ["b", "a", "a", "b", "b", "a", "a", "b"]
    assert taken == {"a": pytest.approx([0.1] * 3), "b": pytest.approx([0.2] * 3)}
    order.clear()
    taken = alternate({"a": side("a", 8), "b": side("b", 9)}, device, rounds=3, seconds=10)
    assert (order, taken) == (["b", "a"], {"a": [8], "b": [9]}), "too slow to be done again"
    with giving_way(lambda: (_ for _ in ()).throw(Refusal("others_at_work"))):
        refused("others_at_work", alternate, {"a": side("a", 1)}, device)


def test_a_spread_tells_the_middle_and_the_range() -> None:
    assert spread([3.0, 1.0, 2.0, 9.0]) == {"middle": 2.5, "low": 1.0, "high": 9.0, "repeats": 4}


@pytest.mark.parametrize("name", sorted(labs.LABS))
def test_every_lab_keeps_to_the_shape(name: str) -> None:
    """Without anything measured there are figures already, and a lab's pieces have names that an address can hold."""
    lab = labs.LABS[name]
    assert lab.name == name and lab.stage in ("prefill", "decode", "both") and lab.version >= 1
    assert lab.figures({})["gained"] is None
    assert json.dumps(lab.figures({}))
    assert len(lab.runs()) >= 2 or (name == "disaggregation" and not lab.runs()), "what is simulated has none"
    pieces = [piece["piece"] for piece in lab.plan(tiny.model("llama"))]
    assert len(set(pieces)) == len(pieces) > 0
    assert all(len(piece) <= 60 and piece.replace("/", "").replace(".", "").replace("-", "").replace("_", "").isalnum()
               for piece in pieces)  # fmt: skip
