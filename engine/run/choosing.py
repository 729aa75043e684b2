"""A run's next token: chosen from its logits, told with what it was chosen from, and perhaps the last one."""

from __future__ import annotations

from math import isfinite

from torch import Tensor

from engine.run import sampling
from engine.run.ending import finish
from engine.run.run import Emit, Run
from engine.settings import Refusal
from engine.trace import Candidate, Chose, Reason, Wrote


def choose_one(run: Run, logits: Tensor, told: sampling.Measured, row: int, emit: Emit) -> None:
    """Choose, and tell what was chosen from. Raises `Refusal("not_finite")` for logits that are no numbers."""
    if not isfinite(told.entropy[row]):
        raise Refusal("not_finite", dtype=run.model.facts.dtype)
    index = run.sampler.choose(logits, run.ids + run.chosen)
    at = run.at
    own, listed = told.log_probabilities[row], told.ids[row]
    run.chosen.append(index)
    token, released = run.decoder.push(index)
    candidates = tuple(
        Candidate(other, run.model.text.piece(other), probability)
        for other, probability in zip(listed, told.probabilities[row], strict=True)
    )
    rank = listed.index(index) if index in listed else sampling.rank_of(own, index)
    chose = Chose(at, token, float(own[index].exp()), rank, told.entropy[row], candidates)
    run.told.append(chose)
    tell(run, chose, released, emit)


def tell(run: Run, chose: Chose, released: str, emit: Emit) -> None:
    """A word, the text it releases, and the end where it is the last one."""
    emit(run, chose)
    if released:
        emit(run, Wrote(run.at, released))
    if reason := _over(run, chose.token.id):
        finish(run, reason, emit)


def _over(run: Run, index: int) -> Reason | None:
    if index in run.model.end_ids:
        return "eos"
    if run.decoder.stopped:
        return "stop_string"
    return "length" if len(run.chosen) >= run.limit else None
