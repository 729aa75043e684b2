"""From logits to a choice, on the library's own logits processors; and what is told about the choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import LongTensor, Tensor
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.settings import Settings

CANDIDATES = 10

COLDEST = 1e-6
"""Below this temperature the likeliest token has all the probability; logits divided by less would overflow."""


def stages(settings: Settings) -> list[tuple[str, LogitsProcessor]]:
    """The processors `generate` would use for these settings, in its order, under the names of their settings. A greedy
    answer knows the repetition penalty only."""
    chain: list[tuple[str, LogitsProcessor]] = []
    if settings.repetition_penalty != 1:
        chain.append(("repetition_penalty", RepetitionPenaltyLogitsProcessor(float(settings.repetition_penalty))))
    if settings.temperature >= COLDEST:
        if settings.temperature != 1:
            chain.append(("temperature", TemperatureLogitsWarper(float(settings.temperature))))
        if settings.top_k > 0:
            chain.append(("top_k", TopKLogitsWarper(settings.top_k)))
        if settings.top_p < 1:
            chain.append(("top_p", TopPLogitsWarper(settings.top_p)))
        if settings.min_p > 0:
            chain.append(("min_p", MinPLogitsWarper(settings.min_p)))
    return chain


class Sampler:
    """One run's way of choosing; its random numbers are its own, so neighbours never change its answer.

    The state of the random numbers before each draw is kept (5 KB a word): a fork goes on from there.
    """

    def __init__(self, settings: Settings) -> None:
        self._greedy = settings.temperature < COLDEST
        self._chain = LogitsProcessorList(processor for _, processor in stages(settings))
        self._seed = settings.seed
        self._random = torch.Generator().manual_seed(settings.seed)
        self._before: list[Tensor] = []

    def choose(self, logits: Tensor, ids: Sequence[int]) -> int:
        """The token after `ids` (prompt and answer so far) from `logits` `(vocabulary,)`, fp32. Drawn on the CPU: same
        seed, same answer on every device."""
        if self._greedy and not self._chain:
            return int(logits.argmax())
        scores: Tensor = self._chain(LongTensor([ids]), logits[None].cpu())
        if self._greedy:
            return int(scores[0].argmax())
        self._before.append(self._random.get_state())
        return int(torch.multinomial(scores[0].softmax(-1), 1, generator=self._random))

    def go_on(self, other: Sampler, draws: int) -> None:
        """Draw from now on what `other` drew after its first `draws` words; with another seed, or where one of them is
        greedy, there is nothing to go on from."""
        if self._seed != other._seed or draws > len(other._before):
            return
        self._before = other._before[:draws]
        after = other._before[draws] if draws < len(other._before) else other._random.get_state()
        self._random.set_state(after)


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
