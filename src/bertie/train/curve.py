"""Points enter, lines of text leave: a curve for the terminal."""

from collections.abc import Mapping, Sequence

import numpy as np

Points = Sequence[tuple[float, float]]
LABEL = 9  # columns for the numbers at the left


def draw(series: Mapping[str, Points], level: float | None = None, width: int = 72, height: int = 16) -> list[str]:
    """Each series by its sign, later ones over earlier ones; `level` is a horizontal line. Where several points fall
    into one column their mean is shown."""
    points = [point for one in series.values() for point in one if np.isfinite(point).all()]
    if not points:
        return ["nothing to draw yet"]
    xs, ys = np.array(points).T
    heights = np.append(ys, level) if level is not None else ys
    low, high = float(heights.min()), float(heights.max())
    spread = high - low or 1.0
    first, last = float(xs.min()), float(xs.max())
    canvas = [[" "] * width for _ in range(height)]

    def row_of(value: float) -> int:
        return round((high - value) / spread * (height - 1))

    if level is not None:
        canvas[row_of(level)] = ["-"] * width
    for sign, one in series.items():
        for column, value in _columns(one, first, last, width).items():
            canvas[row_of(value)][column] = sign
    lines = []
    for row, signs in enumerate(canvas):
        labelled = row in (0, height // 2, height - 1)
        label = f"{high - spread * row / (height - 1):.3f}" if labelled else ""
        lines.append(f"{label:>{LABEL}} |{''.join(signs).rstrip()}")
    lines.append(" " * LABEL + " +" + "-" * width)
    ends = f"{first:,.0f}", f"{last:,.0f}"
    lines.append(" " * (LABEL + 2) + ends[0] + " " * (width - len(ends[0]) - len(ends[1])) + ends[1])
    return lines


def _columns(points: Points, first: float, last: float, width: int) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for x, y in points:
        if np.isfinite(y):
            found.setdefault(round((x - first) / ((last - first) or 1.0) * (width - 1)), []).append(y)
    return {column: float(np.mean(values)) for column, values in found.items()}
