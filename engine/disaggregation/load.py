"""Who comes when, with how long a paper and how long an answer: drawn from stated distributions with a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from random import Random
from statistics import NormalDist, fmean
from typing import Literal

from engine.disaggregation.costs import Costs


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens: lognormal around `median`, what lies outside [least, most] set to the bound."""

    median: int
    sigma: float
    least: int
    most: int

    def at(self, normal: float) -> int:
        """The length that belongs to a standard normal number."""
        return round(min(max(exp(log(self.median) + self.sigma * normal), self.least), self.most))

    def mean(self, of: Callable[[int], float] = float) -> float:
        """The mean of a function of the length, over 999 quantiles."""
        normal = NormalDist()
        return fmean(of(self.at(normal.inv_cdf(k / 1000))) for k in range(1, 1000))


Mix = Literal["questions", "passages", "stories"]
MIXES: dict[Mix, tuple[Lengths, Lengths]] = {
    "questions": (Lengths(200, 0.7, 16, 576), Lengths(40, 0.6, 4, 120)),
    "passages": (Lengths(480, 0.4, 16, 576), Lengths(12, 0.6, 4, 120)),
    "stories": (Lengths(40, 0.6, 16, 576), Lengths(90, 0.4, 4, 120)),
}
"""Lengths of the paper and of the answer. None is longer than what labs measure."""


@dataclass(frozen=True, slots=True)
class Arrival:
    at: float
    """Seconds after the first moment."""
    prompt: int
    answer: int


def arrivals(rate: float, mix: Mix, count: int, seed: int) -> list[Arrival]:
    """A Poisson stream of `count` people, `rate` per second. The same seed brings the same people in the same order,
    only closer together when the rate is higher."""
    random = Random(seed)
    prompt, answer = MIXES[mix]
    people, at = [], 0.0
    for _ in range(count):
        at += random.expovariate(1.0) / rate
        people.append(Arrival(at, prompt.at(random.gauss(0, 1)), answer.at(random.gauss(0, 1))))
    return people


def work(costs: Costs, mix: Mix) -> tuple[float, float]:
    """Seconds of one machine that a person costs on average: to read the paper whole, and to write the answer with as
    many others beside it as were measured."""
    prompt, answer = MIXES[mix]
    context = prompt.mean() + answer.mean() / 2
    return prompt.mean(lambda n: costs.read(0, n)), (answer.mean() - 1) * costs.step(costs.most, context) / costs.most


def capacity(costs: Costs, mix: Mix, machines: int, readers: int = 0) -> float:
    """People per second that keep the machines busy without a pause when all write with as many beside them as were
    measured; `readers` of the machines read only, the others write only (0: each does both). Computed; a bound that no
    queue reaches."""
    read, write = work(costs, mix)
    return min(readers / read, (machines - readers) / write) if readers else machines / (read + write)
