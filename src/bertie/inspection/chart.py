"""A chart as a value: named lines of points and the words around them. Text, SVG and PNG are drawn from it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """`sign` is its mark in a terminal. A dense line has too many points to mark each."""

    name: str
    points: Points
    sign: str
    dense: bool = False


@dataclass(frozen=True)
class Chart:
    title: str
    across: str  # what the x axis counts, with its unit
    lines: Sequence[Line]
    levels: Mapping[str, float] = field(default_factory=dict)  # horizontal lines by name
    percent: bool = False
    from_zero: bool = False

    @property
    def is_empty(self) -> bool:
        return not any(line.points for line in self.lines)

    @property
    def x_range(self) -> tuple[float, float]:
        """From 0, where every run begins."""
        return _range([0.0, *(x for line in self.lines for x, _ in line.points)])

    @property
    def y_range(self) -> tuple[float, float]:
        ys = [y for line in self.lines for _, y in line.points]
        return _range([*ys, *self.levels.values(), *([0.0] if self.from_zero else [])])

    def told(self, y: float) -> str:
        """A height in words."""
        if self.percent:
            return f"{y:.1%}"
        return f"{y:,.0f}" if abs(y) >= 1000 else f"{y:.4g}"


def thinned(points: Points, most: int) -> Points:
    """At most so many points: the means of neighbours that would fall on the same spot."""
    if len(points) <= most:
        return points
    first, last = points[0][0], points[-1][0]
    step = (last - first) / most or 1.0
    groups = groupby(points, key=lambda point: min(most - 1, int((point[0] - first) / step)))
    return [_mean(list(group)) for _, group in groups]


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers inside a range."""
    rough = (high - low) / most
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    begin, end = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(begin, end + 1)]


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Never empty, so that it can be divided by."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low, low + (abs(low) or 1.0))


def _mean(points: Points) -> tuple[float, float]:
    xs, ys = zip(*points, strict=True)
    return sum(xs) / len(xs), sum(ys) / len(ys)
