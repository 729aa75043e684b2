"""How a run ends: why, with which sentence, and what is given back."""

from __future__ import annotations

import torch

from engine.run.run import Emit, Run
from engine.settings import Refusal
from engine.trace import Finished, Reason, Wrote


class Halt(Exception):
    """Raised between two layers to give a forward pass up."""


def finish(run: Run, reason: Reason, emit: Emit, code: str = "", **values: str | int | float) -> None:
    """End a run: release what the decoder held back, then say why."""
    if text := run.decoder.flush():
        emit(run, Wrote(run.at, text))
    run.finished = True
    run.drafter = None  # its notes are of no use to anybody any more
    device = run.model.shape.device
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    emit(run, Finished(run.at, reason, code, tuple(values.items()), peak))


def fail(run: Run, error: Exception, emit: Emit) -> None:
    """End a run with the sentence for what went wrong."""
    if is_out_of_memory(error):
        forget(run, emit, "out_of_memory")
        if run.model.shape.device.type == "cuda":
            torch.cuda.empty_cache()
    elif isinstance(error, Refusal) and error.code in ("notes_bound", "no_blocks"):
        forget(run, emit, error.code, **error.values)
    elif isinstance(error, Refusal):
        finish(run, "error", emit, error.code, **error.values)
    else:
        finish(run, "error", emit, "model_failed", why=f"{type(error).__name__}: {error}"[:300])


def forget(run: Run, emit: Emit, code: str, **values: str | int | float) -> None:
    """End a run whose notes have no room, and give back what they took."""
    run.cache = run.tape = None
    finish(run, "out_of_memory", emit, code, **values)


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA and MPS raise `torch.OutOfMemoryError` or say so; the CPU's allocator raises a plain RuntimeError."""
    text = str(error)
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
        isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)
    )


def reset_peak(device: torch.device) -> None:
    """Begin to watch peak memory anew; for a run that has the device to itself (others would lose their peak)."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
