"""A chart as a value: named lines of points and the words around them. Text, SVG and PNG are drawn from it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby

Points = Sequence[tuple[float, float]]
SMOOTHED_BY = 15  # a smoothed point is the mean of one part in so many


@dataclass(frozen=True)
class Line:
    """`sign` is its mark in a terminal. A dense line has a noisy point for every step: pages and pictures draw it
    faintly, under its smoothed course."""

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

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Of x and of y. x is from 0, where every run starts. Never empty, so that they can be divided by."""
        points = [point for line in self.lines for point in line.points]
        xs = [0.0, *(x for x, _ in points)]
        ys = [*(y for _, y in points), *self.levels.values(), *([0.0] if self.from_zero else [])] or [0.0]
        x_range, y_range = (
            (low, high if high > low else low + (abs(low) or 1.0))
            for low, high in ((min(xs), max(xs)), (min(ys), max(ys)))
        )
        return x_range, y_range

    def format(self, y: float) -> str:
        """A height as text."""
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


def smoothed(points: Points) -> Points:
    """The mean of each point and its neighbours, a fifteenth of all points together. Where there are too few to smooth,
    the points themselves."""
    reach = len(points) // (2 * SMOOTHED_BY)
    if not reach:
        return points
    sums = [0.0, *accumulate(y for _, y in points)]
    course = []
    for number, (x, _) in enumerate(points):
        begin, end = max(0, number - reach), min(len(points), number + reach + 1)
        course.append((x, (sums[end] - sums[begin]) / (end - begin)))
    return course


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers inside a range."""
    rough = (high - low) / most
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    begin, end = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(begin, end + 1)]


def _mean(points: Points) -> tuple[float, float]:
    xs, ys = zip(*points, strict=True)
    return sum(xs) / len(xs), sum(ys) / len(ys)
