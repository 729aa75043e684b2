"""An architecture from a run's facts alone: which family, which MLP width would have exactly that many parameters?"""

from __future__ import annotations

from typing import Any

from engine.plan.architecture import Architecture, agrees
from engine.plan.families import FAMILIES
from engine.plan.layers import build
from engine.settings import Refusal
from engine.trace import Facts


def solve(facts: Facts) -> Architecture:
    """Tries every family whose layers are all told by the facts, the embedding tied and not, and keeps those where a
    whole MLP width gives the parameters exactly. Raises `Refusal("facts_ambiguous")` when there is none, or when those
    that fit differ in the work a token takes by more than a hundredth."""
    found = [one for name in FAMILIES for tied in (True, False) if (one := _fits(facts, name, tied)) is not None]
    works = [sum(layer.mlp + layer.projections for layer in one.layers) for one in found]
    if not works or max(works) > 1.01 * min(works):
        raise Refusal("facts_ambiguous", model=facts.model)
    return min(found, key=lambda one: one.intermediate % 64)


def _fits(facts: Facts, name: str, tied: bool) -> Architecture | None:
    config: dict[str, Any] = {
        "model_type": name,
        "num_hidden_layers": facts.layers,
        "num_attention_heads": facts.heads,
        "num_key_value_heads": facts.kv_heads,
        "head_dim": facts.head_size,
        "hidden_size": facts.hidden_size,
        "vocab_size": facts.vocabulary,
        "max_position_embeddings": facts.context,
        "tie_word_embeddings": tied,
        "layer_types": [f"{kind}_attention" for kind in facts.layer_kinds],
        "sliding_window": facts.window or None,
        "torch_dtype": facts.dtype,
    }
    family = FAMILIES[name]
    if family.experts or family.mixer != "attention":
        return None
    one, two = (build(config | {"intermediate_size": width}) for width in (1, 2))
    step = two.parameters - one.parameters
    width, rest = divmod(facts.parameters - one.parameters, step)
    if rest or width < 0:
        return None
    made = build(config | {"intermediate_size": width + 1})
    return made if agrees(made, facts) else None
