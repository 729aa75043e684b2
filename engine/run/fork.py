"""Going on from another run's words: its notes are copied, nothing is read again, and one word is put in place of its.

The run that is left alone goes on; the fork is a run like any other from its first own word on.
"""

from __future__ import annotations

from engine.run.run import Run
from engine.settings import Fork, Refusal
from engine.trace import Chose, Reused


def check(run: Run, parent: Run | None, fork: Fork) -> Run:
    """The parent, if `run` can go on from it. Raises `Refusal`: `fork_not_kept`, `fork_differs` where the two would not
    have the same notes, `fork_forgets`, `no_word`, `not_a_candidate`."""
    if parent is None or parent.cache is None or not parent.settings.notes:
        raise Refusal("fork_not_kept")
    keeping = run.settings.keeping
    alike = parent.ids == run.ids and parent.way.heads_off == run.way.heads_off
    if parent.model is not run.model or not alike or parent.settings.keeping != keeping:
        raise Refusal("fork_differs")
    if keeping.last:
        raise Refusal("fork_forgets")
    if not fork.kept < len(parent.told):
        raise Refusal("no_word", word=fork.kept + 1, words=len(parent.told))
    candidate(parent.told[fork.kept], fork.token)
    return parent


def candidate(told: Chose, token: int) -> tuple[float, int]:
    """Probability and rank of a token among those told. Raises `Refusal("not_a_candidate")`."""
    if token == told.token.id:
        return told.probability, told.rank
    for rank, one in enumerate(told.candidates):
        if one.id == token:
            return one.probability, rank
    raise Refusal("not_a_candidate")


def take_over(run: Run, parent: Run, fork: Fork) -> tuple[Reused, Chose, str]:
    """Give `run` the parent's notes and words; what there is to tell: the notes, the word put, the text it released.

    Raises as `check`: the parent may have been let go since.
    """
    check(run, parent, fork)
    cache, tape = run.allocate()
    assert parent.cache is not None and parent.tape is not None
    stop = len(run.ids) + fork.kept
    if stop > cache.capacity:
        raise Refusal("notes_bound", bytes=run.settings.memory)
    cache.take(parent.cache, stop)
    tape.take(parent.tape, stop)
    text, held = "", 0
    for told in parent.told[: fork.kept]:
        token, released = run.decoder.push(told.token.id)
        text, held = text + released, 0 if released else held + (not token.special)
        run.chosen.append(told.token.id)
        run.told.append(told)
    run.sampler.go_on(parent.sampler, fork.kept + 1)
    keys, values = cache.norm_bytes(slice(None), 0, stop)
    reused = Reused(
        run.at, parent.id, stop, cache.snapshot(), keys.numpy().tobytes(), values.numpy().tobytes(),
        tuple(parent.told[: fork.kept]), text, held,
    )  # fmt: skip
    choice = parent.told[fork.kept]
    probability, rank = candidate(choice, fork.token)
    token, released = run.decoder.push(fork.token)
    chose = Chose(run.at, token, probability, rank, choice.entropy, choice.candidates)
    run.chosen.append(fork.token)
    run.told.append(chose)
    return reused, chose, released
