"""Who takes part in a turn: which runs begin, which one reads, which ones write. Pure; standard library only.

Runs stand in the order in which they came; how one is served beside others is its own setting (`Settings.batching`):

- `continuous`: it begins at once beside all who are served so, joins the others' steps when its paper is read and
  leaves when it is done (iteration-level scheduling, Yu et al. 2022).
- `static`: those who wait when nobody is at it begin together. They read one after another, then write together; who
  comes later waits until all of them are done.
- `alone`: it begins when nobody else is at it, and nobody begins while it goes on.

Nobody overtakes: who may not begin holds up all behind it. So whoever waits begins once those before it are over, and
a step never serves runs of two kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.settings import Batching


@dataclass(frozen=True, slots=True)
class Place:
    """A run that is not over: how it is served, whether it has begun, whether its prompt is read."""

    batching: Batching = "continuous"
    begun: bool = False
    read: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What is done in one turn, by places: who begins (those before it had), who waits, whose prompt is read, in one
    pass, and who then write a word together."""

    begins: tuple[int, ...]
    waits: tuple[int, ...]
    reads: int | None
    writes: tuple[int, ...]


def turn(places: Sequence[Place]) -> Turn:
    """The next turn of `places`, in order of arrival. Somebody always reads or writes, unless there are none."""
    working = [place.batching for place in places if place.begun]
    begins: list[int] = []
    waits: list[int] = []
    for number, place in enumerate(places):
        if place.begun:
            continue
        joining = [places[each].batching for each in begins]
        (begins if not waits and _may_begin(place.batching, working, joining) else waits).append(number)
    taking = [number for number in range(len(places)) if number not in waits]
    reading = [number for number in taking if not places[number].read]
    held = any(places[number].batching == "static" for number in reading)
    writes = () if held else tuple(number for number in taking if places[number].read)
    return Turn(tuple(begins), tuple(waits), reading[0] if reading else None, writes)


def _may_begin(batching: Batching, working: Sequence[Batching], joining: Sequence[Batching]) -> bool:
    """Beside those at work, and those who begin in the same turn."""
    if batching == "continuous":
        return {*working, *joining} <= {"continuous"}
    return not working and set(joining) <= ({"static"} if batching == "static" else set())
