"""How many bytes a piece of work needs at once beside what was there before, by the allocator's own account.

On CUDA the allocator keeps the highest mark itself. On the CPU torch's profiler notes every allocation and release; the
highest running sum of these is the peak. Apple's MPS tells neither: None there, and whoever asks computes instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler tells standard error of each start and stop otherwise


def peak_bytes(work: Callable[[], object], device: torch.device) -> int | None:
    """The most bytes that were allocated at once while `work` was done, what it gives back included."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    if device.type != "cpu":
        return None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    assert watched.profiler is not None
    events = [event for event in watched.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most
