"""Several words in one pass: a draft is guessed, read at once like a small prefill, and kept as far as it is right.

The draft comes from a smaller model (`engine.run.drafting`), or from the text itself (prompt lookup, Saxena
2023): where the last few tokens stand earlier in prompt or answer, what followed them there. Each word is then chosen
as always, from the model's own logits and with the same random numbers; a draft is right while it is what was chosen
anyway. So the answer is the one without drafts (Leviathan et al. 2023 show the same for a draft that is a
distribution).
"""

from __future__ import annotations

from torch import Tensor

from engine.model.tap import Pass
from engine.run import sampling
from engine.run.choosing import choose_one
from engine.run.run import Emit, Run
from engine.trace import Candidate, Decoded, Event

LONGEST = 3
"""Tokens that must stand earlier in the text, if so many do; a shorter ending is tried after a longer one."""


def draft_of(run: Run) -> list[int]:
    """Tokens that may come next: at most `settings.draft`, and no more than the answer and its notes have room for."""
    text, cache = run.ids + run.chosen, run.cache
    room = min(run.settings.draft, run.limit - len(run.chosen) - 1, cache.capacity - len(text) if cache else 0)
    if room <= 0:
        return []
    return run.drafter.draft(text, room) if run.drafter else continuation(text, room)


def continuation(text: list[int], most: int) -> list[int]:
    """What followed the latest earlier place where the text's last tokens stand: `most` tokens at most."""
    for size in range(min(LONGEST, len(text) - 1), 0, -1):
        ending = text[-size:]
        for start in range(len(text) - size - 1, -1, -1):
            if text[start : start + size] == ending:
                return text[start + size : start + size + most]
    return []


def step(run: Run, draft: list[int], emit: Emit) -> None:
    """One pass over the newest token and the draft; the words it gives. What is refused leaves no note behind."""
    cache, tape = run.allocate()
    start = cache.length
    one = Pass([cache], 1 + len(draft), ways=[run.way])
    logits = run.model.forward_all([[run.chosen[-1], *draft]], one)[0]
    one.marks.mark()
    at, told, seconds = run.at, sampling.measure(logits), tuple(one.marks.seconds())
    words: list[Event] = []
    before = len(run.chosen)
    for place in range(1 + len(draft)):
        choose_one(run, logits[place], told, place, lambda _, event: words.append(event))
        if run.finished or (place < len(draft) and run.chosen[-1] != draft[place]):
            break
    kept = len(run.chosen) - before
    keys, values = cache.norm_bytes(slice(None), start, start + kept)
    one.commit_part(tape, kept)
    event = Decoded(
        at, start, sum(seconds), seconds[:-1], seconds[-1], cache.snapshot(), keys.numpy().tobytes(),
        values.numpy().tobytes(), 1, one.tokens, _told(run, draft, told.log_probabilities), kept - 1,
    )  # fmt: skip
    for each in (event, *words):
        emit(run, each)


def _told(run: Run, draft: list[int], log_probabilities: Tensor) -> tuple[Candidate, ...]:
    """The drafted tokens, each with the probability the model gave it in its place."""
    return tuple(
        Candidate(token, run.model.text.piece(token), float(log_probabilities[place, token].exp()))
        for place, token in enumerate(draft)
    )
