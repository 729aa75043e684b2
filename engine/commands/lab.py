"""`python -m engine lab [NAME]`: measures a remedy on this machine, as its page does; without a name, lists them."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import Any

from engine.commands import add_model_arguments, open_model
from engine.labs import LABS
from engine.labs.jobs import known, measured
from engine.labs.recorded import record
from engine.settings import Refusal
from engine.words import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which lab, and with which model."""
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help=say("command.lab.name"))
    add_model_arguments(parser)
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.add_argument("--record", action="store_true", help=say("command.lab.record"))


def run(options: argparse.Namespace) -> int:
    """Raises `Refusal`: `no_lab`, those of loading a model. A piece that cannot be measured is told and left out."""
    if not options.name:
        stages = {lab.name: say(f"command.lab.stage_{lab.stage}", options.lang) for lab in LABS.values()}
        print("\n".join(f"{name:<16} {stage}" for name, stage in stages.items()))
        return 0
    lab = known(options.name)
    told = report(lab.name, options)
    if options.record:
        print(record(lab, told), file=sys.stderr)
    if options.json:
        print(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        print("\n".join(_lines(told["figures"])))
    return 0


def report(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What `--json` prints: `{"lab", "model", "machine", "taken", "plan", "results", "figures"}`."""
    from engine.jobs import machine

    lab = known(name)
    model = open_model(options.model, options.device, options.dtype)
    results: dict[str, dict[str, Any]] = {}
    plan = lab.plan(model)
    pieces = [piece["piece"] for piece in plan]
    for number, piece in enumerate(pieces):
        print(f"{number + 1}/{len(pieces)} {piece} …", file=sys.stderr, flush=True)
        try:
            results[piece] = measured(lab, model, piece)
        except Refusal as refusal:
            print(say(f"errors.{refusal.code}", options.lang, **refusal.values), file=sys.stderr)
    return {
        "lab": name, "model": model.facts.model, "machine": machine.identity(model.facts),
        "taken": datetime.now(UTC).isoformat(timespec="seconds"), "plan": plan, "results": results,
        "figures": lab.figures(results),
    }  # fmt: skip


def _lines(figures: Any, indent: str = "") -> list[str]:
    """Figures as lines: names and values, what is inside one indented."""
    if isinstance(figures, list):
        figures = {str(number): value for number, value in enumerate(figures)}
    lines: list[str] = []
    for name, value in figures.items():
        if isinstance(value, dict | list) and value:
            lines += [f"{indent}{name}", *_lines(value, f"{indent}  ")]
        else:
            lines.append(f"{indent}{name}: {value:.4g}" if isinstance(value, float) else f"{indent}{name}: {value}")
    return lines
