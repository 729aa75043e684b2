"""A run's events as one value, and the times that follow from them: TTFT, TPOT, ITL. Never stored, always computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from engine.trace.events import Chose, Event, Finished, Reused, Started, Wrote


@dataclass(frozen=True, slots=True)
class Trace:
    """A run's events, complete or so far. Times are properties, never stored."""

    events: tuple[Event, ...] = field(default=())

    @property
    def started(self) -> Started | None:
        return next((event for event in self.events if isinstance(event, Started)), None)

    @property
    def finished(self) -> Finished | None:
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Finished) else None

    @property
    def reused(self) -> Reused | None:
        return next((event for event in self.events if isinstance(event, Reused)), None)

    @property
    def chosen(self) -> tuple[Chose, ...]:
        """What this run chose itself."""
        return tuple(event for event in self.events if isinstance(event, Chose))

    @property
    def words(self) -> tuple[Chose, ...]:
        """The whole answer: what came along with another run's notes, then what this run chose."""
        return (*(self.reused.written if self.reused else ()), *self.chosen)

    @property
    def output_ids(self) -> tuple[int, ...]:
        return tuple(event.token.id for event in self.words)

    @property
    def output_text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, (Reused, Wrote)))

    @property
    def ttft(self) -> float | None:
        """Time to first token in seconds: from pressing start until the first token was chosen."""
        return ttft([event.at for event in self.chosen])

    @property
    def tpot(self) -> float | None:
        """Time per output token in seconds, see `tpot`."""
        return tpot([event.at for event in self.chosen])

    @property
    def itl(self) -> tuple[float, ...]:
        """Inter-token latencies in seconds: the gaps between tokens chosen one after another."""
        return itl([event.at for event in self.chosen])


def ttft(arrivals: Sequence[float]) -> float | None:
    """Time to first token: the first arrival (seconds since start), None before it."""
    return arrivals[0] if arrivals else None


def tpot(arrivals: Sequence[float]) -> float | None:
    """Time per output token after the first: (last - first) / (tokens - 1); None with fewer than two tokens."""
    return (arrivals[-1] - arrivals[0]) / (len(arrivals) - 1) if len(arrivals) > 1 else None


def itl(arrivals: Iterable[float]) -> tuple[float, ...]:
    """Inter-token latencies: differences of consecutive arrivals."""
    return tuple(after - before for before, after in pairwise(arrivals))
