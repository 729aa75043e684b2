"""The kept configs: each has an origin, says what was published of it, and is read as the library reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from engine.plan import memory
from engine.plan.architecture import Architecture
from engine.plan.configs import FOLDER, configs, from_disk, kept
from engine.plan.fields import MAX_CONFIG_BYTES, parse
from engine.plan.formats import BFLOAT16
from engine.plan.read import of_run, read
from engine.plan.solve import solve
from engine.settings import Refusal
from engine.trace import Facts
from engine.weights.catalogue import MODELS

NAMES = tuple(configs())


def test_there_is_a_file_for_every_row_and_a_row_for_every_file() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == {*NAMES, "index"}
    assert len(NAMES) >= 20 and set(MODELS) <= set(NAMES)
    assert all(origin.title and origin.source and origin.version for origin in configs().values())


@pytest.mark.parametrize("name", [name for name in NAMES if configs()[name].parameters])
def test_the_formula_gives_the_published_count(name: str) -> None:
    """To the last parameter; where the count was published rounded, to its last digit."""
    published = configs()[name].parameters
    assert configs()[name].published
    step = next(10**power for power in range(12, -1, -1) if published % 10**power == 0)
    assert abs(read(kept(name)).parameters - published) < max(step, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_library_builds_as_many(name: str) -> None:
    config = kept(name)
    usual = {"num_experts_per_tok": config["num_experts_per_tok"]} if "num_experts_per_tok" in config else {}
    theirs = AutoConfig.for_model(**{name: value for name, value in (config | usual).items() if name != "torch_dtype"})
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(theirs)
    parameters = sum({id(one): one.numel() for one in network.parameters()}.values())
    corrections = sum(one.numel() for name, one in network.named_buffers() if "correction_bias" in name)
    assert read(config).parameters == parameters + corrections


@pytest.mark.parametrize("name", [name for name in NAMES if configs()[name].source.startswith("transformers")])
def test_defaults_of_a_class_are_those_of_the_library_installed(name: str) -> None:
    origin, config = configs()[name], kept(name)
    assert origin.version == transformers.__version__
    theirs = getattr(transformers, origin.source.rpartition(" ")[2])().to_dict()
    assert {field: theirs[field] for field in config} == config


def facts_of(made: Architecture, name: str) -> Facts:
    first = made.first
    return Facts(
        model=name, weights_sha256="", layers=len(made.layers), heads=first.heads, kv_heads=first.kv_heads,
        head_size=first.head_size, hidden_size=made.hidden, vocabulary=made.vocabulary, context=made.context,
        layer_kinds=tuple("sliding" if layer.window else "full" for layer in made.layers), window=made.window,
        parameters=made.parameters, weight_bytes=2 * made.parameters, value_bytes=2, dtype="bfloat16",
        dtype_reason="asked", device="cpu", device_name="", threads=1, versions=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", [n for n in NAMES if all(one.heads and not one.experts for one in read(kept(n)).layers)]
)
def test_facts_alone_lead_to_the_same_work_or_to_a_refusal(name: str) -> None:
    made = read(kept(name))
    facts = facts_of(made, "a folder of mine")
    assert of_run(facts) == made
    try:
        found = solve(facts)
    except Refusal as refusal:
        assert refusal.code == "facts_ambiguous"
        return
    assert found.parameters == made.parameters
    ours, theirs = (sum(layer.projections + layer.mlp for layer in one.layers) for one in (made, found))
    assert theirs == pytest.approx(ours, rel=0.01)
    assert memory.kv_bytes(found, 777, 1, BFLOAT16) == memory.kv_bytes(made, 777, 1, BFLOAT16)


def test_a_folder_is_read_without_anything_in_it_being_run(tmp_path: Path) -> None:
    (tmp_path / "modeling.py").write_text("raise SystemExit", "utf-8")
    with pytest.raises(Refusal, match="config_unreadable"):
        from_disk(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(kept("gpt2")), "utf-8")
    assert from_disk(tmp_path) == from_disk(tmp_path / "config.json") == kept("gpt2")
    (tmp_path / "config.json").write_bytes(b" " * (MAX_CONFIG_BYTES + 1))
    with pytest.raises(Refusal, match="config_too_large"):
        from_disk(tmp_path)


GOOD: dict[str, Any] = kept("qwen3-30b-a3b")
HOSTILE: list[tuple[str, Any, str]] = [
    ("num_hidden_layers", None, "config_missing"),
    ("num_hidden_layers", -1, "config_range"),
    ("num_hidden_layers", 0, "config_range"),
    ("num_hidden_layers", 10**30, "config_range"),
    ("num_hidden_layers", 10**5000, "config_range"),
    ("num_hidden_layers", "32", "config_not_whole"),
    ("num_hidden_layers", 32.5, "config_not_whole"),
    ("num_hidden_layers", float("nan"), "config_not_whole"),
    ("num_hidden_layers", float("inf"), "config_not_whole"),
    ("num_hidden_layers", True, "config_not_whole"),
    ("num_hidden_layers", [48], "config_not_whole"),
    ("hidden_size", {}, "config_not_whole"),
    ("vocab_size", "many", "config_not_whole"),
    ("num_key_value_heads", 5, "config_indivisible"),
    ("num_experts_per_tok", 129, "config_more_than"),
    ("tie_word_embeddings", "yes", "config_not_flag"),
    ("layer_types", ["full_attention"], "config_length"),
    ("layer_types", ["full_attention"] * 47 + ["<b>"], "config_unknown_kind"),
    ("layer_types", ["full_attention"] * 47 + [{}], "config_unknown_kind"),
    ("layer_types", "full_attention", "config_not_list"),
    ("mlp_only_layers", [10**40, "x"], "config_not_list"),
    ("model_type", "bert", "config_unknown_family"),
    ("model_type", ["llama"], "config_unknown_family"),
    ("model_type", "<script>alert(1)</script>" * 1000, "config_unknown_family"),
]


@pytest.mark.parametrize(("field", "value", "code"), HOSTILE, ids=lambda value: str(type(value).__name__))
def test_a_field_that_is_wrong_is_named(field: str, value: Any, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        read(GOOD | {field: value})
    assert caught.value.code == code
    assert field in (caught.value.values["field"], caught.value.values.get("other"))
    assert all(len(str(told)) < 1000 for told in caught.value.values.values())
    assert "<" not in str(caught.value.values.get("value"))


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "config_not_json"), ("[1, 2]", "config_not_object"), ("nonsense", "config_not_json"),
     ("[" * 100_000, "config_not_json"), ('{"a":' * 100_000, "config_not_json"), ("null", "config_not_object"),
     ("{" + " " * 10_000_000 + "}", "config_too_large"), ("1" * 10_000, "config_not_json")],
    ids=["empty", "list", "words", "brackets", "braces", "null", "ten megabytes", "a long number"],
)  # fmt: skip
def test_a_text_that_is_no_config_is_refused(text: str, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse(text)
    assert caught.value.code == code


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(sorted({field for name in NAMES for field in kept(name)})), values, max_size=3),
)
def test_whatever_a_config_holds_it_is_read_or_refused(name: str, changes: dict[str, Any]) -> None:
    try:
        made = read(kept(name) | changes)
    except Refusal as refusal:
        assert refusal.code.startswith("config_")
        return
    assert made.parameters > 0 and memory.kv_bytes(made, 100, 1, BFLOAT16) >= 0
