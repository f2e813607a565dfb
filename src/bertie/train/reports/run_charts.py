"""Turns histories of runs into charts: one run's training and evaluations, or several runs over each other."""

from collections.abc import Sequence

from bertie.models.recipe import prediction_losses
from bertie.reporting.chart import Chart, Line
from bertie.train.folder.history import SHARES, Axis, RunHistory, figure_names

SPEED = "tokens_per_second"
SIGNS = "abcdefghijklmnopqrstuvwxyz"
# Time is in the largest unit of which there are at least two.
UNITS = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def main_figures(runs: Sequence[RunHistory]) -> list[str]:
    """The loss that has a baseline, or the whole one, or its only part; its accuracy; what decides between models of a
    task; the speed."""
    known = all_figures(runs)
    loss = next((name for name in (*prediction_losses(), "loss") if name in known), known[0] if known else "")
    accuracy = next((name for name in (f"{loss}_accuracy", "accuracy") if name in known), "")
    return [name for name in dict.fromkeys((loss, accuracy, *_deciding(runs), SPEED)) if name in known]


def all_figures(runs: Sequence[RunHistory]) -> list[str]:
    """Losses, then accuracies, then the metrics that decide, then the speed. The whole loss is one of them where it has
    several parts."""
    names = list(dict.fromkeys(name for run in runs for name in figure_names(run.steps)))
    accuracies = [name for name in names if name.endswith(SHARES)]
    losses = [name for name in names if name not in (*accuracies, SPEED)]
    if len(losses) == 2:  # the whole and its only part
        losses.remove("loss")
    shown = [*losses, *accuracies, *_deciding(runs), *(name for name in names if name == SPEED)]
    return list(dict.fromkeys(shown))


def run_charts(runs: Sequence[RunHistory], figures: Sequence[str], against: Axis = "steps") -> list[Chart]:
    """A chart for each figure. Several runs are shown by their held-out text alone, where there is any."""
    unit, size = _time_unit(runs) if against == "time" else (against, 1.0)
    charts = []
    for figure in figures:
        lines = [
            Line(line.name, [(x / size, y) for x, y in line.points], line.sign, line.dense)
            for line in (_lines_of_one(runs[0], figure, against) if len(runs) == 1 else _lines(runs, figure, against))
        ]
        name = "tokens/s" if figure == SPEED else figure_name(figure, runs)
        title = f"{name}, held out" if len(runs) > 1 and _is_measured(runs, figure) else name
        percent, from_zero = figure.endswith(SHARES), figure == SPEED
        charts.append(Chart(title, unit, lines, _levels(runs, figure), percent, from_zero))
    return charts


def _lines_of_one(run: RunHistory, figure: str, against: Axis) -> list[Line]:
    trained = Line("training", run.trained(figure, against), "·", dense=True)
    held_out = Line("held out", run.held_out(figure, against), "o")
    return [line for line in (trained, held_out) if line.points] or [trained]


def _lines(runs: Sequence[RunHistory], figure: str, against: Axis) -> list[Line]:
    measured = _is_measured(runs, figure)
    found = [run.held_out(figure, against) if measured else run.trained(figure, against) for run in runs]
    return [
        Line(run.name, points, SIGNS[number % len(SIGNS)], dense=not measured)
        for number, (run, points) in enumerate(zip(runs, found, strict=True))
    ]


def _is_measured(runs: Sequence[RunHistory], figure: str) -> bool:
    return any(run.held_out(figure) for run in runs)


def _deciding(runs: Sequence[RunHistory]) -> list[str]:
    """The main metrics of tasks that were measured on held-out rows."""
    return list(dict.fromkeys(name for run in runs for name in run.task_metrics if run.held_out(name)))


def _time_unit(runs: Sequence[RunHistory]) -> tuple[str, float]:
    longest = max((run.last["seconds"] for run in runs), default=0.0)
    return next((unit for unit in UNITS if longest >= 2 * unit[1]), UNITS[-1])


def _levels(runs: Sequence[RunHistory], figure: str) -> dict[str, float]:
    """Runs on the same held-out text have the same baseline; several baselines would mean nothing."""
    baselines = {"": "unigram_loss", "_accuracy": "unigram_accuracy"}  # of predicting by frequency
    name = next((name for end, name in baselines.items() if figure.removesuffix(end) in prediction_losses()), "")
    found = {run.evaluations[-1][name] for run in runs if run.evaluations and name in run.evaluations[-1]}
    return {"by frequency": found.pop()} if len(found) == 1 else {}


def figure_name(figure: str, runs: Sequence[RunHistory] = ()) -> str:
    """A figure of the log in words: "macro f1", or "masked lm loss" where it is a loss of these runs."""
    words = figure.replace("_", " ")
    is_loss = any(figure in run.losses for run in runs)
    return f"{words} loss" if is_loss and not figure.endswith("loss") else words
