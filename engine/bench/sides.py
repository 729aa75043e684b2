"""Who is measured: our engine, the library's `generate`, and eager attention with all maps kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.generation.streamers import BaseStreamer

from engine.measure.clock import now, synchronise
from engine.model import LanguageModel
from engine.run import Run, admit, step
from engine.settings import RANGES, Settings
from engine.trace import Event, Facts
from engine.trace.codec import to_json

TIMEOUT = RANGES["timeout"][1]
"""Seconds; nothing measured here is to end by the clock."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds until the first token, and between tokens; bytes kept for looking at attention afterwards."""

    ttft: float
    gaps: tuple[float, ...] = ()
    kept_bytes: int = 0


def timing(pressed: float, stamps: Sequence[float], kept_bytes: int = 0) -> Timing:
    """From the moments the tokens were there."""
    return Timing(stamps[0] - pressed, tuple(after - before for before, after in pairwise(stamps)), kept_bytes)


class Ours:
    """The engine as it runs for people, but for end tokens, which it is told to ignore."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = replace(model, end_ids=frozenset())
        self._sent: list[tuple[Event, bytes]] = []

    def write(self, paper: str, tokens: int) -> Timing:
        """One exam alone. A token counts as there when all its events are encoded for the way out."""
        self._sent.clear()
        pressed = now()
        run = admit("", _settings(paper, tokens), self._model, pressed)
        self._emit(run, run.started(cold=False))
        stamps = []
        while not run.finished:
            step(self._model, [run], self._emit)
            stamps.append(now())
        assert len(run.chosen) == len(stamps) == tokens
        return timing(pressed, stamps, _kept_bytes(run))

    def write_together(self, papers: Sequence[str], tokens: int) -> Timing:
        """Many exams advanced together; the gaps are the steps in which all of them write one token."""
        self._sent.clear()
        pressed = now()
        runs = [
            admit(str(number), _settings(paper, tokens), self._model, pressed) for number, paper in enumerate(papers)
        ]
        for run in runs:
            step(self._model, [run], self._emit)
        stamps = [now()]
        while not runs[0].finished:
            step(self._model, runs, self._emit)
            stamps.append(now())
        assert all(len(run.chosen) == tokens for run in runs)
        return timing(pressed, stamps)

    def _emit(self, run: Run, event: Event) -> None:
        self._sent.append((event, to_json(event)))


def _settings(paper: str, tokens: int) -> Settings:
    return Settings(paper, mode="raw", max_new_tokens=tokens, timeout=TIMEOUT)


def _kept_bytes(run: Run) -> int:
    """The tape, and what a sliding layer's window would have dropped of K and V if nobody wanted to look."""
    assert run.tape is not None and run.cache is not None
    facts, notes = run.model.facts, run.cache.snapshot()
    return run.tape.bytes + facts.kv_bytes_per_token * notes.length - notes.bytes


def map_bytes(facts: Facts, prompt: int, tokens: int) -> int:
    """Bytes of all attention maps of the same exam in the model's dtype: the prompt's square, then a row per token
    that was fed back (the last one chosen was not)."""
    rows = prompt**2 + sum(range(prompt + 1, prompt + tokens))
    return rows * facts.layers * facts.heads * facts.value_bytes


class Library:
    """The same weights in the library's own hands: a network of its own, loaded afresh."""

    def __init__(self, folder: Path, model: LanguageModel) -> None:
        network: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=model.shape.dtype,
            attn_implementation="sdpa",
            trust_remote_code=False,
            local_files_only=True,
        )
        self._network = network.to(model.shape.device).eval()
        self._network.generation_config = GenerationConfig(do_sample=False, pad_token_id=0)  # no end token
        self._tokenizer = model.text.tokenizer
        self._device = model.shape.device

    def generate(self, paper: str, tokens: int) -> Timing:
        """Greedy `generate` with sdpa attention, recording nothing."""
        self._network.set_attn_implementation("sdpa")
        streamer = _Stamps()
        pressed = now()
        self._network.generate(**self._encode(paper), max_new_tokens=tokens, streamer=streamer)
        _, *stamps = streamer.stamps  # the first is the prompt
        assert len(stamps) == tokens
        return timing(pressed, stamps)

    @torch.inference_mode()
    def eager(self, paper: str) -> Timing:
        """Eager attention, every map kept: the first token only."""
        self._network.set_attn_implementation("eager")
        pressed = now()
        output = self._network(**self._encode(paper), use_cache=True, output_attentions=True, logits_to_keep=1)
        int(output.logits[0, -1].argmax())
        synchronise(self._device)
        seconds = now() - pressed
        return Timing(seconds, (), sum(weights.numel() * weights.element_size() for weights in output.attentions))

    def _encode(self, paper: str) -> dict[str, Tensor]:
        return dict(self._tokenizer(paper, return_tensors="pt").to(self._device))


class _Stamps(BaseStreamer):
    """When each token arrived. They arrive on the CPU, so a stamp has waited for the device."""

    def __init__(self) -> None:
        self.stamps: list[float] = []

    def put(self, value: Tensor) -> None:
        self.stamps.append(now())

    def end(self) -> None:
        pass
