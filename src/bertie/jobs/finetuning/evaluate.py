"""The job `evaluate`: measures a task model on labelled rows."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from bertie.devices import HELP as DEVICE_HELP
from bertie.devices import DeviceName
from bertie.disk import check_output, write_output
from bertie.errors import InputError
from bertie.jobs.finetuning.finetune_options import COLUMN_HELP, FORMAT_HELP, HEADER_HELP, Columns, noise_of
from bertie.jobs.finetuning.row_notes import report_rows
from bertie.jobs.job import Group, Job, option
from bertie.jobs.options.data import Data, ModelSource, paths_in, rows_or_paths
from bertie.jobs.options.model_device import open_model
from bertie.jobs.options.text_sources import ENCODING_HELP, Encoding
from bertie.jobs.result import Result
from bertie.models.pretrained import Pretrained, load
from bertie.reporting.events import OnEvent, ignore, message
from bertie.reporting.png_chart import draw_png
from bertie.reporting.text_chart import draw_text
from bertie.tasks.examples import Examples, Policy
from bertie.tasks.labelled import Labelled, Reading, open_labelled, report_unmeasured
from bertie.tasks.task import Task
from bertie.train.finetuning.task_evaluation import TaskEvaluation
from bertie.train.reports.noise_curve import NoiseCurve, measure_noise
from bertie.train.reports.origin import origin_of
from bertie.train.reports.task_page import task_page
from bertie.train.reports.task_report import TaskReport, report_task, terminal_lines


def as_rates(given: Any) -> Any:
    """ "0,0.1,0.3" or numbers, as a rising tuple."""
    try:
        rates = [float(one) for one in (given.split(",") if isinstance(given, str) else given)]
    except (TypeError, ValueError):
        rates = []
    if not rates or not all(0 <= rate <= 1 for rate in rates):
        raise ValueError(f"{given!r} is not a list of shares, like 0,0.1,0.3,0.5")
    return tuple(sorted(set(rates)))


TRAINED = " If training was given one, it holds here, too."


class RowOptions(Group):
    """How rows are read."""

    title: ClassVar[str] = "Data"
    task: str | None = option(None, "Which task, if the model was trained for several.", common=True)
    column: Columns = option({}, COLUMN_HELP + TRAINED, common=True, many=True, metavar="ROLE=NAME")
    format: str | None = option(None, FORMAT_HELP + TRAINED, common=True)
    header: bool | None = option(None, HEADER_HELP + TRAINED)
    encoding: Encoding | None = option(None, ENCODING_HELP + TRAINED)
    max_length: int | None = option(None, "Tokens per row; as in training by default.", common=True, ge=8)

    def open(
        self, model: Pretrained, task: Task, data: Any, name: str, on_event: OnEvent, targets: bool = True
    ) -> Labelled:
        """What was said about files in training holds for these, too, unless something else is said."""
        rows = rows_or_paths(data, name)
        return open_labelled(
            task,
            rows,
            self.column,
            format="lines" if self.format is None and rows == [Path("-")] else self.format,
            header=self.header,
            encoding=self.encoding,
            targets=targets,
            trained=Reading.parse(model.card.get("reading", {}), where=model.source),
            on_event=on_event,
        )


class NoiseCurveOptions(Group):
    title: ClassVar[str] = "Noise"
    noise: Annotated[tuple[float, ...], BeforeValidator(as_rates)] | None = option(
        None,
        "Also misspell these shares of the words, like 0,0.1,0.3,0.5, and draw the score.",
        common=True,
        metavar="SHARES",
    )
    confusable: Path | None = option(
        None, "Chinese characters that are easily confused, one group per line.", metavar="FILE"
    )
    png: Path | None = option(None, "Write the curve as a picture.", metavar="FILE")


class EvaluateJob(Job):
    """Measure a task model on labelled rows."""

    verb: ClassVar[str] = "evaluate"
    example: ClassVar[str] = "bertie evaluate my-task --data test.tsv --json"
    requires: ClassVar[Any] = {"confusable": "noise", "png": "noise"}
    model: ModelSource = option(help="A folder that bertie finetune wrote.", argument=True)
    data: Data = option(help="Labelled rows.", many=True, paths=True, metavar="FILE")
    skip_bad: bool = option(False, "Skip rows that cannot be used, and count them.", common=True)
    report: Path | None = option(
        None, "Write an HTML page with all figures and the worst mistakes.", common=True, metavar="FILE"
    )
    device: DeviceName = option("auto", DEVICE_HELP, common=True)
    reading: RowOptions = RowOptions()
    noise_curve: NoiseCurveOptions = NoiseCurveOptions()

    def run(self, on_event: OnEvent = ignore) -> "Evaluation":
        self.check_outputs()
        return self.measure(load(self.model, device=self.device), on_event)

    def check_outputs(self) -> None:
        """Refuses files that cannot be written, before any work."""
        noise = self.noise_curve
        inputs: list[str | Path] = [self.model, *paths_in(self.data)]
        inputs += [] if noise.confusable is None else [noise.confusable]
        for name, file in (("report", self.report), ("png", noise.png)):
            if file is not None:
                check_output(file, name, inputs)

    def measure(self, model: Pretrained, on_event: OnEvent = ignore) -> "Evaluation":
        """Measures a model that is already loaded."""
        self.check_outputs()
        model, reading, noise = open_model(model, self), self.reading, self.noise_curve
        task = model.task(reading.task)
        max_length = model.max_length_for(reading.max_length)
        tokenizer = model.tokenizer_for(max_length)
        labelled = reading.open(model, task, self.data, "data", on_event)
        task = task.measured_on(labelled.columns, labelled.all())
        report_unmeasured(task, labelled, on_event)
        policy: Policy = "skip" if self.skip_bad else "refuse"
        examples = Examples(task, labelled, tokenizer, max_length, policy)
        read = examples.all()
        report_rows(examples, on_event)
        if not read:
            raise InputError("no row can be used", where=labelled.rows.name)
        curve = None
        if noise.noise is not None:
            noises = [noise_of(rate, noise.confusable) for rate in noise.noise]
            curve = measure_noise(model.model, task, labelled, tokenizer, max_length, noises, policy)
            for point in curve.points:
                if point.num_cut > len(examples.num_cut):
                    what = (
                        f"with {point.rate:.0%} misspelt, {point.num_cut:,} rows were longer than {max_length} tokens"
                    )
                    on_event(message(f"{what} and were cut"))
            if noise.png is not None:
                write_output(noise.png, draw_png([curve.chart], labelled.rows.name), "png")
                on_event(message(f"the picture is {noise.png}"))
        answers = TaskEvaluation(task, read).answers(model.model)
        metrics = task.score(answers, [example.gold for example in read])
        origin = origin_of(
            model.source or "a model in memory", model.card, labelled, model.recipe.model_dump(mode="json")
        )
        make_report = partial(report_task, task, read, answers, name=labelled.rows.name, origin=origin)
        found = Evaluation(metrics, make_report, curve, task.positive)
        if self.report is not None:
            sections = [] if curve is None else [curve.section()]
            write_output(self.report, task_page(found.report, sections).encode(), "report")
            on_event(message(f"the report is {self.report}"))
        return found


class Evaluation(Result):
    """`metrics` by name; `report` has them with confidence intervals, confusions and the worst mistakes. `positive` is
    the label that `f1` is about, where it is about one."""

    def __init__(
        self,
        metrics: Mapping[str, float],
        make_report: Any,
        curve: NoiseCurve | None = None,
        positive: str | None = None,
    ):
        self.metrics, self.curve = metrics, curve
        self.positive = positive if "f1" in metrics else None
        self._make_report = make_report

    @property
    def report(self) -> TaskReport:
        if not isinstance(self._make_report, TaskReport):
            self._make_report = self._make_report()
        return self._make_report

    def __getitem__(self, name: str) -> float:
        return self.metrics[name]

    def to_json(self) -> Any:
        curve = {} if self.curve is None else {"noise": [point.as_dict() for point in self.curve.points]}
        positive = {} if self.positive is None else {"f1_positive": self.positive}
        return {**self.metrics, **positive, **curve}

    def parts(self) -> Iterable[Any]:
        yield "\n".join(terminal_lines(self.report))
        if self.curve is not None:
            yield "\n".join(["", *draw_text(self.curve.chart), "", *self.curve.lines()])
