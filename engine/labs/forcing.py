"""How far another way of keeping notes is from the exact one: the same words through both, and its own answer.

Two runs that choose for themselves part at the first word that differs, and from there on nothing can be compared. So
the exact run's words are put into the other run too (teacher forcing): real runs through the real `step`, only the
choice is given. At every word the two distributions over the whole vocabulary are then about the same beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import median
from typing import Any

import torch
from torch import Tensor

from engine.labs.base import give_way, spread
from engine.measure import clock
from engine.model import LanguageModel
from engine.run import Run, admit, step
from engine.run.sampling import Sampler
from engine.settings import Keeping, Refusal, Settings
from engine.trace import Event, Trace


class Heard:
    """In place of a run's sampler: keeps the logits of every word, and says the given ids where there are any."""

    def __init__(self, sampler: Sampler, forced: Sequence[int] | None = None) -> None:
        self._sampler = sampler
        self._forced = forced
        self.logits: list[Tensor] = []

    def choose(self, logits: Tensor, ids: Sequence[int]) -> int:
        """As `engine.run.sampling.Sampler.choose`; `logits` `(vocabulary,)` in fp32."""
        self.logits.append(logits)
        return self._sampler.choose(logits, ids) if self._forced is None else self._forced[len(self.logits) - 1]


class Sitting:
    """One run, sat turn by turn, choosing for itself or given its words. It belongs to nobody and is told to nobody.

    Raises the refusals of `Run`."""

    def __init__(self, model: LanguageModel, settings: Settings, forced: Sequence[int] | None = None) -> None:
        self.run = admit("", settings, model, clock.now())
        self._heard = Heard(self.run.sampler, forced)
        self.run.sampler = self._heard  # type: ignore[assignment]
        if forced is not None:
            self.run.limit = len(forced)
        self._events: list[Event] = [self.run.started(False)]
        self._seconds: list[float] = []

    def turn(self) -> None:
        """Until the next word is chosen: a pass, and forgetting where that is due. Raises what `give_way` raises."""
        give_way()
        writing, begin = self.run.writing, clock.now()
        step(self.run.model, [self.run], lambda _, event: self._events.append(event), give_way)
        if writing:
            self._seconds.append(clock.now() - begin)

    def over(self) -> Sat:
        """What it came to. Raises the refusal that the run ended with."""
        while not self.run.finished:
            self.turn()
        trace = Trace(tuple(self._events))
        if trace.finished is not None and trace.finished.code:
            raise Refusal(trace.finished.code, **dict(trace.finished.values))
        return Sat(self.run, trace, tuple(self._heard.logits), tuple(self._seconds))


@dataclass(frozen=True, slots=True)
class Sat:
    """A run that is over: its own tensors, its trace, and for every word the logits `(vocabulary,)` it was chosen from;
    for every word after the first the seconds it took."""

    run: Run
    trace: Trace
    logits: tuple[Tensor, ...]
    seconds: tuple[float, ...]

    @property
    def ids(self) -> list[int]:
        return list(self.run.chosen)


def sit(model: LanguageModel, settings: Settings, forced: Sequence[int] | None = None) -> Sat:
    """One run from start to end. Raises as `Sitting`."""
    return Sitting(model, settings, forced).over()


def in_turns(one: Sitting, other: Sitting) -> None:
    """Both to their ends, a word of the one and a word of the other, every other time in the opposite order: a machine
    that gets slower or faster meanwhile does so for both."""
    pair = [one, other]
    while not (one.run.finished and other.run.finished):
        for sitting in pair:
            if not sitting.run.finished:
                sitting.turn()
        pair.reverse()


@dataclass(frozen=True, slots=True)
class Beside:
    """An exam sat with its notes kept exactly, and the exact words put through notes that are kept another way."""

    exact: Sat
    kept: Sat
    """Given the exact run's words."""
    free: Sat
    """Kept the other way too, choosing for itself."""

    def told(self, right: Sequence[str]) -> dict[str, Any]:
        """Plain values: `{"exact", "text": the two answers, "same": ids equal, "words": the exact answer's tokens as
        text, "kl": bits per word, "agree": per word, "exact_right", "right", "before", "after": seconds per word
        (`spread`), None where there was one word only, "slower": `paired`, "exact_bytes", "bytes": of the notes at the
        end as the runs told them, "prompt", "columns"}`."""
        exact, kept, text = self.exact, self.kept, self.free.trace.output_text
        piece = exact.run.model.text.piece
        return {
            "exact": exact.trace.output_text, "text": text, "same": exact.ids == self.free.ids,
            "words": [piece(index) for index in exact.ids],
            "kl": divergence(exact.logits, kept.logits), "agree": agreement(exact.logits, kept.logits),
            "exact_right": holds(exact.trace.output_text, right), "right": holds(text, right),
            "before": spread(exact.seconds) if exact.seconds else None,
            "after": spread(kept.seconds) if kept.seconds else None,
            "slower": paired(exact.seconds, kept.seconds),
            "exact_bytes": bytes_of(exact), "bytes": bytes_of(kept),
            "prompt": len(exact.run.ids), "columns": len(exact.run.ids) + len(exact.ids) - 1,
        }  # fmt: skip


@torch.inference_mode()
def beside(model: LanguageModel, settings: Settings, keeping: Keeping) -> Beside:
    """The exam as it is, then the other way, then both in turns with the exact run's words. Raises as `Sitting`."""
    plain, other = replace(settings, keeping=Keeping()), replace(settings, keeping=keeping)
    ids = sit(model, plain).ids
    free = sit(model, other)
    exact, kept = Sitting(model, plain, ids), Sitting(model, other, ids)
    in_turns(exact, kept)
    return Beside(exact.over(), kept.over(), free)


def paired(before: Sequence[float], after: Sequence[float]) -> float | None:
    """How many times as long a word takes: the median over words, each beside the same word the exact way, written just
    before or after it. What disturbs both alike does not count."""
    ratios = [two / one for one, two in zip(before, after, strict=True) if one > 0]
    return median(ratios) if ratios else None


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
