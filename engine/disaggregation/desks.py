"""The simulation: machines that read and write, people who wait, notes that travel.

A machine takes turns as `engine.run.step` does: at most one prefill pass (the whole paper, or a chunk of it while
others write here), then one decode step for everybody who writes here. First come, first read. The pass over the end of
a paper chooses the first word; where somebody else writes, the notes of the paper then travel over one link, one after
another, and only the second word waits for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from simpy import Environment, Event, Resource

from engine.disaggregation.costs import Costs
from engine.disaggregation.load import Arrival

Turns = Generator[Event, Any, None]


@dataclass(frozen=True, slots=True)
class Setup:
    """`readers` of the machines read only and the others write only; 0: each does both. `chunk`: tokens of a prefill
    pass while others write on the same machine, 0 for the whole paper. `bandwidth` in bits per second, `latency` in
    seconds for each journey."""

    machines: int = 2
    readers: int = 0
    chunk: int = 0
    bandwidth: float = 1e10
    latency: float = 0.001


@dataclass(slots=True)
class Person:
    """What became of one. Times in seconds from the first moment; `words`: when each word was there."""

    number: int
    at: float
    prompt: int
    answer: int
    read: int = 0
    """Positions read so far."""
    began: float = 0.0
    """When its first prefill pass began."""
    sent: float | None = None
    """When its notes set out, where they travelled,"""
    landed: float | None = None
    """and when they were there."""
    reader: str = ""
    writer: str = ""
    words: list[float] = field(default_factory=list)

    @property
    def ttft(self) -> float:
        return self.words[0] - self.at

    @property
    def tpot(self) -> float | None:
        """Seconds per word after the first; None for one word."""
        return (self.words[-1] - self.words[0]) / (len(self.words) - 1) if len(self.words) > 1 else None

    @property
    def pause(self) -> float | None:
        """The longest gap between two words."""
        return max((after - before for before, after in pairwise(self.words)), default=None)


class Machine:
    """`turns` is its process. `reads`: (start, stop, person, tokens) of each prefill pass; `writes`: [start, stop, who
    wrote, steps] of decode steps in a row with the same people."""

    def __init__(self, exam: Exam, name: str, hands_over: bool) -> None:
        self.name = name
        self.reads: list[tuple[float, float, int, int]] = []
        self.writes: list[tuple[float, float, tuple[int, ...], int]] = []
        self._exam = exam
        self._hands_over = hands_over
        self._queue: deque[Person] = deque()
        self._landed: deque[Person] = deque()
        self._reading: Person | None = None
        self._writing: list[Person] = []
        self._who: tuple[int, ...] = ()
        self._seen = 0  # positions that those who write see in the next step, together
        self._left = 0  # steps until the first of them is done
        self._rest: Event | None = None
        exam.env.process(self.turns())

    @property
    def load(self) -> int:
        """People in hand."""
        return len(self._queue) + len(self._landed) + len(self._writing) + (self._reading is not None)

    def queue(self, person: Person) -> None:
        """Somebody with a paper to be read."""
        person.reader = self.name
        self._queue.append(person)
        self._wake()

    def land(self, person: Person) -> None:
        """Somebody whose notes are here and who has a first word."""
        self._landed.append(person)
        self._wake()

    def _wake(self) -> None:
        if self._rest and not self._rest.triggered:
            self._rest.succeed()

    def turns(self) -> Turns:
        while True:
            if not (self._writing or self._queue or self._landed or self._reading):
                self._rest = self._exam.env.event()
                yield self._rest
            while self._landed and self._room():
                person = self._landed.popleft()
                person.writer = self.name
                self._now_write([*self._writing, person])
            if self._reading is None and self._queue and self._room():
                self._reading = self._queue.popleft()
            if self._reading:
                yield from self._read(self._reading)
            if self._writing:
                begin = self._exam.env.now
                yield self._exam.env.timeout(self._step())
                self._wrote(begin)

    def _room(self) -> bool:
        return len(self._writing) < self._exam.costs.most

    def _read(self, person: Person) -> Turns:
        """One prefill pass; where others write here, a chunk only. Whoever has been read writes from the next turn."""
        env, chunk, others = self._exam.env, self._exam.setup.chunk, self._writing
        start, begin = person.read, env.now
        stop = min(person.prompt, start + chunk) if chunk and others else person.prompt
        if not start:
            person.began = begin
        yield env.timeout(self._exam.costs.read(start, stop))
        person.read = stop
        self.reads.append((begin, env.now, person.number, stop - start))
        if stop < person.prompt:
            return
        self._reading = None
        person.words.append(env.now)
        if person.answer == 1:
            person.writer = self.name
        elif self._hands_over:
            env.process(self._exam.send(person))
        else:
            self._landed.append(person)

    def _step(self) -> float:
        """Seconds of the next decode step: a word for everybody who writes here."""
        exam, count = self._exam, len(self._writing)
        context = self._seen / count
        exam.steps += 1
        exam.outside += exam.costs.outside(context)
        return exam.costs.step(count, context)

    def _wrote(self, begin: float) -> None:
        """The decode step that began then is over."""
        now, writing = self._exam.env.now, self._writing
        for person in writing:
            person.words.append(now)
        self._seen += len(writing)
        last = self.writes[-1] if self.writes else None
        if last and last[1] == begin and last[2] is self._who:
            self.writes[-1] = (last[0], now, self._who, last[3] + 1)
        else:
            self.writes.append((begin, now, self._who, 1))
        self._left -= 1
        if not self._left:
            self._now_write([person for person in writing if len(person.words) < person.answer])

    def _now_write(self, people: list[Person]) -> None:
        self._writing = people
        self._who = tuple(person.number for person in people)
        self._seen = sum(person.prompt + len(person.words) for person in people)
        self._left = min((person.answer - len(person.words) for person in people), default=0)


class Exam:
    """One run of the simulation: `people` as they came, `machines`, what the link carried (`travels`: (start, stop,
    person)). Of `steps` decode steps `outside` saw more or fewer positions than were measured; of the papers, `beyond`
    were longer or shorter."""

    def __init__(self, costs: Costs, setup: Setup, people: Sequence[Arrival]) -> None:
        self.costs, self.setup, self.env = costs, setup, Environment()
        self.people = [Person(number, one.at, one.prompt, one.answer) for number, one in enumerate(people)]
        self.travels: list[tuple[float, float, int]] = []
        self.steps = self.outside = 0
        self.beyond = sum(not costs.lengths[0] <= one.prompt <= costs.lengths[1] for one in people)
        names = [f"m{number + 1}" for number in range(setup.machines)]
        self.machines = [Machine(self, name, number < setup.readers) for number, name in enumerate(names)]
        self._readers = self.machines[: setup.readers or setup.machines]
        self._writers = self.machines[setup.readers :]
        self._link = Resource(self.env, capacity=1)
        self.env.process(self._arrive())
        self.env.run()

    @property
    def end(self) -> float:
        """When the last word was there."""
        return max(person.words[-1] for person in self.people)

    def _arrive(self) -> Turns:
        for person in self.people:
            yield self.env.timeout(max(0.0, person.at - self.env.now))
            min(self._readers, key=lambda machine: machine.load).queue(person)

    def send(self, person: Person) -> Turns:
        """The notes of a paper over the link, when it is their turn."""
        setup = self.setup
        with self._link.request() as turn:
            yield turn
            person.sent = self.env.now
            yield self.env.timeout(self.costs.travel(person.prompt, setup.bandwidth, setup.latency))
            person.landed = self.env.now
        self.travels.append((person.sent, person.landed, person.number))
        min(self._writers, key=lambda machine: machine.load).land(person)
