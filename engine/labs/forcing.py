"""How far another way of keeping notes is from the exact one: the same words through both, and its own answer.

Two runs that choose for themselves part at the first word that differs, and from there on nothing can be compared. So
the exact run's words are put into the other run too (teacher forcing): real runs through the real `step`, only the
choice is given. At every word the two distributions over the whole vocabulary are then about the same beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import Any

import torch
from torch import Tensor

from engine import clock
from engine.labs.base import give_way, spread
from engine.model import LanguageModel
from engine.run import Run, step
from engine.sampling import Sampler
from engine.settings import Keeping, Refusal, Settings
from engine.trace import Decoded, Event, Trace

REPEATS = 2
"""Times that the exact way and the other take turns at the same words."""


class Heard:
    """In place of a run's sampler: keeps the logits of every word, and says the given ids where there are any."""

    def __init__(self, sampler: Sampler, forced: Sequence[int] | None = None) -> None:
        self._sampler = sampler
        self._forced = forced
        self.logits: list[Tensor] = []

    def choose(self, logits: Tensor, ids: Sequence[int]) -> int:
        """As `engine.sampling.Sampler.choose`; `logits` `(vocabulary,)` in fp32."""
        self.logits.append(logits)
        return self._sampler.choose(logits, ids) if self._forced is None else self._forced[len(self.logits) - 1]


@dataclass(frozen=True, slots=True)
class Sat:
    """A run that is over: its own tensors, its trace, and the logits `(vocabulary,)` each word was chosen from."""

    run: Run
    trace: Trace
    logits: tuple[Tensor, ...]

    @property
    def ids(self) -> list[int]:
        return list(self.run.chosen)

    @property
    def seconds(self) -> list[float]:
        """Of each decode step, from the words' own times: what one waits for a word, forgetting and choosing too."""
        at = [event.at for event in self.trace.chosen]
        return [after - before for before, after in pairwise(at)]

    @property
    def passes(self) -> list[float]:
        """Of each decode step's forward pass alone."""
        return [event.seconds for event in self.trace.events if isinstance(event, Decoded)]


def sit(model: LanguageModel, settings: Settings, forced: Sequence[int] | None = None) -> Sat:
    """One run from start to end, choosing for itself or given its words. It belongs to nobody and is told to nobody.

    Raises the refusals of `Run`, the one that a run ended with, and whatever `give_way` raises between two steps."""
    run = Run("", settings, model, clock.now())
    heard = Heard(run.sampler, forced)
    run.sampler = heard  # type: ignore[assignment]
    if forced is not None:
        run.limit = len(forced)
    events: list[Event] = [run.started(False)]
    while not run.finished:
        give_way()
        step(model, [run], lambda _, event: events.append(event), give_way)
    trace = Trace(tuple(events))
    if trace.finished is not None and trace.finished.code:
        raise Refusal(trace.finished.code, **dict(trace.finished.values))
    return Sat(run, trace, tuple(heard.logits))


@dataclass(frozen=True, slots=True)
class Beside:
    """An exam sat with its notes kept exactly, and the exact words put through notes that are kept another way."""

    exact: Sat
    kept: Sat
    """Given the exact run's words."""
    free: Sat
    """Kept the other way too, choosing for itself."""
    before: list[float]
    after: list[float]

    def told(self, right: Sequence[str]) -> dict[str, Any]:
        """Plain values: `{"exact", "text": the two answers, "same": ids equal, "words": the exact answer's tokens as
        text, "kl": bits per word, "agree": per word, "exact_right", "right", "before", "after": seconds per word
        (`spread`), "exact_bytes", "bytes": of the notes at the end as the runs told them, "prompt", "columns"}`."""
        exact, kept, text = self.exact, self.kept, self.free.trace.output_text
        piece = exact.run.model.text.piece
        return {
            "exact": exact.trace.output_text, "text": text, "same": exact.ids == self.free.ids,
            "words": [piece(index) for index in exact.ids],
            "kl": divergence(exact.logits, kept.logits), "agree": agreement(exact.logits, kept.logits),
            "exact_right": holds(exact.trace.output_text, right), "right": holds(text, right),
            "before": spread(self.before) if self.before else None, "after": spread(self.after) if self.after else None,
            "exact_bytes": bytes_of(exact), "bytes": bytes_of(kept),
            "prompt": len(exact.run.ids), "columns": len(exact.run.ids) + len(exact.ids) - 1,
        }  # fmt: skip


@torch.inference_mode()
def beside(model: LanguageModel, settings: Settings, keeping: Keeping, repeats: int = REPEATS) -> Beside:
    """Both ways take turns `repeats` times, all with the exact run's words. Raises as `sit`."""
    plain, other = replace(settings, keeping=Keeping()), replace(settings, keeping=keeping)
    free = sit(model, other)
    exact = sit(model, plain)
    kept = sit(model, other, exact.ids)
    before, after = exact.seconds, kept.seconds
    for _ in range(repeats - 1):
        before = before + sit(model, plain, exact.ids).seconds
        after = after + sit(model, other, exact.ids).seconds
    return Beside(exact, kept, free, before, after)


def divergence(exact: Sequence[Tensor], other: Sequence[Tensor]) -> list[float]:
    """Kullback-Leibler divergence of each word's distribution from the exact one, in bits:
    sum over the vocabulary of p log2(p / q), p exact, q the other's. 0 where they are the same."""
    found = []
    for one, two in zip(exact, other, strict=True):
        p, q = one.double().log_softmax(-1), two.double().log_softmax(-1)
        found.append(max(0.0, float((p.exp() * (p - q)).nan_to_num(0.0).sum()) / log(2)))
    return found


def agreement(exact: Sequence[Tensor], other: Sequence[Tensor]) -> list[bool]:
    """Whether the likeliest token is the same, word by word (top-1 agreement)."""
    return [int(one.argmax()) == int(two.argmax()) for one, two in zip(exact, other, strict=True)]


def bytes_of(sat: Sat) -> int:
    """What the notes took at the end, as the run told it; 0 where there were none."""
    told = [event.kv.bytes for event in sat.trace.events if hasattr(event, "kv")]
    return told[-1] if told else 0


def holds(text: str, right: Sequence[str]) -> bool:
    """Whether an answer has the fact in it, in letters of any case."""
    return any(one.casefold() in text.casefold() for one in right)
