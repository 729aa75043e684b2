"""The remedies' measurements: one module per lab, named as its page (`engine.labs.base` says what a lab is).

From outside: `LABS` and `jobs.known`. The service imports labs for their figures, which are pure; what measures is
imported inside `measure`.
"""

from __future__ import annotations

from engine.labs import (
    batching,
    chunked,
    disaggregation,
    flash,
    forgetting,
    fusion,
    groups,
    paged,
    prefix,
    smaller_notes,
    speculative,
)
from engine.labs.base import Lab

_ALL: tuple[Lab, ...] = (
    flash.LAB, fusion.LAB, groups.LAB, smaller_notes.LAB, forgetting.LAB, paged.LAB, prefix.LAB, chunked.LAB,
    batching.LAB, speculative.LAB, disaggregation.LAB,
)  # fmt: skip
"""In the order of the pages. A new lab is its import above and one object here."""

LABS: dict[str, Lab] = {lab.name: lab for lab in _ALL}
