"""`python -m engine schema`: the JSON Schema of one event, as in `docs/trace.schema.json`."""

from __future__ import annotations

import argparse
import json

from engine.trace import codec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(options: argparse.Namespace) -> int:
    print(json.dumps(codec.schema(), ensure_ascii=False, indent=2))
    return 0
