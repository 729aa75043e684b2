"""Time, and the device's own time. One clock for everything, so that tests can bring a fake one.

`now()` is `time.perf_counter`: on Linux, macOS and Windows it counts from one system-wide origin, so times taken
in the service's process and in the engine's process can be subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

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
        self._times: list[float] = []
        self._events: list[torch.Event] = []
        self.mark()

    def mark(self) -> float:
        """Set a mark. Returns the seconds since the one before (0 where only the device knows)."""
        if self._device.type == "cpu":
            self._times.append(self._clock())
            return self._times[-1] - self._times[-2] if len(self._times) > 1 else 0.0
        event = torch.Event(self._device.type, enable_timing=True)
        event.record()
        self._events.append(event)
        return 0.0

    def seconds(self) -> Sequence[float]:
        """The intervals between the marks, in seconds. Waits for the device."""
        if self._device.type == "cpu":
            return [after - before for before, after in zip(self._times, self._times[1:], strict=False)]
        synchronise(self._device)
        pairs = zip(self._events, self._events[1:], strict=False)
        return [before.elapsed_time(after) / 1000 for before, after in pairs]
