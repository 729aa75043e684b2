"""Where a word looked: computed by the engine while it holds the run's tensors, else from what was recorded.

Answers are small pictures that many people ask for at once, so equal questions share one answer, and the last
answers are kept.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from engine.settings import Refusal
from engine.trace.file import TraceFile
from engine.trace.looks import FULL, KEPT

MAX_BYTES = 64 * 2**20
"""Of answers kept."""


@dataclass(frozen=True, slots=True)
class Weights:
    """`rows` x `columns` quantised weights, the first row being the query at position `first`.

    A row (`data` holds `uint16`, full weight 65535) or a map (`uint8`, 255). `recorded` weights are the strongest
    ones only, the others read 0.
    """

    first: int
    rows: int
    columns: int
    data: bytes
    source: Literal["computed", "recorded"]

    @property
    def headers(self) -> dict[str, str]:
        kept = {"X-Kept": str(KEPT)} if self.source == "recorded" else {}
        shape = {"X-First-Row": self.first, "X-Rows": self.rows, "X-Columns": self.columns}
        return {"X-Source": self.source, **{name: str(value) for name, value in shape.items()}, **kept}


Question = tuple[str, int, int | None, int | None]
"""Run, layer, head (None: the layer's mean), row (None: all of them)."""


class Shared:
    """Answers by question. Someone who goes away takes nobody's answer along."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Question, Weights] = OrderedDict()
        self._pending: dict[Question, asyncio.Task[Weights]] = {}
        self._size = 0

    async def get(self, question: Question, make: Callable[[], Awaitable[Weights]]) -> Weights:
        """The answer, from `make` unless it is known or being made. Raises what `make` raises."""
        if question in self._answers:
            self._answers.move_to_end(question)
            return self._answers[question]
        task = self._pending.get(question)
        if task is None:
            task = self._pending[question] = asyncio.ensure_future(self._make(question, make))
        return await asyncio.shield(task)

    async def _make(self, question: Question, make: Callable[[], Awaitable[Weights]]) -> Weights:
        try:
            answer = await make()
        finally:
            del self._pending[question]
        self._answers[question] = answer
        self._size += len(answer.data)
        while self._size > MAX_BYTES:
            self._size -= len(self._answers.popitem(last=False)[1].data)
        return answer


def recorded(file: TraceFile, layer: int, head: int | None, row: int | None) -> Weights:
    """Weights from a saved run. Raises `Refusal`: `not_kept`, `no_layer`, `no_head`, `row_not_recorded`."""
    looks, started = file.looks, file.trace.started
    if looks is None or started is None:
        raise Refusal("not_kept")
    check_place(layer, head, looks.layers, looks.heads)
    first = len(started.prompt) - 1
    if row is None:
        return _recorded_map(file, layer, head)
    if not first <= row < first + looks.rows:
        raise Refusal("row_not_recorded", row=row + 1, least=first + 1, most=first + looks.rows)
    import numpy as np

    values = np.zeros(row + 1, "<u2")
    for position, weight in looks.row(layer, head, row, len(started.prompt)):
        values[position] = round(weight * FULL)
    return Weights(row, 1, row + 1, values.tobytes(), "recorded")


def _recorded_map(file: TraceFile, layer: int, head: int | None) -> Weights:
    import numpy as np

    looks, started = file.looks, file.trace.started
    assert looks is not None and started is not None
    prompt, column = len(started.prompt), looks.heads if head is None else head
    values = np.zeros((looks.rows, prompt - 1 + looks.rows), np.uint8)
    positions, weights = looks.positions[:, layer, column], looks.weights[:, layer, column]
    rows = np.arange(looks.rows)[:, None]
    # Unused slots are position 0, weight 0: added, not assigned, they leave position 0 as it is.
    np.add.at(values, (rows, positions), np.rint(weights / (FULL / 255)).astype(np.uint8))
    return Weights(prompt - 1, looks.rows, prompt - 1 + looks.rows, values.tobytes(), "recorded")


def check_place(layer: int, head: int | None, layers: int, heads: int) -> None:
    """Raises `Refusal` for a layer or head the model has not. What people read counts from 1."""
    if not 0 <= layer < layers:
        raise Refusal("no_layer", layer=layer + 1, layers=layers)
    if head is not None and not 0 <= head < heads:
        raise Refusal("no_head", head=head + 1, heads=heads)
