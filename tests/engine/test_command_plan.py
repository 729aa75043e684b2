"""`python -m engine plan`: the figures it prints, against hand-made sums, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.__main__ import main
from engine.commands.plan import spelt
from engine.plan import largest_context, over_time, plan, terms
from engine.plan.configs import configs, kept
from engine.plan.formats import CACHES, WEIGHTS, cache_format, readable, weight_format
from engine.plan.read import read
from engine.settings import Refusal

GIB = 1024**3


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["plan", "--json", *arguments]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert isinstance(shown, dict)
    return shown


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["plan", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (sentence,) = shown.err.splitlines()
    return sentence


def test_the_figure_everyone_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    shown = planned(capsys, "--model", "qwen2-72b", "--context", "131072", "--dtype", "bf16", "--kv-dtype", "bf16")
    assert shown["kv_bytes"] == shown["kv_bytes_upper"] == 42_949_672_960
    assert shown["kv_bytes_per_token"] == 327_680
    assert shown["weights_bytes"] == 2 * 72_706_203_648
    assert shown["total_bytes"] == shown["weights_bytes"] + shown["kv_bytes"] + shown["activation_bytes"]
    assert shown["facts"]["kv_heads"] == 8 and "131,072" in shown["formulas"]["kv"]


@pytest.mark.parametrize(
    ("field", "of_kv_heads", "expected"), [("n_head_kv", 64, 343_597_383_680), ("num_kv_heads", 1, 5_368_709_120)]
)
def test_other_names_of_the_kv_heads(
    field: str, of_kv_heads: int, expected: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    config = {name: value for name, value in kept("qwen2-72b").items() if name != "num_key_value_heads"}
    file.write_text(json.dumps(config | {field: of_kv_heads}), "utf-8")
    assert planned(capsys, "--model", str(file), "--context", "131072")["kv_bytes"] == expected
    assert planned(capsys, "--model", str(tmp_path), "--context", "131072")["kv_bytes"] == expected


def test_the_bundled_model_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    shown = planned(capsys, "--context", "1000", "--batch", "3", "--dtype", "float32")
    assert shown["weights_bytes"] == 4 * 134_515_008
    assert shown["kv_bytes"] == 3 * 1000 * 30 * 3 * (64 + 64) * 4
    assert shown["activation_bytes"] == 3 * 1000 * (4 * 576 + 3 * 1536) * 4
    assert shown["differs"] == []


def test_bounds_where_implementations_differ(capsys: pytest.CaptureFixture[str]) -> None:
    gemma = planned(capsys, "--model", "gemma-3-270m", "--context", "8192")
    assert gemma["kv_bytes"] == (15 * 511 + 3 * 8192) * 512 * 2 and gemma["kv_bytes_upper"] == 18 * 8192 * 512 * 2
    assert gemma["differs"] == ["window"]
    deepseek = planned(capsys, "--model", "deepseek-v3", "--context", "100")
    assert deepseek["kv_bytes"] == 100 * 61 * 576 * 2 and deepseek["kv_bytes_upper"] == 100 * 61 * 128 * (192 + 128) * 2
    assert deepseek["facts"]["active_parameters"] == 37_552_297_472  # 36.6 billion and the embedding
    hybrid = planned(capsys, "--model", "qwen3-next-80b-a3b", "--context", "1000")
    state = 36 * (32 * 128 * 128 + 8192 * 4)
    assert hybrid["kv_bytes"] == 1000 * 12 * 2 * 512 * 2 + state * 2
    assert hybrid["kv_bytes_upper"] == 1000 * 12 * 2 * 512 * 2 + state * 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model", "no-such-model"], "smollm2"), (["--model", "x\0y"], "smollm2"), (["--model", "/"], "config.json"),
        (["--context", "0"], "--context"), (["--context", "many"], "--context"), (["--context", "1e400"], "--context"),
        (["--context", "9" * 5000], "--context"), (["--batch", "-3"], "--batch"), (["--batch", "nan"], "--batch"),
        (["--context", "8193"], "max_position_embeddings"), (["--dtype", "int3"], "dtype"),
        (["--kv-dtype", "mxfp4"], "kv-dtype"), (["--overhead", "-1"], "--overhead"),
    ],
    ids=lambda value: value[1][:12] if isinstance(value, list) else "",
)  # fmt: skip
def test_what_it_refuses_is_one_sentence(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("content", "told"), [("{}", "num_hidden_layers"), ("[]", "JSON"), ("{", "JSON"), ('{"model_type": "t5"}', "t5")]
)
def test_a_file_it_refuses_is_one_sentence(
    content: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(content, "utf-8")
    assert told in refused(capsys, "--model", str(tmp_path / "config.json"))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "name", ["smollm2-135m-instruct", "gemma-3-270m", "deepseek-v3", "jamba-v0.1", "llama-4-scout"]
)
def test_people_can_read_it_too(name: str, lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--model", name, "--dtype", "int4", "--kv-dtype", "int4", "--lang", lang]) == 0
    shown = capsys.readouterr().out
    assert "GiB" in shown or "MiB" in shown
    assert ("位" in shown) == (lang == "zh")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(tuple(configs())),
    st.sampled_from(tuple(WEIGHTS)),
    st.sampled_from(tuple(CACHES)),
    st.integers(1, 1024),
    st.integers(1, 9),
)
def test_the_formulas_sum_to_the_figures(name: str, weights: str, kv: str, context: int, batch: int) -> None:
    made = plan(read(kept(name)), context, batch, weight_format(weights), cache_format(kv), 5)
    sums = dict.fromkeys(("weights", "kv", "activation"), 0)
    for term in terms(made):
        sums[term.part] += term.bytes
        assert spelt(term, "en") and spelt(term, "zh")
    assert sums == {"weights": made.weights_bytes, "kv": made.kv_bytes, "activation": made.activation_bytes}
    assert made.kv_bytes <= made.kv_bytes_upper and made.activation_bytes <= made.activation_bytes_upper
    assert made.total_bytes == sum(sums.values()) + 5 <= made.total_bytes_upper


@pytest.mark.parametrize("name", ["smollm2-135m-instruct", "gemma-3-270m", "qwen2-72b", "deepseek-v3"])
def test_the_largest_context_fits_and_one_more_does_not(name: str) -> None:
    made, weights, kv = read(kept(name)), weight_format("bf16"), cache_format("bf16")
    empty = plan(made, 1, 1, weights, kv).total_bytes
    room = empty + (plan(made, 4000, 1, weights, kv).total_bytes - empty) // 2
    found = largest_context(made, 1, weights, kv, room)
    assert 1 <= found < 4000
    assert plan(made, found, 1, weights, kv).total_bytes <= room < plan(made, found + 1, 1, weights, kv).total_bytes
    assert largest_context(made, 1, weights, kv, empty - 1) == 0
    assert largest_context(made, 1, weights, kv, 10**18) == made.context


def test_over_time_activations_peak_first_and_the_cache_last() -> None:
    made = plan(read(kept("smollm2-135m-instruct")), 1000, 2, weight_format("bf16"), cache_format("bf16"))
    rows = list(over_time(made, 500))
    assert [row[0] for row in rows] == ["prefill"] * 61 + ["decode"] * 60
    assert max(rows, key=lambda row: row[3])[0] == "prefill"
    assert rows[60][2] == made.kv_bytes and rows[-1][2] == max(row[2] for row in rows) == made.kv_bytes * 3 // 2
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1024**2 - 1, "1,024.0 KiB"),
     (42_949_672_960, "40.0 GiB"), (GIB, "1.0 GiB"), (10**24, "867,361.7 EiB")],
)  # fmt: skip
def test_bytes_are_readable(count: int, shown: str) -> None:
    assert readable(count) == shown


def test_formats_have_short_names() -> None:
    assert weight_format("FP32").name == "float32" and cache_format("bf16").bits == 16
    with pytest.raises(Refusal, match="unknown_format"):
        weight_format("double")
