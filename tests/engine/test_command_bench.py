"""`python -m engine bench` on a tiny model: its structure and arithmetic. How fast anything is, no test asserts."""

from __future__ import annotations

import gc
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from engine.__main__ import main
from engine.bench import measure
from engine.bench.measure import RATIOS, TOGETHER, alternate
from engine.bench.papers import paper
from engine.bench.sides import Library, Ours, Timing, map_bytes
from engine.measure import quiet
from engine.measure.quiet import Elsewhere
from engine.model import LanguageModel, load
from engine.settings import Settings
from engine.words import say
from tests.engine import tiny

pytestmark = pytest.mark.slow

LENGTHS = (16, 24)
"""The tiny model's context holds 96: the longest of a class around 16 and the answers fit."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tiny")
    tiny.network("llama").save_pretrained(made)
    tiny.tokenizer().save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return load(folder, device="cpu", dtype="fp32")


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "TOGETHER", 3)
        arguments = ["--quick", "--json", "--prompt-tokens", "24,16", "--device", "cpu", "--dtype", "fp32"]
        with redirect_stdout(io.StringIO()) as output:
            assert main(["bench", "--model", str(folder), *arguments]) == 0
    result = json.loads(output.getvalue())
    assert isinstance(result, dict)
    return result


def rows(report: dict[str, Any], what: str, tokens: int) -> dict[str, Any]:
    return {row["side"]: row for row in report["rows"] if (row["what"], row["prompt_tokens"]) == (what, tokens)}


def test_every_ratio_is_there_for_every_length(report: dict[str, Any]) -> None:
    assert set(report["ratios"]) == set(RATIOS)
    for name, ratios in report["ratios"].items():
        assert list(ratios) == (["16"] if name == "batch30_vs_alone" else ["16", "24"])
        assert all(ratio > 0 for ratio in ratios.values())
    assert report["skipped"] == []


def test_ratios_are_those_of_the_rows_medians(report: dict[str, Any]) -> None:
    for length in LENGTHS:
        decode = rows(report, "decode", length)
        ratio = decode["ours"]["median_ms"] / decode["generate"]["median_ms"]
        assert report["ratios"]["decode_vs_generate"][str(length)] == pytest.approx(ratio)
    step = rows(report, "step", 16)
    ratio = 3 * step["alone"]["median_ms"] / step["together"]["median_ms"]
    assert report["ratios"]["batch30_vs_alone"]["16"] == pytest.approx(ratio)


def test_the_bandwidth_share_is_what_a_step_reads_in_its_time(report: dict[str, Any], model: LanguageModel) -> None:
    network = model.network
    embedding = network.get_input_embeddings().weight
    weights = sum(parameter.nbytes for parameter in network.parameters()) - embedding.nbytes + embedding[0].nbytes
    for length in LENGTHS:
        read = weights + (length + 4) * model.facts.kv_bytes_per_token  # the middle one of eight steps
        rate = read / (rows(report, "decode", length)["ours"]["median_ms"] / 1000)
        share = rate / report["machine"]["vector_bytes_per_second"]
        assert report["ratios"]["bandwidth_share"][str(length)] == pytest.approx(share)


def test_spreads_hold_their_medians(report: dict[str, Any]) -> None:
    for row in report["rows"]:
        assert 0 < row["low_ms"] <= row["median_ms"] <= row["high_ms"]
        assert row["rounds"] == 2
    assert report["rounds"]["kept"] == 10
    for spreads in report["spreads"].values():
        assert all(0 < low <= high for low, high in spreads.values())


def test_attention_bytes_are_counted(report: dict[str, Any], model: LanguageModel) -> None:
    facts = model.facts
    for length in LENGTHS:
        told = report["attention_bytes"][str(length)]
        queries = (length + 8) * facts.layers * facts.heads * facts.head_size * facts.value_bytes
        assert told["ours"] == queries
        assert told["maps"] == map_bytes(facts, length, 8)
        assert report["ratios"]["attention_bytes_vs_maps"][str(length)] == told["ours"] / told["maps"]


def test_the_formula_for_maps_counts_what_eager_attention_keeps(folder: Path, model: LanguageModel) -> None:
    library = Library(folder, model)
    assert library.eager(paper(model.text, 16)).kept_bytes == map_bytes(model.facts, 16, 1)
    assert map_bytes(model.facts, 16, 3) - map_bytes(model.facts, 16, 1) == (17 + 18) * 3 * 4 * 4


def test_the_machine_is_described(report: dict[str, Any]) -> None:
    machine = report["machine"]
    assert machine["threads"] >= 1 and machine["dtype"] == "float32" and machine["device"] == "cpu"
    assert {"date", "cores", "load_average", "busy_elsewhere", "versions"} <= machine.keys()


def test_all_sides_write_as_much_whatever_the_model_would_end_with(folder: Path, model: LanguageModel) -> None:
    text = paper(model.text, 16)
    library, ours = Library(folder, model), Ours(model)
    first = tiny.sit("llama", Settings(text, mode="raw", max_new_tokens=20))
    assert len(ours.write(text, 20).gaps) == len(library.generate(text, 20).gaps) == 19
    assert len(first.chosen) <= 20
    assert len(ours.write_together([text, paper(model.text, 20)], 20).gaps) == 19


@pytest.mark.parametrize("tokens", [4, 16, 77])
def test_a_paper_has_exactly_so_many_tokens(model: LanguageModel, tokens: int) -> None:
    text = paper(model.text, tokens)
    assert len(model.text.prompt(Settings(text, mode="raw")).tokens) == tokens


def test_sides_take_turns_after_a_warm_up_and_nothing_is_collected_meanwhile() -> None:
    order: list[str] = []

    def side(name: str) -> Timing:
        assert not gc.isenabled()
        order.append(name)
        return Timing(float(len(order)))

    counts = dict.fromkeys(("kept", "repeated", "disturbed"), 0)
    timings = alternate({"a": lambda: side("a"), "b": lambda: side("b")}, 3, counts)
    assert gc.isenabled()
    assert "".join(order) == "baabbaab"
    assert median(timing.ttft for timing in timings["a"]) == 6
    assert len(timings["b"]) == 3
    assert counts == {"kept": 3, "repeated": 0, "disturbed": 0}


def test_a_disturbed_round_is_measured_again_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = iter([False, True, True, True, True])

    class Busy:
        def __init__(self) -> None:
            self.disturbing = next(busy)

    monkeypatch.setattr(measure, "Elsewhere", Busy)
    number = iter(range(100))
    counts = dict.fromkeys(("kept", "repeated", "disturbed"), 0)
    timings = alternate({"a": lambda: Timing(next(number))}, 2, counts)
    assert [timing.ttft for timing in timings["a"]] == [1, 4]  # 0 warmed up; 2 and 3 were disturbed, and 4 as well
    assert counts == {"kept": 2, "repeated": 2, "disturbed": 1}


def test_others_are_seen_by_the_processors_own_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """In ten seconds all cores worked 13 seconds, eleven of them for us: eight here, three in children."""
    clock, busy = iter([100.0, 110.0]), iter([50.0, 63.0])
    own = iter([(5.0, 1.0, 1.0, 0.0, 0.0), (12.0, 2.0, 3.0, 1.0, 10.0)])
    monkeypatch.setattr(quiet, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(quiet.os, "times", lambda: next(own))
    monkeypatch.setattr(quiet.time, "monotonic", lambda: next(clock))
    assert Elsewhere().cores == pytest.approx(0.2, abs=0.01)


def test_where_nobody_tells_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "_busy_seconds", lambda: None)
    elsewhere = Elsewhere()
    assert elsewhere.cores is None and not elsewhere.disturbing


def test_what_to_doubt_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure, "free_bytes", lambda device: 1000)
    monkeypatch.setattr(measure, "TOGETHER", 2)
    monkeypatch.setattr(Elsewhere, "cores", 0.73)
    assert main(["bench", "--model", str(folder), "--quick", "--prompt-tokens", "16", "--device", "cpu"]) == 0
    printed = capsys.readouterr()
    assert "eager attention with all its maps at 16 prompt tokens" in printed.out
    assert "lower is better, below 1 ours is" in printed.out
    assert printed.err.endswith(say("command.bench.busy", kept=4, repeated=4, disturbed=4) + "\n")


@pytest.mark.parametrize("given", ["", "a", "16,,24", "0", "16,90", "-5"])
def test_impossible_lengths_are_refused(folder: Path, given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--model", str(folder), "--quick", f"--prompt-tokens={given}", "--device", "cpu"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1


def test_a_class_is_thirty() -> None:
    assert TOGETHER == 30
