"""Which device and which dtype: asked for, or the best that is here."""

from __future__ import annotations

import platform
import time
from pathlib import Path

import torch

from engine.settings import Refusal


def choose_device(asked: str) -> torch.device:
    """CUDA, then MPS, then CPU, unless one is asked for. Raises `Refusal("unknown_device")`."""
    if asked:
        try:
            device = torch.device(asked)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError) as error:
            raise Refusal("unknown_device", device=asked) from error
        if device.type not in ("cuda", "mps", "cpu"):
            raise Refusal("unknown_device", device=asked)
        return device
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def choose_dtype(asked: str, device: torch.device) -> tuple[torch.dtype, str]:
    """The dtype and why. On a CPU bf16 may be several times faster or slower than fp32: measured here, briefly.

    Raises `Refusal("unknown_dtype")`.
    """
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    short = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    if asked:
        if short.get(asked, asked) not in known:
            raise Refusal("unknown_dtype", dtype=asked)
        return known[short.get(asked, asked)], "asked"
    if device.type != "cpu":
        return torch.bfloat16, "default"
    seconds = {dtype: _matmul_seconds(dtype) for dtype in (torch.float32, torch.bfloat16)}
    return min(seconds, key=lambda dtype: seconds[dtype]), "measured_faster"


def _matmul_seconds(dtype: torch.dtype) -> float:
    """Best of several short products of the two kinds that matter: one row (decode) and many (prefill)."""
    weight = torch.ones((1536, 576), dtype=dtype)
    total = 0.0
    for rows in (1, 64):
        activations = torch.ones((rows, 576), dtype=dtype)
        best = float("inf")
        for _ in range(8):
            start = time.perf_counter()
            torch.nn.functional.linear(activations, weight)
            best = min(best, time.perf_counter() - start)
        total += best
    return total


def device_name(device: torch.device) -> str:
    """What a person calls the device."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
