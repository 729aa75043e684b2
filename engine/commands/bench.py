"""`python -m engine bench`: ours against the library, on this machine, recording everything."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from engine.commands import add_model_arguments, open_model
from engine.settings import Refusal
from engine.words import say

if TYPE_CHECKING:
    from engine.bench.measure import Report, Row

LENGTHS = "128,1024,2048"
ROUNDS = 7
TOKENS = 32
"""Tokens per answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to measure, how often, and where."""
    parser.add_argument("--prompt-tokens", default=LENGTHS, metavar="N,N,…",
                        help=say("command.bench.prompt_tokens_help", default=LENGTHS))  # fmt: skip
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=say("command.bench.rounds", default=ROUNDS))
    parser.add_argument("--quick", action="store_true", help=say("command.bench.quick"))
    add_model_arguments(parser)
    parser.add_argument("--json", action="store_true", help=say("cli.json"))


def run(options: argparse.Namespace) -> int:
    """Raises `Refusal` for lengths and rounds out of range, and those of loading a model."""
    model = open_model(options.model, options.device, options.dtype)
    rounds, tokens = (2, 8) if options.quick else (options.rounds, TOKENS)
    lengths = _lengths(options.prompt_tokens, model.facts.context - tokens)
    if not 1 <= rounds <= 1000:
        raise Refusal("out_of_range", field="--rounds", least=1, most=1000)

    from engine import weights
    from engine.bench.measure import Bench
    from engine.bench.sides import Library

    library = Library(weights.resolve(options.model).folder, model)
    report = Bench(model, library, rounds, tokens, _progress).run(lengths)
    print(json.dumps(report.to_plain(), ensure_ascii=False, indent=2) if options.json else table(report, options.lang))
    if report.rounds["disturbed"]:
        print(say("command.bench.busy", options.lang, **report.rounds), file=sys.stderr)
    return 0


def _lengths(given: str, most: int) -> list[int]:
    try:
        lengths = sorted({int(number) for number in given.split(",")})
    except ValueError:
        lengths = []
    if not lengths or lengths[0] < 4 or lengths[-1] > most:
        raise Refusal("bad_lengths", given=given, least=4, most=most)
    return lengths


def _progress(ratio: str, prompt_tokens: int) -> None:
    print(f"{ratio} {prompt_tokens:,} …", file=sys.stderr, flush=True)


def table(report: Report, lang: str = "en") -> str:
    """The ratios, what each says and which side is better; below them the milliseconds."""
    from engine.bench.measure import RATIOS

    machine = report.machine
    lines = [say("command.bench.about", lang, rounds=max(row.rounds for row in report.rows), threads=machine["threads"],
                 dtype=machine["dtype"], device=machine["device_name"])]  # fmt: skip
    for name, more_is_better in RATIOS.items():
        better = say(f"command.bench.{'higher' if more_is_better else 'lower'}", lang)
        lines += ["", f"{say(f'command.bench.{name}', lang)} ({better})"]
        for length, ratio in report.ratios[name].items():
            lines.append(f"  {int(length):>6,}  {ratio:.3g}{_spread(report.spreads[name].get(length))}")
    lines += ["", say("command.bench.milliseconds", lang)]
    lines += [_milliseconds(row, lang) for row in report.rows]
    if report.skipped:
        lines += ["", say("command.bench.skipped", lang, lengths=", ".join(f"{n:,}" for n in report.skipped))]
    return "\n".join(lines)


def _spread(spread: tuple[float, float] | None) -> str:
    return "" if spread is None else f"  [{spread[0]:.3g} – {spread[1]:.3g}]"


def _milliseconds(row: Row, lang: str) -> str:
    who = f"{say(f'command.bench.what_{row.what}', lang)}, {say(f'command.bench.side_{row.side}', lang)}"
    return f"  {row.prompt_tokens:>6,}  {row.median_ms:>9,.1f}  [{row.low_ms:,.1f} – {row.high_ms:,.1f}]  {who}"
