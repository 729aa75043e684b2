"""How long the first word of a paper's beginning takes: a run's first tokens read once more, on notes thrown away.

A job as in `engine.jobs`, one length each: whoever wants all lengths asks one after another, and others' words come
between. The run itself stays as it is.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from engine.cache import RunCache
from engine.measure import clock
from engine.measure.quiet import Elsewhere, undisturbed
from engine.model.tap import Pass
from engine.run import CHUNK, Run, sampling
from engine.settings import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.jobs.desk import Desk

SECONDS = 1.0
"""Patience for one length, after a first reading that warms up; a reading that takes longer is done once."""
MOST = 5
"""Readings that count."""
LONGEST = 4096
"""Tokens of a beginning: reading more would take a laptop's engine away for too long."""


def beginning(desk: Desk, run: str, tokens: int) -> dict[str, Any]:
    """Read a run's first `tokens` tokens and choose the likeliest word after them.

    `{"tokens", "prompt", "token": the word's id, "seconds": of each reading, one pass and the choice, "best", "middle",
    "active", "busy"}` (see `engine.jobs.machine.Peak`). Tokenising and waiting for one's turn are not in it.

    Raises `Refusal`: `not_kept`, `no_beginning`, `too_long_to_time`, `others_at_work` for more than a chunk while runs
    are active, and those of `Desk.give_way`, which is asked between layers.
    """
    source = desk.run(run)
    if not 1 <= tokens <= len(source.ids):
        raise Refusal("no_beginning", most=len(source.ids))
    if tokens > LONGEST:
        raise Refusal("too_long_to_time", tokens=tokens, bound=LONGEST)
    if tokens > CHUNK and desk.active:
        raise Refusal("others_at_work")
    elsewhere = Elsewhere()
    with undisturbed():
        seconds, token = read(source, tokens, desk.give_way)
    return {
        "tokens": tokens, "prompt": len(source.ids), "token": token, "seconds": seconds, "best": min(seconds),
        "middle": median(seconds), "active": len(desk.active), "busy": elsewhere.cores,
    }  # fmt: skip


def read(source: Run, tokens: int, give_way: Callable[[], None]) -> tuple[list[float], int]:
    """Seconds of each reading that counts, and the id of the likeliest word after it."""
    cache = RunCache(source.model.shape, tokens)
    warm, token = _once(source, cache, tokens, give_way)
    seconds = [warm] if warm > SECONDS else []
    while not seconds or (len(seconds) < MOST and sum(seconds) < SECONDS):
        seconds.append(_once(source, cache, tokens, give_way)[0])
    return seconds, token


def _once(source: Run, cache: RunCache, tokens: int, give_way: Callable[[], None]) -> tuple[float, int]:
    """One pass and one choice as `engine.run` does them: their seconds, without those of giving way."""
    give_way()
    cache.length = 0
    one = Pass([cache], tokens, lambda index, seconds: give_way(), ways=[source.way])
    logits = source.model.forward([source.ids[:tokens]], one)
    one.marks.mark()
    clock.synchronise(source.model.shape.device)
    begin = clock.now()
    token = sampling.measure(logits).ids[0][0]
    return sum(one.marks.seconds()) + clock.now() - begin, token
