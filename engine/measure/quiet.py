"""Whether the machine was ours while we measured, and what it has left. Best effort: None where nobody tells."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch


@contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage collection meanwhile, as `timeit` does it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


BUSY = 0.1
"""Cores kept busy by others from which on times are not to be trusted."""
_BLUR = 0.05
"""Seconds by which the two accounts of processor time may differ: both count in hundredths, sampled."""


class Elsewhere:
    """What the processor did for others since this was made. Linux tells; on other systems `cores` is None."""

    def __init__(self) -> None:
        self._begin = (time.monotonic(), _busy_seconds(), _own_seconds())

    @property
    def cores(self) -> float | None:
        """Cores kept busy by other programs, on average."""
        began, busy, own = self._begin
        busy_now = _busy_seconds()
        if busy is None or busy_now is None:
            return None
        others = busy_now - busy - (_own_seconds() - own)
        return max(0.0, others - _BLUR) / max(time.monotonic() - began, _BLUR)

    @property
    def disturbing(self) -> bool:
        """Whether that is more than times bear."""
        return (self.cores or 0) > BUSY


def _own_seconds() -> float:
    """Of this process and of the children it has waited for: some labs compute in one."""
    return sum(os.times()[:4])


def _busy_seconds() -> float | None:
    """Of all cores since the machine started: all of `/proc/stat` but idle time and waiting for disks."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return None
    return float(sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def load_average() -> float | None:
    """Of the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def free_bytes(device: torch.device) -> int | None:
    """Memory that can still be had on the device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
