"""Will it fit, and what will it cost: memory and work from a model's config alone. Standard library only.

From outside: `read.read` and `read.of_run` give an `Architecture`; `plan`, `memory` and `cost` compute from it.
Nothing here loads a model; tests hold every number to the library's own.
"""

from engine.plan.fits import (
    MOST_BATCH,
    MOST_CONTEXT,
    Plan,
    Term,
    differs,
    largest_context,
    over_time,
    plan,
    terms,
)

__all__ = [
    "MOST_BATCH",
    "MOST_CONTEXT",
    "Plan",
    "Term",
    "differs",
    "largest_context",
    "over_time",
    "plan",
    "terms",
]
