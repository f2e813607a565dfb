"""Draws a `Chart` as lines of text for the terminal."""

from bertie.reporting.chart import Chart, Points

LABEL = 9  # columns for the numbers at the left
LEVEL = "-"


def draw_text(chart: Chart, width: int = 68, height: int = 14) -> list[str]:
    """Each line by its sign, later ones over earlier ones. Where several points fall into one column their mean is
    shown."""
    if chart.is_empty:
        return [f"{chart.title}: nothing to draw yet"]
    (first, last), (low, high) = chart.ranges()
    canvas = [[" "] * width for _ in range(height)]

    def row_of(value: float) -> int:
        return round((high - value) / (high - low) * (height - 1))

    for level in chart.levels.values():
        canvas[row_of(level)] = [LEVEL] * width
    for line in chart.lines:
        for column, value in _columns(line.points, first, last, width).items():
            canvas[row_of(value)][column] = line.sign
    names = [f"{line.sign} {line.name}" for line in chart.lines if line.points]
    names += [f"{LEVEL * 2} {name} {chart.format(level)}" for name, level in chart.levels.items()]
    lines = [f"{chart.title}   {'   '.join(names)}"]
    for row, signs in enumerate(canvas):
        labelled = row in (0, height // 2, height - 1)
        label = chart.format(high - (high - low) * row / (height - 1)) if labelled else ""
        lines.append(f"{label:>{LABEL}} |{''.join(signs).rstrip()}")
    lines.append(" " * LABEL + " +" + "-" * width)
    ends = _end(first), f"{_end(last)} {chart.across}"
    return [*lines, " " * (LABEL + 2) + ends[0] + " " * (width - len(ends[0]) - len(ends[1])) + ends[1]]


def _end(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 or x == int(x) else f"{x:.1f}"


def _columns(points: Points, first: float, last: float, width: int) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for x, y in points:
        found.setdefault(round((x - first) / (last - first) * (width - 1)), []).append(y)
    return {column: sum(values) / len(values) for column, values in found.items()}
