"""The command line: `python -m engine COMMAND …`. Each module of `engine/commands` is one command.

Only the chosen command's module is imported, so that `replay` and `schema` need no torch. Answers go to standard
output and nothing else does; a refusal is one sentence on standard error and exit status 2.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from engine import commands
from engine.settings import Refusal
from engine.words import say


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a Windows console's own encoding knows no Chinese
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    options = _parser(arguments).parse_args(arguments)
    try:
        return int(options.command(options))
    except Refusal as refusal:
        print(say(f"errors.{refusal.code}", options.lang, **refusal.values), file=sys.stderr)
        return 2


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    asked = next((word for word in arguments if not word.startswith("-")), "")
    parser = argparse.ArgumentParser(prog="python -m engine", description=say("cli.about"))
    choices = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in sorted(module.name for module in iter_modules(commands.__path__)):
        about = say(f"cli.{name}")
        command = choices.add_parser(name, help=about, description=about)
        command.add_argument("--lang", choices=("en", "zh"), default="en", help=say("cli.lang"))
        if name == asked:
            module = import_module(f"engine.commands.{name}")
            module.add_arguments(command)
            command.set_defaults(command=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
