"""The jobs `runs list`, `runs show` and `runs compare`: how far runs are, their curves, and how they differ."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Column, Table

from bertie.disk import check_output, write_output
from bertie.errors import SpecError
from bertie.jobs.job import Group, Job, option
from bertie.jobs.result import Result
from bertie.reporting.events import OnEvent, ignore, message, warning
from bertie.reporting.png_chart import draw_png
from bertie.reporting.quantities import format_duration
from bertie.reporting.text_chart import draw_text
from bertie.train.folder.history import Axis, RunHistory, read_history
from bertie.train.folder.overview import RunOverview, find_runs, overview
from bertie.train.reports.run_charts import all_figures, main_figures, run_charts
from bertie.train.reports.run_comparison import compare_runs
from bertie.train.reports.run_page import comparison_page, run_page
from bertie.train.run_events import format_figure, format_figures


class ListRunsJob(Job):
    """List the runs in a folder: how far each is and what it has reached."""

    verb: ClassVar[str] = "runs list"
    example: ClassVar[str] = "bertie runs my-runs"
    folder: Path = option(Path(), "A folder with run folders in it; the current one by default.", argument=True)

    def run(self, on_event: OnEvent = ignore) -> "RunList":
        return RunList(self.folder, [overview(read_history(path)) for path in find_runs(self.folder)])


class RunList(Result):
    def __init__(self, folder: Path, runs: Sequence[RunOverview]):
        self.folder, self.runs = folder, runs

    def to_json(self) -> Any:
        return [asdict(run) for run in self.runs]

    def parts(self) -> Iterable[RenderableType]:
        if not self.runs:
            yield f"{self.folder}: there is no run here"
            return
        headings = ("run", "model", "steps", "done", "time", "held out")
        # Only a name may be wrapped.
        columns = [Column(name, overflow="fold", no_wrap=name != "run") for name in headings]
        table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for run in self.runs:
            held = "\n".join(format_figure(name, value) for name, value in run.held_out.items())
            if not held and run.loss is not None:
                held = f"training loss {run.loss:.4f}"
            state = "finished" if run.finished else f"{run.progress:.0%}"
            time = format_duration(run.seconds)
            cells = (run.name, f"{run.recipe} {run.size}", f"{run.step:,}", state, time, held)
            table.add_row(*map(escape, cells))
        yield table


class ChartOptions(Group):
    title: ClassVar[str] = "Curves"
    against: Axis = option("steps", "What the curves run along: steps, tokens or time.", common=True, metavar="AXIS")
    width: int = option(68, "Columns of a curve.", ge=20, le=1000)
    height: int = option(14, "Lines of a curve.", ge=4, le=1000)
    html: Path | None = option(None, "Also write one HTML page with all figures.", common=True, metavar="FILE")
    png: Path | None = option(None, "Also write a picture with all figures.", common=True, metavar="FILE")

    def draw(self, histories: Sequence[RunHistory]) -> Iterator[str]:
        for chart in run_charts(histories, main_figures(histories), self.against):
            yield from draw_text(chart, self.width, self.height)
            yield ""

    def check(self, runs: Sequence[Path]) -> None:
        """Refuses files that cannot be written, before runs are read."""
        for name in ("html", "png"):
            if (file := getattr(self, name)) is not None:
                check_output(file, name, runs)

    def write(self, histories: Sequence[RunHistory], page: Callable[[], str], on_event: OnEvent) -> None:
        title = ", ".join(history.name for history in histories)
        contents = {
            "html": lambda: page().encode(),
            "png": lambda: draw_png(run_charts(histories, all_figures(histories), self.against), title),
        }
        for name, content in contents.items():
            file: Path | None = getattr(self, name)
            if file is None:
                continue
            write_output(file, content(), name)
            on_event(message(f"{file}: written"))


class ShowRunJob(Job):
    """Draw the curves of a run.

    Dots are training, o is held-out text, dashes are predicting by frequency alone.
    """

    verb: ClassVar[str] = "runs show"
    example: ClassVar[str] = "bertie runs show my-run --against time --html my-run.html"
    run_folder: Path = option(help="A run folder.", argument=True)
    charts: ChartOptions = ChartOptions()

    def run(self, on_event: OnEvent = ignore) -> "RunView":
        self.charts.check([self.run_folder])
        history = read_history(self.run_folder)
        self.charts.write([history], lambda: run_page(history, self.charts.against), on_event)
        return RunView(history, self.charts)


class RunView(Result):
    def __init__(self, history: RunHistory, charts: ChartOptions):
        self.history, self.charts, self.overview = history, charts, overview(history)

    def to_json(self) -> Any:
        return asdict(self.overview)

    def parts(self) -> Iterable[str]:
        run, num_resumed = self.overview, self.history.num_resumed
        times = "once" if num_resumed == 1 else f"{num_resumed:,} times"
        resumed = f", resumed {times}" if num_resumed else ""
        speed = f", {run.tokens_per_second:,.0f} tokens/s" if run.tokens_per_second else ""
        state = "finished" if run.finished else f"{run.progress:.0%} done"
        of = f" of {run.steps:,}" if run.steps else ""
        time = format_duration(run.seconds)
        yield f"{run.name}: {run.recipe} {run.size}, {run.step:,}{of} steps, {state}, {time}{speed}{resumed}"
        yield from self.charts.draw([self.history])
        if run.evaluation:
            yield f"held out after step {run.evaluation['step']:,}: {format_figures(run.evaluation)}"


class CompareRunsJob(Job):
    """Draw the curves of several runs together, and list which options differ and what each run reached."""

    verb: ClassVar[str] = "runs compare"
    example: ClassVar[str] = "bertie runs compare run-a run-b --against time --png both.png"
    runs: tuple[Path, ...] = option(help="Two run folders or more.", argument=True)
    charts: ChartOptions = ChartOptions()

    def run(self, on_event: OnEvent = ignore) -> "RunComparison":
        if len(self.runs) < 2:
            raise SpecError("one run cannot be compared", hint="name two or more, or use `bertie runs show`")
        self.charts.check(self.runs)
        histories = [read_history(folder) for folder in self.runs]
        if len({history.name for history in histories}) < len(histories):  # then their paths tell them apart
            histories = [replace(one, name=str(path)) for one, path in zip(histories, self.runs, strict=True)]
        self.charts.write(histories, lambda: comparison_page(histories, self.charts.against), on_event)
        found = RunComparison(histories, self.charts)
        for note in found.comparison.notes:
            on_event(warning(note))
        return found


class RunComparison(Result):
    def __init__(self, histories: Sequence[RunHistory], charts: ChartOptions):
        self.histories, self.charts, self.comparison = histories, charts, compare_runs(histories)

    def to_json(self) -> Any:
        return asdict(self.comparison)

    def parts(self) -> Iterable[RenderableType]:
        found = self.comparison
        yield from self.charts.draw(self.histories)
        table = Table("", *map(escape, found.names))
        for number, (name, values) in enumerate(found.figures.items(), 1):
            table.add_row(escape(name), *map(escape, values), end_section=number == len(found.figures))
        for name, values in found.options.items():
            table.add_row(escape(name), *map(escape, values))
        yield table
