"""Where a finished run looked: the eight strongest positions per chosen token, layer and head. No torch, no model.

This is what a saved run keeps of its attention, so that a recording has a lens without a model. numpy and
safetensors are imported when they are used: whoever only reads events does not pay for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT = 8
"""Positions kept per row, layer and head."""

FULL = 65_535
"""The stored value that stands for a weight of 1."""

_NAMES = ("positions", "weights")
_ROUNDING = KEPT
"""The stored weights of a row may sum to this much above `FULL`: each was rounded by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Two arrays `uint16` [rows, layers, heads + 1, 8], strongest first.

    Row k chose token k of the answer: it is the query at position `prompt - 1 + k`. Index `heads` of the third
    axis is the mean over the layer's heads. `weights` are in 1/65535; unused slots have weight 0.
    """

    positions: NDArray[np.uint16]
    weights: NDArray[np.uint16]

    @property
    def rows(self) -> int:
        return int(self.positions.shape[0])

    @property
    def layers(self) -> int:
        return int(self.positions.shape[1])

    @property
    def heads(self) -> int:
        return int(self.positions.shape[2]) - 1

    def row(self, layer: int, head: int | None, row: int, prompt_tokens: int) -> list[tuple[int, float]]:
        """(position, weight) pairs of one query row, strongest first; `head` None is the layer's mean.

        `row` is the query's position, as everywhere. Raises `IndexError` for a row, layer or head that is not kept.
        """
        chosen, column = row - (prompt_tokens - 1), self.heads if head is None else head
        inside = 0 <= chosen < self.rows and 0 <= layer < self.layers and 0 <= column <= self.heads
        if not inside or head == self.heads:
            raise IndexError(f"no row {row} of layer {layer}, head {head} is kept")
        positions, weights = self.positions[chosen, layer, column], self.weights[chosen, layer, column]
        return [(int(p), int(w) / FULL) for p, w in zip(positions, weights, strict=True) if w]

    def check(self, rows: int, layers: int, heads: int, prompt_tokens: int) -> None:
        """Raises `ValueError` unless this can be where a run with these sizes looked."""
        import numpy as np

        if self.positions.shape != self.weights.shape or self.positions.shape != (rows, layers, heads + 1, KEPT):
            raise ValueError(f"looks of shape {self.positions.shape} are not of {rows} tokens, {layers} layers")
        queries = np.arange(prompt_tokens - 1, prompt_tokens - 1 + rows).reshape(-1, 1, 1, 1)
        if np.any((self.positions > queries) & (self.weights > 0)):
            raise ValueError("nothing looks ahead")
        if np.any(self.weights[..., 1:] > self.weights[..., :-1]):
            raise ValueError("the strongest comes first")
        if np.any(self.weights.sum(axis=-1, dtype=np.int64) > FULL + _ROUNDING):
            raise ValueError("weights of a row sum to at most 1")

    def to_bytes(self) -> bytes:
        """The two arrays in the safetensors format, which cannot carry code. Same arrays, same bytes."""
        import numpy as np
        from safetensors.numpy import save

        arrays = {"positions": self.positions, "weights": self.weights}
        return save({name: np.ascontiguousarray(array, dtype="<u2") for name, array in arrays.items()})

    @staticmethod
    def from_bytes(data: bytes) -> Looks:
        """The arrays of `to_bytes`; names, type and shape are checked before an array is made.

        Raises `ValueError` for anything else.
        """
        import numpy as np
        from safetensors import SafetensorError, deserialize

        try:
            tensors: dict[str, dict[str, Any]] = dict(deserialize(data))  # type: ignore[no-untyped-call]
        except SafetensorError as error:
            raise ValueError(str(error)) from None
        if sorted(tensors) != sorted(_NAMES):
            raise ValueError(f"looks hold {_NAMES}")
        shapes = {tuple(tensor["shape"]) for tensor in tensors.values()}
        kinds = {tensor["dtype"] for tensor in tensors.values()}
        shape = shapes.pop()
        if shapes or kinds != {"U16"} or len(shape) != 4 or shape[2] < 2 or shape[3] != KEPT:
            raise ValueError("looks are two arrays uint16 [rows, layers, heads + 1, 8]")
        return Looks(*(np.frombuffer(tensors[name]["data"], dtype="<u2").reshape(shape) for name in _NAMES))
