"""What a simulation comes to: percentiles, use of the machines, and the picture of its first people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import floor
from typing import Any, Literal

from engine.disaggregation.costs import Costs
from engine.disaggregation.desks import Exam, Person, Setup
from engine.disaggregation.load import MIXES, Mix, arrivals, capacity

Split = Literal["1+1", "3+1", "2+2", "1+3"]
SPLITS: dict[Split, tuple[int, int]] = {"1+1": (1, 1), "3+1": (3, 1), "2+2": (2, 2), "1+3": (1, 3)}
"""Machines that read, and machines that write."""
ARRANGEMENTS = ("colocated", "chunked", "split")
CHUNK = 256
"""As `engine.run.CHUNK`, which cannot be read without torch."""
PEOPLE = 100
"""Simulated each time; the first find everything empty."""
SHOWN = 24
"""People whose every word is told, for the picture."""
LOADS = (0.3, 0.5, 0.7, 0.85, 0.95)
SEEDS = (1, 2, 3)
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is simulated. `load`: people per second as a share of `capacity` of as many machines that do both.
    `bandwidth` in bits per second."""

    load: float = 0.7
    bandwidth: float = 1e10
    seed: int = 1
    split: Split = "1+1"
    mix: Mix = "questions"

    def setup(self, arrangement: str) -> Setup:
        readers, writers = SPLITS[self.split]
        apart = arrangement == "split"
        chunk = CHUNK if arrangement == "chunked" else 0
        return Setup(readers + writers, readers if apart else 0, chunk, self.bandwidth)


def percentile(values: Sequence[float], percent: float) -> float:
    """On straight lines between neighbours, as numpy's default."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def percentiles(people: Sequence[Person]) -> dict[str, dict[str, float] | None]:
    """`{"ttft", "tpot", "pause": {"p50", "p90", "p99"}}` over people, in seconds; `pause`: of the longest gap between
    two words that each had. None where nobody wrote more than one word."""
    told: dict[str, dict[str, float] | None] = {}
    for name in ("ttft", "tpot", "pause"):
        values = [value for person in people if (value := getattr(person, name)) is not None]
        told[name] = {f"p{each}": percentile(values, each) for each in PERCENTILES} if values else None
    return told


def simulated(costs: Costs, asked: Asked) -> dict[str, Any]:
    """One crowd, served in every arrangement: `{"asked", "rate": people per second, "capacity": the most people per
    second, {"together", "apart", "link"}, "note": bytes of one position, "travel": seconds of the notes of the median
    paper, "paper": its tokens, "arrangements": {name: summary}}`; see `_summary`. With the `picture` of the first."""
    exams = _exams(costs, asked)
    until = max(person.words[-1] for exam in exams.values() for person in exam.people[:SHOWN])
    told = {name: {**_summary(exam), "picture": picture(exam, until)} for name, exam in exams.items()}
    return {**_figures(costs, asked), "arrangements": told}


def _figures(costs: Costs, asked: Asked) -> dict[str, Any]:
    readers, writers = SPLITS[asked.split]
    machines = readers + writers
    setup, paper = asked.setup("split"), MIXES[asked.mix][0].median
    return {
        "asked": {name: getattr(asked, name) for name in Asked.__dataclass_fields__},
        "people": PEOPLE, "machines": machines, "readers": readers, "rate": _rate(costs, asked),
        "capacity": {
            "together": capacity(costs, asked.mix, machines), "apart": capacity(costs, asked.mix, machines, readers),
            "link": 1 / costs.travel(MIXES[asked.mix][0].mean(), setup.bandwidth, setup.latency),
        },
        "note": costs.note, "paper": paper, "latency": setup.latency, "chunk": CHUNK,
        "travel": costs.travel(paper, setup.bandwidth, setup.latency), "most": costs.most,
    }  # fmt: skip


def _rate(costs: Costs, asked: Asked) -> float:
    return asked.load * capacity(costs, asked.mix, sum(SPLITS[asked.split]))


def _exams(costs: Costs, asked: Asked) -> dict[str, Exam]:
    people = arrivals(_rate(costs, asked), asked.mix, PEOPLE, asked.seed)
    return {name: Exam(costs, asked.setup(name), people) for name in ARRANGEMENTS}


@lru_cache(64)
def crowd(costs: Costs, asked: Asked) -> dict[str, tuple[tuple[float, float | None, float | None], ...]]:
    """By arrangement, of each person in the order they came: TTFT, TPOT and longest pause in seconds; see `Person`."""
    exams = _exams(costs, asked)
    return {name: tuple((one.ttft, one.tpot, one.pause) for one in exam.people) for name, exam in exams.items()}


def _summary(exam: Exam) -> dict[str, Any]:
    """`percentiles`, and `{"words": per second, "served": people per second, "waiting": people who wait for being read
    on average, "read", "write": share of all machines' time, "link": share of the link's time, "outside", "steps":
    decode steps beyond what was measured and all, "beyond": papers beyond it}`, until the last word."""
    span, people = exam.end - exam.people[0].at, exam.people
    time = span * len(exam.machines)
    return {
        **percentiles(people),
        "words": sum(len(person.words) for person in people) / span,
        "served": len(people) / span,
        "waiting": sum(person.began - person.at for person in people) / span,
        "read": sum(_spent(machine.reads) for machine in exam.machines) / time,
        "write": sum(_spent(machine.writes) for machine in exam.machines) / time,
        "link": _spent(exam.travels) / span,
        "outside": exam.outside, "steps": exam.steps, "beyond": exam.beyond,
    }  # fmt: skip


def _spent(spans: Sequence[tuple[Any, ...]]) -> float:
    return float(sum(stop - start for start, stop, *_ in spans))


def picture(exam: Exam, until: float) -> dict[str, Any]:
    """What there was to see until then: `{"until", "people": [{"at", "prompt", "answer", "began", "first", "sent",
    "landed", "last", "reader", "writer", "words": of the first `SHOWN` only}] of all who had come, "machines":
    [{"name", "reads": [[start, stop, person, tokens]], "writes": [[start, stop, [people], steps]]}], "travels":
    [[start, stop, person]]}`. Seconds from the first arrival."""
    zero = exam.people[0].at
    return {
        "until": _since(zero, until),
        "people": [_person(one, zero, one.number < SHOWN) for one in exam.people if one.at < until],
        "machines": [
            {"name": one.name, "reads": _spans(one.reads, zero, until), "writes": _spans(one.writes, zero, until)}
            for one in exam.machines
        ],
        "travels": _spans(exam.travels, zero, until),
    }  # fmt: skip


def _since(zero: float, at: float | None) -> float | None:
    return None if at is None else round(at - zero, 6)


def _spans(spans: Sequence[tuple[Any, ...]], zero: float, until: float) -> list[list[Any]]:
    def plain(value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value

    return [
        [_since(zero, start), _since(zero, stop), *map(plain, rest)] for start, stop, *rest in spans if start < until
    ]


def _person(one: Person, zero: float, every: bool) -> dict[str, Any]:
    moments = {"at": one.at, "began": one.began, "first": one.words[0], "sent": one.sent, "landed": one.landed,
               "last": one.words[-1]}  # fmt: skip
    return {
        **{name: _since(zero, at) for name, at in moments.items()},
        "prompt": one.prompt, "answer": one.answer, "reader": one.reader, "writer": one.writer,
        "words": [_since(zero, word) for word in one.words] if every else [],
    }  # fmt: skip


@lru_cache(64)
def over_loads(costs: Costs, asked: Asked) -> tuple[dict[str, Any], ...]:
    """By load, whatever `asked.load` and `asked.seed` are: `{"load", "rate", arrangement: {"ttft", "tpot", "pause":
    {"p50", "p90", "p99": [one for each of SEEDS]}}}`."""
    told = []
    for load in LOADS:
        crowds = [Asked(load, asked.bandwidth, seed, asked.split, asked.mix) for seed in SEEDS]
        exams = [_exams(costs, crowd) for crowd in crowds]
        found = {name: [percentiles(exam[name].people) for exam in exams] for name in ARRANGEMENTS}
        told.append({
            "load": load, "rate": _rate(costs, crowds[0]),
            **{name: {what: _by_seed([one[what] for one in each]) for what in each[0]} for name, each in found.items()},
        })  # fmt: skip
    return tuple(told)


def _by_seed(found: Sequence[dict[str, float] | None]) -> dict[str, list[float]] | None:
    known = [one for one in found if one]
    return {name: [one[name] for one in known] for name in known[0]} if known else None


RATIO_LOAD = 0.6


def over_ratios(costs: Costs) -> list[dict[str, Any]]:
    """Four machines at one load, by kind of crowd: `{"mix", "load", "ways": {"colocated" or a split: {"capacity": as a
    share of the same machines doing both, "ttft", "tpot", "pause": p90}}}`, with the usual link and the first seed."""
    told = []
    for mix in MIXES:
        ways: dict[str, dict[str, Any]] = {}
        for split, (readers, writers) in SPLITS.items():
            if readers + writers != 4:
                continue
            asked = Asked(RATIO_LOAD, split=split, mix=mix)
            people = arrivals(_rate(costs, asked), mix, PEOPLE, asked.seed)
            both = capacity(costs, mix, 4)
            if not ways:
                ways["colocated"] = {"capacity": 1.0, **_p90(Exam(costs, asked.setup("colocated"), people))}
            share = capacity(costs, mix, 4, readers) / both
            ways[split] = {"capacity": share, **_p90(Exam(costs, asked.setup("split"), people))}
        told.append({"mix": mix, "load": RATIO_LOAD, "ways": ways})
    return told


def _p90(exam: Exam) -> dict[str, float | None]:
    return {name: found["p90"] if found else None for name, found in percentiles(exam.people).items()}
