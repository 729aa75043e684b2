"""Who may sit down: a run is made of what somebody asked for, or refused with the reason."""

from __future__ import annotations

from collections.abc import Callable

from engine.measure import clock
from engine.model import LanguageModel
from engine.run import drafting, fork, reread
from engine.run.run import Run
from engine.settings import Settings


def admit(
    run_id: str,
    settings: Settings,
    model: LanguageModel,
    pressed: float,
    now: Callable[[], float] = clock.now,
    parent: Run | None = None,
    drafts: LanguageModel | None = None,
) -> Run:
    """A run that has not begun. `pressed` is when the person pressed start, on the clock `now`; `parent` the run that
    `settings.fork` names, if it is kept; `drafts` the model that `settings.draft_model` names.

    Raises `Refusal`: those of `Run`, `engine.run.fork.check`, `engine.run.reread.check`, `engine.run.drafting.drafter`.
    """
    run = Run(run_id, settings, model, pressed, now)
    if settings.fork:
        run.parent = fork.check(run, parent, settings.fork)
        run.limit = max(run.limit, settings.fork.kept + 1)
    reread.check(run)
    run.drafter = drafting.drafter(settings, model, drafts, len(run.ids) + run.limit)
    return run
