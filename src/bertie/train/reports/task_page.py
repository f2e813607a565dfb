"""Turns a `TaskReport` into an HTML page."""

from collections.abc import Sequence

from markupsafe import Markup

from bertie.reporting.chart import Chart, Line
from bertie.reporting.page import TEMPLATES
from bertie.reporting.svg_chart import draw_svg
from bertie.train.folder.history import points
from bertie.train.reports.card_tables import card_tables
from bertie.train.reports.run_charts import figure_name
from bertie.train.reports.task_report import (
    FIGURES,
    MOST_PAIRS,
    TaskReport,
    format_intervals,
    format_metrics,
    most_supported,
)

SHOWN_LABELS = 200  # with scores of their own
CURVES = 5  # metrics that are drawn beside the one that decides
SHOWN_TABLES = 30


def task_page(report: TaskReport, further: Sequence[str] = ()) -> str:
    """`further` parts, such as curves, follow the metrics; they are HTML already."""
    metrics = format_metrics(report.metrics)
    facts = {"task": report.task, "rows": f"{report.num_rows:,}"}
    if report.main in metrics:
        value, interval = metrics[report.main]
        facts |= {figure_name(report.main): value, "95% interval": interval or "–"}
    if report.num_without_gold:
        facts["without gold, left out"] = f"{report.num_without_gold:,}"
    label_scores = []
    for what, scores in report.label_scores.items():
        shown = most_supported(scores, SHOWN_LABELS)
        rows = [
            (label or what, *(f"{scores[label][name]:.4f}" for name in FIGURES), f"{scores[label]['support']:,.0f}")
            for label in shown
        ]
        label_scores.append(((what, *FIGURES, "support"), rows, len(scores) - len(shown)))
    return TEMPLATES.get_template("task_report.html").render(
        title=f"Task report: {report.name}",
        facts=facts,
        metrics=[(name.replace("_", " ") + report.about(name), *texts) for name, texts in metrics.items()],
        intervals=format_intervals(report.metrics),
        further=[Markup(html) for html in further],
        confusions=report.confusions[:SHOWN_TABLES],
        num_hidden_confusions=max(0, len(report.confusions) - SHOWN_TABLES),
        label_scores=label_scores,
        confused_rows=lambda table: [
            (gold, predicted, f"{count:,}") for gold, predicted, count in table.confused[:MOST_PAIRS]
        ],
        curves=[(chart.title, draw_svg(chart)) for chart in learning_curves(report) if not chart.is_empty],
        card=None if report.card is None else card_tables(report.card),
        mistakes=report.mistakes,
        origin=report.origin,
    )


def learning_curves(report: TaskReport) -> list[Chart]:
    """The loss, the main metric, and the others in one chart."""
    if report.history is None:
        return []
    learned, measured = report.history.steps, report.history.evaluations
    charts = []
    for name in ("loss", report.main):
        lines = [
            Line("training", points(learned, name), "·", dense=True),
            Line("held out", points(measured, name), "o"),
        ]
        charts.append(Chart(figure_name(name), "steps", [line for line in lines if line.points]))
    others = {name: points(measured, name) for name in report.metrics.values if name != report.main}
    drawn = [Line(figure_name(name), found, "o") for name, found in others.items() if found][:CURVES]
    return [*charts, Chart("other metrics, held out", "steps", drawn)]
