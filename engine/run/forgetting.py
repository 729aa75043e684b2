"""Which notes a run lets go after a pass (`engine.cache.forgetting` says which stay), and what there is to tell."""

from __future__ import annotations

from engine.cache.forgetting import ForgettingCache
from engine.run.run import Run
from engine.trace import Forgot

OBSERVED = 32
"""The prompt's last rows, whose looks tell which positions are looked at most."""


def let_go(run: Run) -> Forgot | None:
    """After a pass: count what its newest rows looked at, and let go what is not to be kept; what there is to tell."""
    cache = run.cache
    if not isinstance(cache, ForgettingCache):
        return None
    if run.settings.keeping.heavy:
        newest = 1 if run.chosen else min(OBSERVED, cache.length)
        for layer in range(cache.shape.layers):
            rows = run.lens.rows(layer, cache.length - newest, cache.length)
            cache.look(rows.sum((0, 1)).cpu())
    positions = cache.forget()
    return Forgot(run.at, tuple(positions), cache.snapshot()) if positions else None
