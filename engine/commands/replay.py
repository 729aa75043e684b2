"""`python -m engine replay FILE [--json]`: the summary of a trace, the same as `run` gave. Needs no model."""

from __future__ import annotations

import argparse
from pathlib import Path
from unicodedata import category

from engine.settings import Refusal
from engine.trace import file as tracefile
from engine.trace.summary import Summary, summary
from engine.words import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file and the form of the answer."""
    parser.add_argument("file", type=Path, help=say("cli.file"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))


def run(options: argparse.Namespace) -> int:
    """Raises `Refusal` for a file that cannot be read or is no trace."""
    try:
        file = tracefile.read(options.file)
    except OSError as error:
        raise Refusal("file_unreadable", file=str(options.file)) from error
    result = summary(file.trace)
    print(result.to_json() if options.json else readable(result, options.lang))
    return 0


def readable(result: Summary, lang: str = "en") -> str:
    """The answer, a blank line, and the numbers below it. Control characters of the answer are shown, never sent."""
    nothing = say("cli.nothing", lang)
    numbers = say(
        "cli.summary",
        lang,
        model=result.model or nothing,
        dtype=result.dtype or nothing,
        device=result.device or nothing,
        prompt=f"{result.prompt_tokens:,}",
        output=f"{len(result.output_ids):,}",
        reason=say(f"cli.reason_{result.finish_reason or 'none'}", lang),
        ttft=_milliseconds(result.ttft_s, nothing),
        tpot=_milliseconds(result.tpot_s, nothing),
        bytes=f"{result.kv_bytes:,}",
    )
    return _harmless(f"{result.output_text}\n\n{numbers}")


def _milliseconds(seconds: float | None, nothing: str) -> str:
    return nothing if seconds is None else f"{seconds * 1000:,.1f} ms"


def _harmless(text: str) -> str:
    """A file is a stranger's text: a terminal must not obey it."""
    return "".join(f"\\x{ord(c):02x}" if category(c) == "Cc" and c not in "\n\t" else c for c in text)
