"""One module per command of `python -m engine`; its name is the command's, `cli.NAME` in `assets/words` its help.

Each has `add_arguments(parser)` and `run(options) -> exit status`; `options.lang` is there for every command.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from engine.words import say

if TYPE_CHECKING:
    from engine.model import LanguageModel


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, where and how: for the commands that load one."""
    parser.add_argument("--model", default="", metavar="NAME|FOLDER", help=say("command.model"))
    parser.add_argument("--device", default="", help=say("command.device"))
    parser.add_argument("--dtype", default="", help=say("command.dtype"))


def open_model(name: str, device: str = "", dtype: str = "") -> LanguageModel:
    """The model, loaded; it imports torch. Raises the refusals of `weights.resolve` and `model.load`."""
    from engine import weights
    from engine.model import load

    source = weights.resolve(name)
    return load(source.folder, name=name or weights.DEFAULT, weights_sha256=source.sha256, device=device, dtype=dtype)
