"""Draws a `Chart` as SVG for an HTML page. Its colours are the page's own, by class."""

from markupsafe import Markup

from bertie.reporting.chart import Chart, Points, smoothed, thinned, ticks
from bertie.reporting.page import fragment, note

WIDTH, HEIGHT = 640, 260  # in the drawing's own units
LEFT, RIGHT, TOP, BOTTOM = 56, WIDTH - 12, 10, HEIGHT - 40  # of the lines: numbers are around them
FRAME = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "bottom": BOTTOM}
DRAWN = 400  # points of a line: more are not seen


def draw_svg(chart: Chart) -> Markup:
    """With a legend, and the figures of every marked point where the mouse rests on it."""
    if chart.is_empty:
        return note("nothing to draw yet")
    (first, last), (low, high) = chart.ranges()
    room = (high - low) * 0.04
    low, high = (low if chart.from_zero else low - room), high + room
    x_scale, y_scale = (RIGHT - LEFT) / (last - first), (BOTTOM - TOP) / (high - low)
    x_ticks = [(LEFT + (x - first) * x_scale, f"{x:,.10g}") for x in ticks(first, last, most=8)]
    y_ticks = [(TOP + (high - y) * y_scale, chart.format(y)) for y in ticks(low, high)]
    levels = [(name, TOP + (high - y) * y_scale, chart.format(y)) for name, y in chart.levels.items()]

    def placed(points: Points) -> list[tuple[float, float]]:
        return [(LEFT + (x - first) * x_scale, TOP + (high - y) * y_scale) for x, y in points]

    lines = []
    for line in chart.lines:
        found = thinned(line.points, DRAWN)
        texts = [f"{line.name}: {chart.format(y)} at {x:,.6g} {chart.across}" for x, y in found]
        course = smoothed(line.points) if line.dense else line.points
        raw = [] if course is line.points else placed(found)
        lines.append((line, raw, placed(thinned(course, DRAWN)), texts))
    return fragment("chart", chart, x_ticks, y_ticks, levels, lines, FRAME)
