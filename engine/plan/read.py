"""An architecture read: from a `config.json`, or from a run's facts. A config is data from a stranger: every field is
checked before it is used, and what is not understood is refused by name, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.plan.architecture import Architecture, agrees
from engine.plan.configs import configs, kept
from engine.plan.layers import build
from engine.plan.solve import solve
from engine.settings import Refusal
from engine.trace import Facts


def read(config: Mapping[str, Any]) -> Architecture:
    """The architecture a config describes. A nested `text_config` is looked into; other parts (vision, audio) are not
    counted. Raises `Refusal`: `config_…` with the field that is wrong."""
    return build(config)


def of_run(facts: Facts, config: Mapping[str, Any] | None = None) -> Architecture:
    """The architecture behind a run's facts: of `config` where it is at hand, else of the kept config that says the
    same, else worked out from the counts. Raises `Refusal("facts_ambiguous")` where they leave it open, and for a
    config that is another model's."""
    if config is not None:
        architecture = read(config)
        if not agrees(architecture, facts):
            raise Refusal("config_of_another", model=facts.model)
        return architecture
    for name in configs():
        architecture = read(kept(name))
        if agrees(architecture, facts):
            return architecture
    return solve(facts)
