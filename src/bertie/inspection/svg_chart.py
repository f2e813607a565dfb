"""A chart for an HTML page: a `Chart` enters, SVG leaves. Its colours are the page's own, by class."""

from collections.abc import Iterator
from html import escape

from bertie.inspection.chart import Chart, Line, thinned, ticks

WIDTH, HEIGHT = 640, 260  # in the drawing's own units
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 36  # margins for the numbers
COLOURS = 6  # classes `c0` to `c5` of page.html
DRAWN = 400  # points of a line: more are not seen


def draw_svg(chart: Chart) -> str:
    """With a legend, and the figures of every marked point where the mouse rests on it."""
    if chart.is_empty:
        return '<p class="note">nothing to draw yet</p>'
    plot = _Plot(chart)
    parts = [*plot.grid(), *plot.levels()]
    for number, line in enumerate(chart.lines):
        parts += plot.line(line, f"c{number % COLOURS}")
    label = escape(f"{chart.title} against {chart.across}")
    return f'{_legend(chart)}<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


class _Plot:
    def __init__(self, chart: Chart):
        self.chart = chart
        (self.first, self.last), (low, high) = chart.x_range, chart.y_range
        room = (high - low) * 0.04
        self.low, self.high = (low if chart.from_zero else low - room), high + room

    def x(self, value: float) -> float:
        return LEFT + (value - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def grid(self) -> Iterator[str]:
        for value in ticks(self.low, self.high):
            y, told = self.y(value), self.chart.told(value)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"></path>'
            yield f'<text class="faint" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{told}</text>'
        for value in ticks(self.first, self.last, most=8):
            told = f"{value:,.10g}"
            x, y = self.x(value), HEIGHT - BOTTOM + 16
            yield f'<text class="faint" x="{x:.1f}" y="{y}" text-anchor="middle">{told}</text>'
        middle = (LEFT + WIDTH - RIGHT) / 2
        across = escape(self.chart.across)
        yield f'<text class="faint" x="{middle:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{across}</text>'

    def levels(self) -> Iterator[str]:
        for value in self.chart.levels.values():
            yield f'<path class="level" d="M{LEFT} {self.y(value):.1f}H{WIDTH - RIGHT}"></path>'

    def line(self, line: Line, colour: str) -> Iterator[str]:
        points = [(self.x(x), self.y(y), x, y) for x, y in thinned(line.points, DRAWN)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in points)
        dense = " dense" if line.dense else ""
        if path:
            yield f'<path class="line {colour}{dense}" d="M{path}"></path>'
        for x, y, across, height in [] if line.dense else points:
            told = escape(f"{line.name}: {self.chart.told(height)} at {across:,.6g} {self.chart.across}")
            yield f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{told}</title></circle>'


def _legend(chart: Chart) -> str:
    names = [
        f'<li class="c{number % COLOURS}{" dense" if line.dense else ""}">{escape(line.name)}</li>'
        for number, line in enumerate(chart.lines)
        if line.points
    ]
    names += [f'<li class="level">{escape(name)} {chart.told(value)}</li>' for name, value in chart.levels.items()]
    return f'<ul class="legend">{"".join(names)}</ul>'
