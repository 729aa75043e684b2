"""From logits to a choice, on the library's own logits processors; and what is told about the choice."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from torch import LongTensor, Tensor
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.settings import Settings

CANDIDATES = 10

COLDEST = 1e-6
"""Below this temperature the likeliest token has all the probability; logits divided by less would overflow."""


def processors(settings: Settings) -> LogitsProcessorList:
    """The chain `generate` would use for these settings, in its order; empty for greedy."""
    chain = LogitsProcessorList()
    if settings.temperature >= COLDEST:
        if settings.temperature != 1:
            chain.append(TemperatureLogitsWarper(float(settings.temperature)))
        if settings.top_k > 0:
            chain.append(TopKLogitsWarper(settings.top_k))
        if settings.top_p < 1:
            chain.append(TopPLogitsWarper(settings.top_p))
    return chain


class Sampler:
    """One run's way of choosing; its random numbers are its own, so neighbours never change its answer."""

    def __init__(self, settings: Settings) -> None:
        self._greedy = settings.temperature < COLDEST
        self._chain = processors(settings)
        self._random = torch.Generator().manual_seed(settings.seed)
        self._no_ids = LongTensor(1, 0)

    def choose(self, logits: Tensor) -> int:
        """The next token's id from `logits` `(vocabulary,)`, fp32. Drawn on the CPU: same seed, same answer on
        every device."""
        if self._greedy:
            return int(logits.argmax())
        scores: Tensor = self._chain(self._no_ids, logits[None].cpu())
        return int(torch.multinomial(scores[0].softmax(-1), 1, generator=self._random))


@dataclass(frozen=True, slots=True)
class Measured:
    """Of a batch of distributions: ids and probabilities of the likeliest, and the entropy in bits."""

    ids: list[list[int]]
    probabilities: list[list[float]]
    entropy: list[float]
    log_probabilities: Tensor


def measure(logits: Tensor) -> Measured:
    """`logits` `(runs, vocabulary)` in fp32: the model's own distribution, before temperature and cuts."""
    # A token ruled out by the model itself (-inf) counts 0 in the entropy, not 0 x inf.
    log_probabilities = logits.log_softmax(-1).clamp_(min=torch.finfo(logits.dtype).min)
    top, ids = log_probabilities.topk(min(CANDIDATES, logits.shape[-1]), dim=-1)
    # sum p log p from the logarithms that are there: half the time of `torch.special.entr`, which takes them anew
    entropy = log_probabilities.exp().mul_(log_probabilities).sum(-1).abs() / log(2)
    return Measured(ids.tolist(), top.exp().tolist(), entropy.tolist(), log_probabilities)


def rank_of(log_probabilities: Tensor, index: int) -> int:
    """How many tokens are likelier than `index`; 0 is the likeliest. `log_probabilities` `(vocabulary,)`."""
    return int((log_probabilities > log_probabilities[index]).sum())
