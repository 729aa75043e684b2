"""Curves through measured points: least squares, with what they leave over. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt


@dataclass(frozen=True, slots=True)
class Fit:
    """y ≈ a + b n + c n², by least squares. `residuals`: y - fit, in the order of the points; `spread`: their root mean
    square."""

    a: float
    b: float
    c: float
    residuals: tuple[float, ...]

    def at(self, n: float) -> float:
        return self.a + self.b * n + self.c * n * n

    @property
    def spread(self) -> float:
        return sqrt(sum(r * r for r in self.residuals) / len(self.residuals))


def fit(points: Sequence[tuple[float, float]], degree: int = 2) -> Fit:
    """Least squares through (n, y), with powers of n up to `degree` (1 or 2). Raises `ValueError` with fewer different
    n than coefficients, or a degree that is neither."""
    if degree not in (1, 2) or len({n for n, _ in points}) <= degree:
        raise ValueError("too few points")
    scale = max(abs(n) for n, _ in points) or 1.0
    size = degree + 1
    powers = [[(n / scale) ** power for power in range(size)] for n, _ in points]
    rows = [
        [sum(row[i] * row[j] for row in powers) for j in range(size)]
        + [sum(row[i] * y for row, (_, y) in zip(powers, points, strict=True))]
        for i in range(size)
    ]
    a, b, c = (*_solved(rows), 0.0)[:3]
    found = Fit(a, b / scale, c / scale**2, ())
    return Fit(found.a, found.b, found.c, tuple(y - found.at(n) for n, y in points))


def fit_growing(points: Sequence[tuple[float, float]]) -> Fit:
    """Seconds that can only grow: a + b n + c n² with no coefficient below zero, by least squares of relative
    differences, so that short lengths count as much as long ones. Raises `ValueError` with fewer than three different
    n, or where an n or a y is not above zero."""
    if len({n for n, _ in points}) < 3 or min(min(point) for point in points) <= 0:
        raise ValueError("too few points")
    scale = max(n for n, _ in points)
    found = []
    for powers in (powers for size in (1, 2, 3) for powers in combinations(range(3), size)):
        rows = [[(n / scale) ** power / y for power in powers] for n, y in points]
        sums = [[sum(row[i] * row[j] for row in rows) for j in range(len(powers))] for i in range(len(powers))]
        solved = _solved([[*line, sum(row[i] for row in rows)] for i, line in enumerate(sums)])
        if min(solved) >= 0:
            a, b, c = (dict(zip(powers, solved, strict=True)).get(power, 0.0) for power in range(3))
            found.append(Fit(a, b / scale, c / scale**2, ()))
    best = min(found, key=lambda one: sum((one.at(n) / y - 1) ** 2 for n, y in points))
    return Fit(best.a, best.b, best.c, tuple(y - best.at(n) for n, y in points))


def _solved(rows: list[list[float]]) -> list[float]:
    """Gauss's elimination with the largest pivot, of n equations as rows of n + 1 numbers."""
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [x - factor * y for x, y in zip(rows[row], rows[column], strict=True)]
    return [rows[index][size] / rows[index][index] for index in range(size)]
