"""Notes that are let go (`engine.cache.forgetting`): all but the newest, the sink, and those looked at most; what
goes, how far the answer is from exact, and whether a fact survives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.labs.base import Lab, Results
from engine.labs.lessons import Paper, paper, papers
from engine.labs.smaller_notes import fact_positions, gained, summed
from engine.settings import Keeping, Settings
from engine.trace import Forgot, Trace

if TYPE_CHECKING:
    from engine.model import LanguageModel

SINK = 4
"""Positions at the very beginning that StreamingLLM keeps (Xiao et al. 2023)."""
WAYS = ("window", "sink", "heavy")
BUDGETS = (64, 128, 192)
"""Positions kept, the same for every way, so that only the choice differs."""


def kept_as(way: str, budget: int) -> Keeping:
    """`window`: the newest alone; `sink`: the first few and the newest; `heavy`: half of them those looked at most."""
    if way == "window":
        return Keeping(last=budget)
    if way == "sink":
        return Keeping(first=SINK, last=budget - SINK)
    return Keeping(first=SINK, heavy=budget // 2, last=budget - budget // 2 - SINK)


class Forgetting(Lab):
    """A piece for each question about the text, each way and each budget; and one for each question's own tokens."""

    name = "forgetting"
    stage = "decode"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        pieces: list[dict[str, Any]] = []
        for one in papers(self.name):
            pieces.append({"piece": f"{one.name}/paper", "paper": one.name})
            pieces += [
                {"piece": f"{one.name}/{way}/{budget}", "paper": one.name, "way": way, "budget": budget}
                for budget in BUDGETS
                for way in WAYS
            ]
        return pieces

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        chosen = paper(self.name, piece["paper"])
        if "way" not in piece:
            return tokens_of(model, chosen)
        return forgotten(model, chosen, piece["way"], piece["budget"])

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"papers": {name: {"prompt", "right", "text": its tokens or None, "ways": {way: {budget: the piece's result
        with what `engine.labs.smaller_notes.summed` adds}}, "least": {way: the smallest budget at which the answer is
        right, None where none is}}}, "budgets", "gained"}`."""
        told = {one.name: self._paper(one, results) for one in papers(self.name)}
        found = [
            {"budget": int(budget), **(gained(one) or {})}
            for paper_ in told.values()
            for budgets in paper_["ways"].values()
            for budget, one in budgets.items()
            if one["right"] and one["exact_right"] and one["slower"]
        ]
        best = min(found, key=lambda one: one["share"], default=None)
        return {"papers": told, "budgets": list(BUDGETS), "gained": best}

    def _paper(self, one: Paper, results: Results) -> dict[str, Any]:
        ways = {
            way: {
                str(budget): summed(found) for budget in BUDGETS if (found := results.get(f"{one.name}/{way}/{budget}"))
            }
            for way in WAYS
        }
        least = {way: next((n for n, told in budgets.items() if told["right"]), None) for way, budgets in ways.items()}
        return {
            "prompt": one.prompt, "right": list(one.right), "text": results.get(f"{one.name}/paper"), "ways": ways,
            "least": {way: int(n) if n else None for way, n in least.items()},
        }  # fmt: skip

    def runs(self) -> dict[str, Settings]:
        first, budget = papers(self.name)[0], 192
        return {"exact": first.settings(), **{way: first.settings(kept_as(way, budget)) for way in WAYS}}


def tokens_of(model: LanguageModel, chosen: Paper) -> dict[str, Any]:
    """A paper's tokens: `{"tokens": texts, "fact": the fact's positions, "own": [start, stop) of the person's}`."""
    prompt = model.text.prompt(chosen.settings(model=model))
    return {
        "tokens": [token.text for token in prompt.tokens],
        "fact": fact_positions(prompt.tokens, prompt.text, chosen.fact),
        "own": [prompt.own_start, prompt.own_stop],
    }


def forgotten(model: LanguageModel, chosen: Paper, way: str, budget: int) -> dict[str, Any]:
    """One paper with all but `budget` of its notes let go: `Beside.told`, `"way"`, `"budget"`, `"gone"` (`gone_of`)
    and `"fact_kept"`: how many of the fact's positions are still there at the end."""
    from engine.labs.forcing import beside

    both = beside(model, chosen.settings(model=model), kept_as(way, budget))
    told = both.told(chosen.right)
    gone = gone_of(both.kept.trace, told["columns"])
    prompt = both.kept.run.prompt
    fact = fact_positions(prompt.tokens, prompt.text, chosen.fact)
    return {
        "paper": chosen.name, "way": way, "budget": budget, **told, "gone": gone,
        "fact": fact, "fact_kept": sum(gone[position] is None for position in fact),
    }  # fmt: skip


def gone_of(trace: Trace, columns: int) -> list[int | None]:
    """By position: the first word, counted from 0, that was made without it; None for what stays."""
    gone: list[int | None] = [None] * columns
    chosen = 0
    for event in trace.events:
        if event.type == "chose":
            chosen += 1
        elif isinstance(event, Forgot):
            for position in event.positions:
                gone[position] = chosen + 1  # the word that is chosen next was made by a pass that still saw it
    return gone


LAB = Forgetting()
