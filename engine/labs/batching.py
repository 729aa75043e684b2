"""Continuous batching (Yu et al. 2022): eight people come one after another. One by one, in batches that wait for their
slowest, and with everybody joining and leaving at any step: all three really run, beside the library's own. Then what a
step takes, and gives, by how many write in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from engine.labs.base import Lab, Results, give_way, spread
from engine.labs.lessons import papers
from engine.settings import Batching as Way
from engine.settings import Settings

if TYPE_CHECKING:
    from engine.labs.company import Company
    from engine.model import LanguageModel

WAYS: tuple[Way, ...] = ("alone", "static", "continuous")
assert set(WAYS) == set(get_args(Way))
BATCHES = (1, 2, 4, 8, 16, 30)
"""Runs that write in one step."""
CONTEXT = 128
"""Tokens of paper that each of them has."""
EVERY = 5
"""Words of one alone, in the time between two arrivals."""
LEAST, MOST, SECONDS = 4, 16, 1.5
"""Steps timed for one batch size: at least, at most, and how long at most."""
LIVE = 3
"""People of the runs to watch."""


class Batching(Lab):
    """A piece for each way, for each batch size, and one for the library's own."""

    name = "batching"
    stage = "decode"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        context = min(CONTEXT, model.facts.context - MOST - 2)
        return [
            *({"piece": f"company/{way}", "kind": "company", "way": way} for way in WAYS),
            *(
                {"piece": f"batch/{batch}", "kind": "batch", "batch": batch, "n": context, "needed": batch in _ends()}
                for batch in BATCHES
            ),
            {"piece": "reference", "kind": "reference", "needed": False},
        ]

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """`company`: see `company_of`. `batch`: see `batch_of`. `reference`: see `reference_of`."""
        if piece["kind"] == "company":
            return company_of(model, piece["way"])
        if piece["kind"] == "batch":
            return batch_of(model, piece["batch"], piece["n"])
        return reference_of(model)

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"ways": [company_of(…) with "rate": tokens per second, "ttft", "tpot": spreads over the people], "batches":
        [batch_of(…) with "rate"], "reference": reference_of(…) with "same" and rates or None, "answers": {"of", "same":
        answers that are those of one by one} or None, "gained"}`."""
        ways = [_way(found) for way in WAYS if (found := results.get(f"company/{way}"))]
        batches = [
            {**one, "rate": one["batch"] / one["tpot"]["middle"]}
            for batch in BATCHES
            if (one := results.get(f"batch/{batch}"))
        ]
        alone = next((one for one in ways if one["way"] == "alone"), None)
        proofs = [
            mine["ids"] == its["ids"]
            for one in ways
            if alone and one is not alone
            for mine, its in zip(one["members"], alone["members"], strict=True)
        ]
        return {
            "ways": ways, "batches": batches, "reference": _reference(results.get("reference")),
            "answers": {"of": len(proofs), "same": sum(proofs)} if proofs else None, "gained": _gained(ways, batches),
        }  # fmt: skip

    def runs(self) -> dict[str, Settings]:
        """The same three people served one by one, then together."""
        three = [one.settings() for one in papers(self.name)[:LIVE]]
        return {
            f"{way}_{number + 1}": replace(one, batching=way)
            for way in ("alone", "continuous")
            for number, one in enumerate(three)
        }


LAB = Batching()


def company_of(model: LanguageModel, way: Way) -> dict[str, Any]:
    """All eight, one arriving every `EVERY` words of somebody who writes alone, served in one way: `{"way", "pace":
    seconds of such a word, "gap": between two arrivals, "seconds": from the first arrival to the last word, "tokens":
    all words, "members": [`engine.labs.company.member`], "turns": [{"start", "stop", "reads": name or "", "writes":
    names}]}`."""
    from engine.labs.company import Arrival, Company, member
    from engine.measure.quiet import undisturbed

    exams = {one.name: replace(one.settings(model=model), batching=way) for one in papers("batching")}
    with undisturbed():
        pace = pace_of(model, next(iter(exams.values())))
        arrivals = [Arrival(name, exam, at=number * EVERY * pace) for number, (name, exam) in enumerate(exams.items())]
        company = Company(model, arrivals).sit()
    members = [member(company, name) for name in exams]
    return {
        "way": way, "pace": pace, "gap": EVERY * pace, "seconds": max(one["words"][-1] for one in members),
        "tokens": sum(len(one["words"]) for one in members), "members": members, "turns": _turns(company),
    }  # fmt: skip


def pace_of(model: LanguageModel, exam: Settings) -> float:
    """Seconds of a word of somebody who writes alone: the quickest of a few, so that a hiccup does not count."""
    from engine.labs.timing import sit

    _, trace = sit(model, replace(exam, max_new_tokens=10, batching="continuous"))
    return min(trace.itl, default=trace.ttft or 0.0)


def batch_of(model: LanguageModel, batch: int, n: int) -> dict[str, Any]:
    """So many runs, each with a paper of n tokens, write together: `{"batch", "n", "tpot": spread of seconds a step,
    choosing and telling included, "weights": bytes that a step reads once for all, "notes": bytes of all their
    notes}`."""
    from engine.labs.papers import of_length
    from engine.measure import clock
    from engine.measure.quiet import undisturbed
    from engine.run import admit, step

    model = replace(model, end_ids=frozenset())
    exam = of_length(model, n, Settings("x", mode="raw", max_new_tokens=MOST + 2))
    runs = [admit(str(number), exam, model, clock.now()) for number in range(batch)]
    first = runs[0]
    for run in runs:
        if run is not first:
            run.parent, run.taken = first, n - 1
        while run.reading:
            give_way()
            step(model, [run], lambda *_: None, give_way)
    taken: list[float] = []
    with undisturbed():
        step(model, runs, lambda *_: None)
        while len(taken) < LEAST or (len(taken) < MOST and sum(taken) < SECONDS):
            give_way()
            begin = clock.now()
            step(model, runs, lambda *_: None)
            clock.synchronise(model.shape.device)
            taken.append(clock.now() - begin)
    notes = sum(run.cache.snapshot().bytes for run in runs if run.cache)
    return {"batch": batch, "n": n, "tpot": spread(taken), "weights": model.facts.weight_bytes, "notes": notes}


def reference_of(model: LanguageModel) -> dict[str, Any]:
    """All eight at once, ours and the library's own: `{"ours": {"seconds", "ids", "ttft", "tpot"}, "library": see
    `engine.labs.reference.library`}`, lists by person."""
    from engine import weights
    from engine.labs.company import Arrival, Company
    from engine.labs.reference import library

    exams = {one.name: one.settings(model=model) for one in papers("batching")}
    for most in (2, None):  # a few words to warm up, as the library does it
        asked = {name: replace(exam, max_new_tokens=most or exam.max_new_tokens) for name, exam in exams.items()}
        company = Company(model, [Arrival(name, exam) for name, exam in asked.items()]).sit()
    traces = company.traces.values()
    ours = {
        "seconds": max(trace.chosen[-1].at for trace in traces), "ids": [list(trace.output_ids) for trace in traces],
        "ttft": [trace.ttft for trace in traces], "tpot": [trace.tpot for trace in traces],
    }  # fmt: skip
    prompts, limits = [run.ids for run in company.runs.values()], [run.limit for run in company.runs.values()]
    folder = weights.resolve(model.facts.model).folder
    return {"ours": ours, "library": library(folder, model.facts, prompts, limits, sorted(model.end_ids))}


def _ends() -> tuple[int, int]:
    """The batch sizes that the entry page tells of."""
    return BATCHES[0], BATCHES[-1]


def _turns(company: Company) -> list[dict[str, Any]]:
    return [
        {"start": one.start, "stop": one.stop, "reads": one.reads, "writes": list(one.writes)} for one in company.turns
    ]


def _way(one: Mapping[str, Any]) -> dict[str, Any]:
    members = one["members"]
    tpots = [each["tpot"] for each in members if each["tpot"] is not None]
    gaps = [stop - start for each in members for start, stop in pairwise(each["words"])]
    return {
        **one, "rate": one["tokens"] / one["seconds"], "ttft": spread([each["ttft"] for each in members]),
        "tpot": spread(tpots) if tpots else None, "longest": max(gaps, default=None),
    }  # fmt: skip


def _reference(one: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """With tokens per second of both, and whether the answers are the same."""
    if one is None:
        return None
    ours, library = one["ours"], one["library"]
    told = {"ours": _told(ours), "library": {**library, **(_told(library) if "ids" in library else {})}}
    same = [mine == its for mine, its in zip(ours["ids"], library["ids"], strict=True)] if "ids" in library else None
    return {**told, "same": sum(same) if same is not None else None, "of": len(ours["ids"])}


def _told(side: Mapping[str, Any]) -> dict[str, Any]:
    tokens = sum(len(ids) for ids in side["ids"])
    tpots = _known(side["tpot"])
    return {
        "seconds": side["seconds"], "tokens": tokens, "rate": tokens / side["seconds"],
        "ttft": spread(_known(side["ttft"])), "tpot": spread(tpots) if tpots else None,
    }  # fmt: skip


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _gained(ways: list[dict[str, Any]], batches: list[dict[str, Any]]) -> dict[str, Any] | None:
    one, most = (next((each for each in batches if each["batch"] == end), None) for end in _ends())
    if len(ways) < len(WAYS) or one is None or most is None:
        return None
    rates = {one["way"]: one["rate"] for one in ways}
    waits = {one["way"]: one["ttft"]["high"] for one in ways}
    return {
        "people": len(ways[0]["members"]), "before": rates["alone"], "after": rates["continuous"],
        "wait_before": waits["alone"], "wait": waits["continuous"],
        "batch": most["batch"], "times": most["rate"] / one["rate"],
        "slower": most["tpot"]["middle"] / one["tpot"]["middle"],
    }  # fmt: skip
