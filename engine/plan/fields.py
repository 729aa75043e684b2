"""Reading the fields of a model's config, which comes from a stranger: bounded, checked, refused by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.settings import Refusal

MAX_CONFIG_BYTES = 1_000_000
"""Bound on a config file. Published ones have a few kilobytes."""

NAMES = {
    "num_hidden_layers": ("n_layer", "num_layers", "n_layers"),
    "num_attention_heads": ("n_head", "num_heads", "n_heads"),
    "hidden_size": ("n_embd", "d_model", "dim"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "n_kv_heads"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size", "d_ff"),
    "max_position_embeddings": ("n_positions", "n_ctx", "max_sequence_length", "seq_length"),
    "num_local_experts": ("num_experts", "n_routed_experts"),
    "num_experts_per_tok": ("num_experts_per_token", "moe_topk"),
    "dtype": ("torch_dtype",),
}
"""A field's name today, and the older or other names it goes by."""

MOST = {
    "num_hidden_layers": 2_000,
    "num_attention_heads": 4_096,
    "num_key_value_heads": 4_096,
    "hidden_size": 1_000_000,
    "vocab_size": 50_000_000,
    "num_local_experts": 100_000,
    "max_position_embeddings": 1_000_000_000,
}
"""Bounds far above any model; the others have `MOST_OTHER`."""
MOST_OTHER = 10_000_000


def parse(text: str | bytes) -> dict[str, Any]:
    """A config from the text of its file. Raises `Refusal`: `config_too_large`, `config_not_json`,
    `config_not_object`."""
    if len(text) > MAX_CONFIG_BYTES:
        raise Refusal("config_too_large", bytes=f"{len(text):,}", bound=f"{MAX_CONFIG_BYTES:,}")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):  # a deep nest of brackets is no config either
        raise Refusal("config_not_json") from None
    if not isinstance(config, dict):
        raise Refusal("config_not_object")
    return config


class Fields:
    """The fields of one config, by today's names."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self.assumed: list[str] = []
        """Fields that were not there and whose usual value was taken."""

    def __contains__(self, name: str) -> bool:
        return self.raw(name) is not None

    def raw(self, name: str) -> Any:
        """The field as it stands, under any of its names; None where it is absent or null."""
        for known in (name, *NAMES.get(name, ())):
            if self._config.get(known) is not None:
                return self._config[known]
        return None

    def written(self, name: str) -> str:
        """The name under which the config has the field."""
        return next((n for n in (name, *NAMES.get(name, ())) if self._config.get(n) is not None), name)

    def whole(self, name: str, usual: int | None = None, least: int = 1) -> int:
        """A whole number within bounds, or `usual` where it is absent. Raises `Refusal`: `config_missing`,
        `config_not_whole`, `config_range`."""
        value, most = self.raw(name), MOST.get(name, MOST_OTHER)
        if value is None:
            if usual is None:
                raise Refusal("config_missing", field=name)
            return usual
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refusal("config_not_whole", field=self.written(name), value=cut(value))
        if not least <= value <= most:
            raise Refusal("config_range", field=self.written(name), value=cut(value), least=least, most=f"{most:,}")
        return value

    def flag(self, name: str, usual: bool = False) -> bool:
        """A yes or no. Raises `Refusal("config_not_flag")`."""
        value = self.raw(name)
        if value is None:
            return usual
        if not isinstance(value, bool):
            raise Refusal("config_not_flag", field=name, value=cut(value))
        return value

    def numbers(self, name: str, most: int) -> list[int] | None:
        """A list of small whole numbers. Raises `Refusal("config_not_list")`."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > most or not all(type(one) is int for one in value):
            raise Refusal("config_not_list", field=name)
        return value

    def words(self, name: str, count: int, known: Sequence[str]) -> list[str] | None:
        """A list of `count` words, each a known one. Raises `Refusal`: `config_not_list`, `config_length`,
        `config_unknown_kind`."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise Refusal("config_not_list", field=name)
        if len(value) != count:
            raise Refusal("config_length", field=name, found=len(value), expected=count)
        for one in value:
            if one not in known:
                raise Refusal("config_unknown_kind", field=name, value=cut(one))
        return value

    def text(self, name: str) -> str:
        value = self.raw(name)
        return cut(value) if isinstance(value, str) else ""


def cut(value: object) -> str:
    """A stranger's value as a few harmless characters of a sentence. Of a number with thousands of digits only its
    length is told (and Python would refuse to write it out)."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 100:
        return f"~10^{value.bit_length() * 3 // 10}"
    shown = type(value).__name__ if isinstance(value, (dict, list)) else str(value)[:60]
    return re.sub(r"[^\w.,:/+\- ]", "?", shown)[:40]
