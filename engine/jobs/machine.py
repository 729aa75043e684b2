"""This machine's peaks, measured: how fast its matrix products are, and how fast it reads memory.

Both are best-of figures of plain torch calls in the loaded model's own dtype, on its own device and threads: what a run
could reach here if nothing else held it up, not what a data sheet promises. One shape is one job (see `engine.jobs`),
a fraction of a second long, so that nobody's words wait for the whole list; who asks goes through `plan`.

Standard library only at import: the service reads the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from engine.settings import Refusal
from engine.trace import Facts

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from engine.jobs.desk import Desk

SECONDS = 0.3
"""Patience for one shape, after one product that warms up."""
LEAST = 3
"""Repetitions of a shape, however long they take."""
FAR = 4
"""An array that is read from memory is this many times the last cache, within the two bounds below."""
LEAST_ARRAY, MOST_ARRAY = 2**28, 2**30
"""256 MiB to 1 GiB."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One thing to time. `compute`: a product of `rows` × `inner` with the weights `columns` × `inner`, as the model's
    own linears do it. `bandwidth`: one pass over an array far larger than the cache, in one of three ways."""

    name: str
    kind: Literal["compute", "bandwidth"]
    rows: int = 0
    inner: int = 0
    columns: int = 0

    @property
    def flops(self) -> int:
        """A multiplication and an addition per cell of the product and step of the sum: 2 × rows × inner × columns."""
        return 2 * self.rows * self.inner * self.columns


def _product(rows: int, inner: int, columns: int) -> Shape:
    return Shape(f"product-{rows}-{inner}-{columns}", "compute", rows, inner, columns)


READS = tuple(Shape(name, "bandwidth") for name in ("matvec", "matvec-transposed", "sum"))
"""One row times a matrix as the weights lie (columns × inner), in the model's dtype; one row times a transposed matrix,
and the sum of an array, both in fp32: memory does not know the dtype, but a kernel may be slow in one."""
PRODUCTS = {
    "cpu": (_product(512, 512, 512), _product(1024, 1024, 1024), _product(256, 4096, 4096), _product(2048, 2048, 2048)),
    "other": (_product(2048, 2048, 2048), _product(1024, 8192, 8192), _product(8192, 8192, 8192)),
}


def plan(device: str) -> tuple[Shape, ...]:
    """What is timed on a device (`cpu`, `cuda:0`, `mps:0`), one job each."""
    return (*PRODUCTS["cpu" if device.startswith("cpu") else "other"], *READS)


def identity(facts: Facts) -> dict[str, str | int]:
    """What peaks depend on: those of another processor, dtype, number of threads or torch are others."""
    return {
        "device": facts.device,
        "device_name": facts.device_name,
        "threads": facts.threads,
        "dtype": facts.dtype,
        "torch": dict(facts.versions).get("torch", ""),
    }


@dataclass(frozen=True, slots=True)
class Peak:
    """One shape, timed. `rate` is the best: FLOP/s of a product, bytes a second of a read.

    `work` is what one repetition does (FLOPs or bytes); `best` and `middle` are seconds of the fastest and of the
    median one. `active` runs were going on, and `busy` cores were kept by other programs (None where nobody tells).
    """

    name: str
    kind: Literal["compute", "bandwidth"]
    work: int
    best: float
    middle: float
    repeats: int
    rate: float
    active: int
    busy: float | None


def peak(desk: Desk, model: str, name: str) -> dict[str, Any]:
    """Time one shape on the device, in the dtype, of a loaded model: a `Peak` as plain values.

    Raises `Refusal`: `model_not_ready`, `no_shape`.
    """
    from engine.measure.quiet import Elsewhere, undisturbed

    if model not in desk.models:
        raise Refusal("model_not_ready", model=model)
    loaded = desk.models[model].shape
    shape = next((shape for shape in plan(str(loaded.device)) if shape.name == name), None)
    if shape is None:
        raise Refusal("no_shape", name=name[:40])
    work, once = _work(shape, loaded.dtype, loaded.device)
    elsewhere = Elsewhere()
    with undisturbed():
        seconds = timed(once, loaded.device)
    best = min(seconds)
    active, busy = len(desk.active), elsewhere.cores
    return asdict(Peak(name, shape.kind, work, best, median(seconds), len(seconds), work / best, active, busy))


def timed(once: Callable[[], Any], device: torch.device, now: Callable[[], float] | None = None) -> list[float]:
    """Seconds of each repetition after a first one that does not count: `LEAST` of them, more while `SECONDS` last."""
    from engine.measure import clock

    now = now or clock.now
    once()
    clock.synchronise(device)
    seconds: list[float] = []
    while len(seconds) < LEAST or sum(seconds) < SECONDS:
        begin = now()
        once()
        clock.synchronise(device)
        seconds.append(now() - begin)
    return seconds


def vector_rate(dtype: torch.dtype, device: torch.device) -> float:
    """Bytes a second that the product of one row with a matrix in memory reads, by the fastest of torch's ways."""
    works = [_work(shape, dtype, device) for shape in READS[:2]]
    size, (matrix, row) = _matrix(dtype, device)
    works.append((size, lambda: matrix.mv(row[0])))
    return max(work / min(timed(once, device)) for work, once in works)


def _work(shape: Shape, dtype: torch.dtype, device: torch.device) -> tuple[int, Callable[[], Tensor]]:
    """What one repetition does, in FLOPs or bytes, and the doing of it."""
    import torch
    from torch.nn.functional import linear

    if shape.kind == "compute":
        activations = _numbers(shape.rows * shape.inner, dtype, device).view(shape.rows, shape.inner)
        weights = _numbers(shape.columns * shape.inner, dtype, device).view(shape.columns, shape.inner)
        return shape.flops, lambda: linear(activations, weights)
    dtype = dtype if shape.name == "matvec" else torch.float32
    size, (matrix, row) = _matrix(dtype, device)
    if shape.name == "sum":
        return size, matrix.sum
    return size, (lambda: linear(row, matrix)) if shape.name == "matvec" else (lambda: row @ matrix)


def _matrix(dtype: torch.dtype, device: torch.device) -> tuple[int, tuple[Tensor, Tensor]]:
    """A matrix that no cache holds, its bytes first, and a row for it."""
    side = int((array_bytes() / dtype.itemsize) ** 0.5)
    matrix = _numbers(side * side, dtype, device).view(side, side)
    return matrix.nbytes, (matrix, _numbers(side, dtype, device)[None])


def _numbers(count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Random numbers, repeated: equal ones would draw less power on a graphics card and look faster."""
    import torch

    some = torch.randn(min(count, 2**20), generator=torch.Generator().manual_seed(0)).to(device, dtype)
    return some.repeat(-(-count // some.numel()))[:count]


def array_bytes() -> int:
    """Bytes of an array that no cache holds."""
    return max(LEAST_ARRAY, min(MOST_ARRAY, FAR * last_cache()))


def last_cache(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Bytes of the largest cache of the first core; 0 where nobody tells (Linux does)."""
    sizes = [0]
    for file in folder.glob("index*/size"):
        try:
            text = file.read_text().strip()
            sizes.append(int(text.rstrip("KMG")) * {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1))
        except (OSError, ValueError):
            continue
    return max(sizes)
