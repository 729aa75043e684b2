"""What a remedy's measurements are: a `Lab` cut into pieces of a second or two, and the figures that follow from them.

The page, the service and `python -m engine lab NAME` all call the same `measure` and `figures`, so what they show
agrees. The service asks labs for their figures and runs, and never loads torch: a lab's module imports what measures
inside `measure` and `plan`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from engine.settings import Settings

if TYPE_CHECKING:
    from engine.model import LanguageModel

Stage = Literal["prefill", "decode", "both"]
Results = Mapping[str, Mapping[str, Any]]
"""What was measured so far: by the piece's name, what `measure` gave."""


class Lab(ABC):
    """One remedy. Objects hold nothing: everything is in the arguments."""

    name: str
    """Of the module, the page, the command and the words."""
    stage: Stage
    """Which stage the remedy acts on."""
    version: int = 1
    """Goes up when results that were kept before cannot be read any more: they then count as not measured."""

    @abstractmethod
    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        """The pieces to measure, in order: plain dicts, each with a `"piece"` of its own (a name of at most 60 of
        `a–z A–Z 0–9 . _ / -`) and its arguments. A piece takes a second or two.

        The entry page's button leaves out a piece with `"needed": False`, which `gained` does without, and one that
        cannot be measured here, whose `"lacking"` is the code of the sentence that says why.
        """

    @abstractmethod
    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """Measure one piece of the plan: plain JSON values, seconds, bytes; nothing of anybody's run is touched.

        Raises `Refusal` where it cannot be measured here, and whatever `give_way` raises.
        """

    @abstractmethod
    def figures(self, results: Results) -> dict[str, Any]:
        """The figures the page shows, from what was measured so far; None where a piece is missing. Pure.

        Its `"gained"` is None, or what the entry page says of the remedy: a flat dict of numbers and texts that fill
        the gaps of `gained.NAME` in `assets/words/*/remedies.json`.
        """

    @abstractmethod
    def runs(self) -> dict[str, Settings]:
        """Real runs to sit side by side, by name; the first is the one without the remedy."""


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Median and range of repeats: `{"middle", "low", "high", "repeats"}`."""
    return {"middle": median(values), "low": min(values), "high": max(values), "repeats": len(values)}


_way: ContextVar[Callable[[], None]] = ContextVar("way", default=lambda: None)


def give_way() -> None:
    """Between two steps of a piece: raises `Refusal` when somebody's run waits, or nobody for the piece."""
    _way.get()()


@contextmanager
def giving_way(ask: Callable[[], None]) -> Iterator[None]:
    """Let `give_way` ask this while a piece is measured."""
    token = _way.set(ask)
    try:
        yield
    finally:
        _way.reset(token)
