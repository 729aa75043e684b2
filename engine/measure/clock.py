"""Time, and the device's own time. One clock for everything, so that tests can bring a fake one.

`now()` is `time.perf_counter`: on Linux, macOS and Windows it counts from one system-wide origin, so times taken
in the service's process and in the engine's process can be subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch

now = time.perf_counter


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was given, so that the next `now()` is honest."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


class Marks:
    """Marks set during one forward pass; afterwards the seconds between them.

    On a CPU a mark is a reading of the clock. On CUDA and MPS it is an event in the device's own queue: reading
    those waits once, at the end, instead of once per layer.
    """

    def __init__(self, device: torch.device, clock: Callable[[], float] = now) -> None:
        self._device = device
        self._clock = clock
        self._seconds: list[float] = []
        self._events: list[torch.Event] = []
        self._last = clock()
        if device.type != "cpu":
            self._record()

    def mark(self) -> float:
        """Set a mark. Returns the seconds since the one before (0 where only the device knows)."""
        if self._device.type != "cpu":
            self._record()
            return 0.0
        time = self._clock()
        self._seconds.append(time - self._last)
        self._last = time
        return self._seconds[-1]

    def resume(self) -> None:
        """What was done on the CPU since the last mark was not the model's work: the next interval begins now.
        (A device works on meanwhile; its own clock needs no such correction.)"""
        self._last = self._clock()

    def _record(self) -> None:
        event = torch.Event(self._device.type, enable_timing=True)
        event.record()
        self._events.append(event)

    def seconds(self) -> Sequence[float]:
        """The intervals between the marks, in seconds. Waits for the device."""
        if self._device.type == "cpu":
            return self._seconds
        synchronise(self._device)
        return [before.elapsed_time(after) / 1000 for before, after in pairwise(self._events)]
