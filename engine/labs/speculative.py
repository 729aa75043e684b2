"""Speculative decoding (Leviathan et al. 2023; prompt lookup: Saxena 2023): what a pass that checks guessed tokens
costs against an ordinary one, how many guesses are right on papers of different kinds, and what a word takes with and
without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from engine.labs.base import Lab, Results, give_way, spread
from engine.labs.lessons import paper, papers
from engine.settings import Settings

if TYPE_CHECKING:
    from engine.labs.racing import Sat
    from engine.model import LanguageModel
    from engine.trace import Trace

DRAFTS = (4, 8)
"""Most tokens guessed ahead."""
ROWS = (1, 2, 3, 4, 5, 8, 9, 16)
"""Query lengths of the passes that are timed."""
CONTEXT = 256
"""Positions of notes behind them."""
LEAST, ROUNDS = 3, 5
SECONDS, PATIENCE = 3.0, 30.0
"""An answer is sat `LEAST` times unless that takes longer than `PATIENCE`, and up to `ROUNDS` while it is quick."""
SHOWN = 8
"""Guesses of the runs that are sat side by side."""


class Speculative(Lab):
    """A piece for each paper and number of guesses, one for the passes, one that looks for a smaller model; where there
    is one, a piece for each paper with its guesses."""

    name = "speculative"
    stage = "decode"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        smaller = next((one["name"] for one in others(model) if not one["why"]), "")
        names = [one.name for one in papers(self.name)]
        return [
            *(
                {"piece": f"answer/{name}/{draft}", "kind": "answer", "paper": name, "draft": draft, "by": ""}
                for name in names
                for draft in DRAFTS
            ),
            {"piece": "passes", "kind": "passes"},
            {"piece": "smaller", "kind": "smaller"},
            *(
                {"piece": f"smaller/{name}", "kind": "answer", "paper": name, "draft": DRAFTS[0], "by": smaller}
                for name in (names if smaller else ())
            ),
        ]

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """`answer`: see `answer_of`. `passes`: see `passes_of`. `smaller`: `{"looked": others(…)}`."""
        if piece["kind"] == "answer":
            return answer_of(model, piece["paper"], piece["draft"], piece["by"])
        if piece["kind"] == "passes":
            return passes_of(model)
        return {"looked": others(model)}

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"answers": [told(…)], "passes": {"n", "rows": [{"rows", "times": as long as one row, spread}], "needed":
        {k: accepted guesses a pass must have to pay for k}} or None, "smaller": {"name" or "", "looked": others(…)} or
        None, "same": {"of", "same"} or None, "gained"}`."""
        passes = _costs(results.get("passes"))
        names = [one.name for one in papers(self.name)]
        pieces = [f"answer/{name}/{draft}" for name in names for draft in DRAFTS]
        pieces += [f"smaller/{name}" for name in names]
        answers = [told(one, passes) for piece in pieces if (one := results.get(piece))]
        looked = results.get("smaller", {}).get("looked")
        return {
            "answers": answers,
            "passes": passes,
            "smaller": None if looked is None else {
                "name": next((one["name"] for one in looked if not one["why"]), ""), "looked": looked,
            },
            "same": {"of": len(answers), "same": sum(one["same"] for one in answers)} if answers else None,
            "gained": _gained(answers, names),
        }  # fmt: skip

    def runs(self) -> dict[str, Settings]:
        plain = papers(self.name)[0].settings()
        return {"plain": plain, "drafts": replace(plain, draft=SHOWN)}


LAB = Speculative()


def told(one: Mapping[str, Any], passes: Mapping[str, Any] | None) -> dict[str, Any]:
    """What one answer came to: `{"paper", "draft", "by", "tokens": of the answer, "steps": passes after prefill,
    "drafting": those that read guesses, "offered", "accepted", "rate": accepted of offered or None, "each": accepted
    per pass that read guesses or None, "per_step": tokens a step, "reads": query length of each pass, "kept": accepted
    of each, "plain", "drafted": spreads of seconds a word or None, "ratio": drafted against plain or None, "expected":
    the same from what passes cost alone, or None, "same", "text"}`."""
    reads, kept = ([each[key] for each in one["passes"]] for key in ("read", "accepted"))
    offered, accepted, drafting = sum(reads) - len(reads), sum(kept), sum(read > 1 for read in reads)
    words = len(one["words"]) - 1
    plain, drafted = one["plain"], one["drafted"]
    return {
        **{key: one[key] for key in ("paper", "draft", "by", "plain", "drafted", "same", "text")},
        "tokens": len(one["words"]), "steps": len(reads), "drafting": drafting, "offered": offered,
        "accepted": accepted, "rate": accepted / offered if offered else None,
        "each": accepted / drafting if drafting else None, "per_step": words / len(reads) if reads else None,
        "reads": reads, "kept": kept,
        "ratio": drafted["middle"] / plain["middle"] if plain and drafted else None,
        "expected": sum(cost(passes["rows"], read) for read in reads) / words if passes and words > 0 else None,
    }  # fmt: skip


def cost(rows: Sequence[Mapping[str, Any]], read: int) -> float:
    """How many times as long as one row a pass of query length `read` takes: on a straight line between the two
    measured lengths around it, or on from the last two."""
    found = next((pair for pair in pairwise(rows) if read <= pair[1]["rows"]), (rows[-2], rows[-1]))
    (low, first), (high, second) = ((one["rows"], one["times"]) for one in found)
    return float(first + (second - first) * (read - low) / (high - low))


def _costs(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not found:
        return None
    one = found["rows"][0]["middle"]
    rows = [{**each, "times": each["middle"] / one} for each in found["rows"]]
    return {"n": found["n"], "rows": rows, "needed": {str(k): cost(rows, 1 + k) - 1 for k in DRAFTS}}


def _gained(answers: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any] | None:
    """The first paper and the last one, each with the first number of guesses."""
    found = {(one["paper"], one["draft"]): one for one in answers if one["ratio"] and not one["by"]}
    best, worst = (found.get((name, DRAFTS[0])) for name in (names[0], names[-1]))
    if not best or not worst:
        return None
    return {
        "k": DRAFTS[0], "best": best["ratio"], "per_step": best["per_step"], "worst": worst["ratio"],
        "same": sum(one["same"] for one in answers), "of": len(answers),
    }  # fmt: skip


def answer_of(model: LanguageModel, name: str, draft: int, by: str = "") -> dict[str, Any]:
    """A paper sat without guesses and with at most `draft` of them, in turns; they are looked up in the text, or made
    by the known model `by`: `{"paper", "draft", "by", "limit", "prompt", "words": [[id, text]], "passes": [{"read":
    query length, "drafts": [[id, text]], "chances": the model's probability of each, "accepted"}], "plain", "drafted":
    spreads of seconds a word after the first, None for an answer of one word, "same": the same ids, "text"}`. Raises
    the refusals of the run."""
    from engine.labs.racing import race
    from engine.measure.quiet import undisturbed

    settings = paper("speculative", name).settings(model=model)
    sides = {"plain": settings, "drafted": replace(settings, draft=draft, draft_model=by)}
    sit = partial(race, model, sides, smaller_model(model, by) if by else None)
    with undisturbed():
        rounds = [sit()]
        if _spent(rounds) < SECONDS:
            rounds = []  # the first did not count
        while _again(rounds):
            rounds.append(sit())
    sat = rounds[-1]
    words = len(sat["drafted"].trace.words) - 1
    return {
        "paper": name, "draft": draft, "by": by, "limit": sat["drafted"].limit, **_happened(sat["drafted"].trace),
        **{side: spread([one[side].seconds / words for one in rounds]) if words else None for side in sides},
        "same": sat["drafted"].trace.output_ids == sat["plain"].trace.output_ids,
    }  # fmt: skip


def _again(rounds: Sequence[Mapping[str, Sat]]) -> bool:
    """Whether the pair of answers is to be sat once more."""
    bound = PATIENCE if len(rounds) < LEAST else SECONDS
    return not rounds or (len(rounds) < ROUNDS and _spent(rounds) < bound)


def _spent(rounds: Sequence[Mapping[str, Sat]]) -> float:
    return sum(sat.seconds for one in rounds for sat in one.values())


def _happened(trace: Trace) -> dict[str, Any]:
    """The tokens of a run and its passes after prefill."""
    from engine.trace import Decoded

    assert trace.started is not None
    return {
        "prompt": [[token.id, token.text] for token in trace.started.prompt],
        "words": [[word.token.id, word.token.text] for word in trace.words],
        "passes": [
            {
                "read": event.read, "drafts": [[one.id, one.text] for one in event.drafts],
                "chances": [round(one.probability, 4) for one in event.drafts], "accepted": event.accepted,
            }
            for event in trace.events if isinstance(event, Decoded)
        ],
        "text": trace.output_text,
    }  # fmt: skip


def passes_of(model: LanguageModel) -> dict[str, Any]:
    """Passes of several query lengths over the same notes, in turns; nothing of them is kept. Each with what a step
    does with its logits: `{"n": positions of notes, "rows": [{"rows": query length, spread of seconds}]}`."""
    from engine.labs.papers import of_length
    from engine.labs.timing import alternate
    from engine.model.tap import Pass
    from engine.run import admit, sampling, step

    most = max(ROWS)
    n = min(CONTEXT, model.facts.context - most - 1)
    run = admit(
        "", of_length(model, n, Settings("x", mode="raw", max_new_tokens=most + 1)), model, 0.0, now=lambda: 0.0
    )
    while run.reading:
        step(model, [run], lambda *_: None, give_way)
    cache, _ = run.allocate()

    def read(rows: int) -> None:
        one = Pass([cache], rows, ways=[run.way])
        ids = [run.ids[:rows]]
        sampling.measure(model.forward(ids, one) if rows == 1 else model.forward_all(ids, one)[0])

    sides = {str(rows): partial(read, rows) for rows in ROWS}
    taken = alternate(sides, model.shape.device, rounds=8, seconds=SECONDS)
    return {"n": n, "rows": [{"rows": rows, **spread(taken[str(rows)])} for rows in ROWS]}


def others(model: LanguageModel) -> list[dict[str, Any]]:
    """The known models beside this one, and why each cannot guess for it: `{"name", "title", "why": "absent" (not on
    this machine), "not_smaller", "tokens" (cuts text otherwise), or "" where it can}`."""
    from engine import weights

    listed = [known for known in weights.MODELS.values() if known.name != model.facts.model]
    return [{"name": known.name, "title": known.title, "why": _why_not(model, known.name)} for known in listed]


def _why_not(model: LanguageModel, name: str) -> str:
    from tokenizers import Tokenizer

    from engine import weights

    if weights.MODELS[name].parameters >= model.facts.parameters:
        return "not_smaller"
    if not weights.present(name):
        return "absent"
    listed = Tokenizer.from_file(str(weights.folder(name) / "tokenizer.json")).get_vocab(with_added_tokens=True)
    return "" if listed == model.text.vocabulary else "tokens"


def smaller_model(model: LanguageModel, name: str) -> LanguageModel:
    """A known model loaded beside `model`, on its device and in its dtype, for one measurement."""
    from engine import weights
    from engine.model import load

    return load(weights.folder(name), name=name, device=str(model.shape.device), dtype=model.facts.dtype)
