"""`python -m engine measure`: measures this machine with a model, as the pages *Why two stages* and *Waiting* do."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.commands import add_model_arguments, open_model
from engine.machine.recorded import QUIET, kept, record
from engine.machine.results import fits_of, subject
from engine.settings import Refusal
from engine.words import say

if TYPE_CHECKING:
    from engine.model import LanguageModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """With which model; what to keep and print."""
    add_model_arguments(parser)
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.add_argument("--record", action="store_true", help=say("command.measure.record"))


def run(options: argparse.Namespace) -> int:
    """Raises the refusals of loading a model. A piece that cannot be measured is told and left out."""
    model = open_model(options.model, options.device, options.dtype)
    before = _before(model) if options.record else {}
    told = report(model, before, options.lang)
    if options.record:
        print(record(told), file=sys.stderr)
    if options.json:
        print(json.dumps({**told, "fits": fits_of(told["results"])}, ensure_ascii=False, indent=2))
    else:
        print("\n".join(f"{name:<28} {_seconds(result):.3g} s" for name, result in told["results"].items()))
    return 0


def _before(model: LanguageModel) -> Mapping[str, dict[str, Any]]:
    """What the recording holds already, if it is of this very machine, model and versions."""
    file = kept(model.facts.model)
    same = file and (file["machine"], file["versions"]) == (subject(model.facts), dict(model.facts.versions))
    return file["results"] if file and same else {}


def report(model: LanguageModel, before: Mapping[str, dict[str, Any]], lang: str = "en") -> dict[str, Any]:
    """`{"model", "machine", "versions", "taken", "plan": names of the pieces, "disturbed": cores that others kept busy
    during the pieces they disturbed, "results": {name: result with "busy" and "taken"}}`."""
    from engine.machine.pieces import pieces, quietest

    plan: list[str] = []
    results: dict[str, dict[str, Any]] = {}
    for name, work in pieces(model):
        plan.append(name)
        print(f"{len(plan)} {name} …", file=sys.stderr, flush=True)
        try:
            results[name] = quietest(work, before.get(name))
        except Refusal as refusal:
            print(say(f"errors.{refusal.code}", lang, **refusal.values), file=sys.stderr)
    return {
        "model": model.facts.model, "machine": subject(model.facts), "versions": dict(model.facts.versions),
        "taken": max((result["taken"] for result in results.values()), default=None), "plan": plan,
        "disturbed": disturbed(results), "results": results,
    }  # fmt: skip


def disturbed(results: Mapping[str, dict[str, Any]]) -> dict[str, float]:
    """Cores that others kept busy, of the results during which they kept more than `QUIET`."""
    return {name: result["busy"] for name, result in results.items() if (result["busy"] or 0) > QUIET}


def _seconds(result: Mapping[str, Any]) -> float:
    """What a result is about, in seconds: the wait, the pass, or the best repetition."""
    return float(next(result[key] for key in ("ttft", "timed", "best") if key in result))
