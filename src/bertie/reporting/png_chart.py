"""Draws `Chart`s as a PNG picture. Needs matplotlib, which is the extra `plots`."""

from collections.abc import Sequence
from io import BytesIO

from bertie.disk import MARK
from bertie.errors import CapabilityError, InputError
from bertie.reporting.chart import Chart, Points, smoothed, thinned

COLUMNS = 2
WIDTH, HEIGHT = 6.4, 3.4  # of one chart, in inches
COLOURS = ("#3b6fb6", "#d1662b", "#3a8f5c", "#9a57b3", "#b08a1e", "#5b6770")  # as in page.html
DRAWN = 800  # points of a line
MOST_INSIDE, NAME_HEIGHT = 3, 0.22  # names that fit beside the lines; more are below, each so many inches high


def draw_png(charts: Sequence[Chart], title: str = "") -> bytes:
    """The content of a PNG file."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter
    except ImportError:
        hint = "install it with: pip install 'bertie[plots]'"
        raise CapabilityError("a picture needs the package matplotlib", hint=hint) from None
    if not charts:
        raise InputError("there is nothing to draw yet", hint="wait until a step is done")
    columns = min(COLUMNS, len(charts))
    rows = -(-len(charts) // columns)
    num_below = max(_num_below(chart) for chart in charts)
    figure = Figure(figsize=(WIDTH * columns, (HEIGHT + NAME_HEIGHT * num_below) * rows), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    for chart, plot in zip(charts, axes, strict=False):
        for number, line in enumerate(chart.lines):
            course = smoothed(line.points) if line.dense else line.points
            colour = COLOURS[number % len(COLOURS)]
            if course is not line.points:
                plot.plot(*_axes(line.points), color=colour, linewidth=1.0, alpha=0.3)
            style = {"linewidth": 1.6} if line.dense else {"marker": "o", "markersize": 3.0}
            plot.plot(*_axes(course), color=colour, label=line.name, **style)
        for name, level in chart.levels.items():
            plot.axhline(level, color="#59636e", linestyle="--", linewidth=1.0, label=f"{name} {chart.format(level)}")
        if chart.from_zero:
            plot.set_ylim(bottom=0)
        plot.set_title(chart.title)
        plot.set_xlabel(chart.across)
        plot.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
        plot.yaxis.set_major_formatter(FuncFormatter(lambda y, _, chart=chart: chart.format(y)))
        plot.grid(alpha=0.3)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)} if _num_below(chart) else {}
        plot.legend(frameon=False, **below)
    for unused in axes[len(charts) :]:
        unused.set_axis_off()
    content = BytesIO()
    figure.savefig(content, dpi=120, format="png", metadata={"Software": MARK.decode()})
    return content.getvalue()


def _axes(points: Points) -> tuple[list[float], list[float]]:
    drawn = thinned(points, DRAWN)
    return [x for x, _ in drawn], [y for _, y in drawn]


def _num_below(chart: Chart) -> int:
    names = len(chart.lines) + len(chart.levels)
    return names if names > MOST_INSIDE else 0
