"""A GGUF file becomes a folder that loads in a tenth of a second: plain linears in bf16, tokenizer, a note of origin.

Reading a GGUF file takes 12 to 60 seconds, so it is done once. Imports torch: for the engine process and the
command line only.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from engine.weights.download import sha256_of

SOURCE = "source.json"
"""Written last: a folder without it is no finished conversion."""


def convert(
    gguf: Path,
    target: Path,
    papers: Path,
    origin: dict[str, str],
    digits_apart: bool,
    progress: Callable[[float, str], None],
) -> None:
    """Write `target` from `gguf`, whole or not at all; the files in `papers` (licence, terms) go with it.

    Raises `OSError` (disk), `ValueError` (no GGUF).
    """
    making = target.with_name(f"{target.name}.part")
    shutil.rmtree(making, ignore_errors=True)
    shutil.copytree(papers, making)
    transformers.logging.disable_progress_bar()
    progress(0.0, "convert")
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
    if digits_apart:
        split_digits(tokenizer)
    progress(0.4, "convert")
    network = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        local_files_only=True,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),  # packed weights would be cast again at every product
    )
    progress(0.8, "convert")
    tokenizer.save_pretrained(making)
    network.save_pretrained(making)
    weights = {file.name: sha256_of(file) for file in sorted(making.glob("*.safetensors"))}
    note = origin | {"weights": weights, "transformers": transformers.__version__}
    (making / SOURCE).write_text(json.dumps(note, indent=2) + "\n", "utf-8")
    shutil.rmtree(target, ignore_errors=True)
    making.replace(target)
    progress(1.0, "convert")


def split_digits(tokenizer: Any) -> None:
    """Put back what the library's GGUF reader drops: in SmolLM2's tokenizer every digit stands alone, *before* spaces
    are grouped. Without it two line breaks before a number are other tokens than the model learned from."""
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
