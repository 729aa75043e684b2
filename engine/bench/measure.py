"""The measurement: rounds in alternating order, medians, ratios of medians with their spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from os import cpu_count
from statistics import median
from typing import Any

from engine.bench.papers import paper
from engine.bench.sides import Library, Ours, Timing, map_bytes
from engine.jobs import machine
from engine.measure.quiet import Elsewhere, free_bytes, load_average, undisturbed
from engine.model import LanguageModel
from engine.plan import cost
from engine.plan.architecture import Architecture
from engine.plan.formats import cache_format, weight_format
from engine.plan.read import read
from engine.trace.codec import plain

TOGETHER = 30
"""Exams in a class."""

RATIOS = {"decode_vs_generate": False, "ttft_vs_generate": False, "ttft_vs_eager": False,
          "attention_bytes_vs_maps": False, "batch30_vs_alone": True, "bandwidth_share": True}  # fmt: skip
"""Every ratio, and whether more is better."""

Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One side's rounds in milliseconds: the median of the rounds (of their medians, where a round has many
    intervals), the lowest and the highest."""

    side: str
    what: str
    prompt_tokens: int
    median_ms: float
    low_ms: float
    high_ms: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a bench came to. `ratios[name][prompt tokens]` are ratios of medians; `spreads` hold, for those of times,
    the lowest and the highest ratio of two neighbouring measurements.

    `bandwidth_share` is what ours reads a second while it writes (the bytes of weights and KV cache that a step must
    read, `engine.plan.cost.moved`, over its median time) as a share of what a product of one row with a matrix reads
    here.
    """

    ratios: dict[str, dict[str, float]]
    spreads: dict[str, dict[str, tuple[float, float]]]
    rows: list[Row] = field(default_factory=list)
    attention_bytes: dict[str, dict[str, int]] = field(default_factory=dict)
    skipped: list[int] = field(default_factory=list)
    """Prompt lengths whose attention maps would not have fitted."""
    rounds: dict[str, int] = field(default_factory=lambda: {"kept": 0, "repeated": 0, "disturbed": 0})
    """Rounds of all comparisons: those that count, those thrown away because other programs were busy meanwhile, and
    those that count although they were."""
    machine: dict[str, Any] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)


def alternate(sides: dict[str, Callable[[], Timing]], rounds: int, counts: dict[str, int]) -> dict[str, list[Timing]]:
    """Each side once per round, in turning order (AB BA AB …), after a round that only warms up.

    A round in which other programs were busy is measured again, at most `rounds` times in all; `counts` are those of
    `Report.rounds`.
    """
    timings: dict[str, list[Timing]] = {name: [] for name in sides}
    _round(sides, 0)
    spare = rounds
    while (number := len(next(iter(timings.values()))) + 1) <= rounds:
        elsewhere = Elsewhere()
        measured = _round(sides, number)
        if elsewhere.disturbing and spare:
            spare -= 1
            counts["repeated"] += 1
            continue
        counts["kept"] += 1
        counts["disturbed"] += elsewhere.disturbing
        for name, timing in measured.items():
            timings[name].append(timing)
    return timings


def _round(sides: dict[str, Callable[[], Timing]], number: int) -> dict[str, Timing]:
    measured = {}
    for name in sides if number % 2 else reversed(sides):
        with undisturbed():
            measured[name] = sides[name]()
    return measured


class Bench:
    """One bench of one model. `rounds` per comparison, answers of `tokens` tokens."""

    def __init__(
        self, model: LanguageModel, library: Library, rounds: int, tokens: int,
        progress: Progress = lambda ratio, prompt_tokens: None,
    ) -> None:  # fmt: skip
        self._model, self._library, self._ours = model, library, Ours(model)
        self._rounds, self._tokens, self._progress = rounds, tokens, progress
        self._architecture: Architecture = read(model.network.config.to_dict())
        self._vector_rate = 0.0
        self._report = Report({name: {} for name in RATIOS}, {name: {} for name in RATIOS})

    def run(self, lengths: Sequence[int]) -> Report:
        """Everything, at each of `lengths` prompt tokens; the class of thirty around the shortest."""
        elsewhere, load = Elsewhere(), load_average()
        self._vector_rate = machine.vector_rate(self._model.shape.dtype, self._model.shape.device)
        for length in lengths:
            self._against_generate(length)
            self._against_eager(length)
        self._together(min(lengths))
        self._report.machine.update(
            plain(self._model.facts),
            cores=cpu_count(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            load_average=load,
            busy_elsewhere=elsewhere.cores,
            vector_bytes_per_second=self._vector_rate,
        )
        return self._report

    def _against_generate(self, length: int) -> None:
        self._progress("decode_vs_generate", length)
        text = paper(self._model.text, length)
        timings = alternate(
            {
                "ours": lambda: self._ours.write(text, self._tokens),
                "generate": lambda: self._library.generate(text, self._tokens),
            },
            self._rounds,
            self._report.rounds,
        )
        for what, seconds in (("ttft", _ttft), ("decode", _gap)):
            self._compare(f"{what}_vs_generate", what, length, timings, seconds)
        gaps = [_gap(timing) for timing in timings["ours"]]
        shares = [self._read(length) / gap / self._vector_rate for gap in (median(gaps), max(gaps), min(gaps))]
        self._report.ratios["bandwidth_share"][str(length)] = shares[0]
        self._report.spreads["bandwidth_share"][str(length)] = (shares[1], shares[2])
        kept, maps = timings["ours"][0].kept_bytes, map_bytes(self._model.facts, length, self._tokens)
        self._report.attention_bytes[str(length)] = {"ours": kept, "maps": maps}
        self._report.ratios["attention_bytes_vs_maps"][str(length)] = kept / maps

    def _read(self, length: int) -> int:
        """Bytes that the middle one of an answer's steps must read."""
        dtype = self._model.facts.dtype
        middle = length + self._tokens // 2
        moved = cost.moved(self._architecture, 1, middle, weight_format(dtype), cache_format(dtype))
        return moved.weights + moved.cache_read

    def _against_eager(self, length: int) -> None:
        # Eager attention holds scores, fp32 softmax and result of a layer besides the maps it keeps: twice is ample.
        free = free_bytes(self._model.shape.device)
        if free is not None and 2 * map_bytes(self._model.facts, length, 1) > free:
            self._report.skipped.append(length)
            return
        self._progress("ttft_vs_eager", length)
        text = paper(self._model.text, length)
        sides = {"ours": lambda: self._ours.write(text, 1), "eager": lambda: self._library.eager(text)}
        timings = alternate(sides, max(2, self._rounds // 2), self._report.rounds)
        self._compare("ttft_vs_eager", "ttft", length, timings, _ttft)

    def _together(self, length: int) -> None:
        self._progress("batch30_vs_alone", length)
        lengths = [length // 2 + length * number // (TOGETHER - 1) for number in range(TOGETHER)]
        class_papers = [paper(self._model.text, max(2, each)) for each in lengths]
        alone = paper(self._model.text, length)
        timings = alternate(
            {
                "together": lambda: self._ours.write_together(class_papers, self._tokens),
                "alone": lambda: self._ours.write_together([alone], self._tokens),
            },
            self._rounds,
            self._report.rounds,
        )
        self._compare("batch30_vs_alone", "step", length, timings, _gap, lambda ours, one: TOGETHER * one / ours)

    def _compare(
        self, ratio: str, what: str, length: int, timings: dict[str, list[Timing]], seconds: Callable[[Timing], float],
        of: Callable[[float, float], float] = lambda ours, theirs: ours / theirs,
    ) -> None:  # fmt: skip
        """Put the two sides' rows and their ratio into the report."""
        ours, theirs = ([seconds(timing) for timing in rounds] for rounds in timings.values())
        self._report.ratios[ratio][str(length)] = of(median(ours), median(theirs))
        each = [of(mine, other) for mine, other in zip(ours, theirs, strict=True)]
        self._report.spreads[ratio][str(length)] = (min(each), max(each))
        for side, values in zip(timings, (ours, theirs), strict=True):
            ms = [1000 * value for value in values]
            self._report.rows.append(Row(side, f"{what}", length, median(ms), min(ms), max(ms), len(ms)))


def _ttft(timing: Timing) -> float:
    return timing.ttft


def _gap(timing: Timing) -> float:
    return median(timing.gaps)
