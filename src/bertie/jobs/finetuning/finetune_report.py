"""Writes what the rows were like and how good the model is on those held out, into the run's folder."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from bertie.devices import CPU
from bertie.disk import write_file
from bertie.models.pretrained import load
from bertie.reporting.events import OnEvent, message, warning
from bertie.train.finetuning.data_card import DATA_CARD
from bertie.train.finetuning.finetuning import Finetuned, PreparedTask
from bertie.train.finetuning.task_evaluation import TaskEvaluation
from bertie.train.folder.history import read_history
from bertie.train.folder.run_folder import MODEL
from bertie.train.reports.origin import origin_of
from bertie.train.reports.task_page import task_page
from bertie.train.reports.task_report import metric_lines, report_task

REPORT = "report.html"


def write_reports(
    folder: Path,
    prepared: Sequence[PreparedTask],
    found: Finetuned,
    on_event: OnEvent,
    *,
    shown: bool,
    was_finished: bool,
    device: torch.device = CPU,
) -> None:
    """Data cards and reports. Where it is `shown`, the metrics are also a message. What a finished run already has
    is left alone."""
    for one in prepared:
        own = folder if len(prepared) == 1 else folder / one.task.name
        if was_finished and (own / (DATA_CARD if one.dev is None else REPORT)).exists():
            continue
        own.mkdir(exist_ok=True)
        write_file(own / DATA_CARD, (json.dumps(one.card.as_dict(), indent=1, ensure_ascii=False) + "\n").encode())
        if one.train.faults.counts:
            on_event(warning(str(one.train.faults)))
        if one.dev is None:
            continue
        measured = found.evaluations.get(one.task.name)
        if measured is None or (answers := measured.last_answers) is None:
            trained = load(str(folder), device=device)
            measured = TaskEvaluation(trained.task(one.task.name), one.dev.all())
            answers = measured.answers(trained.model)
        history, rows = read_history(folder), one.dev.data
        report = report_task(
            measured.task,
            measured.examples,
            answers,
            name=rows.rows.name,
            history=history,
            card=one.card.as_dict(),
            origin=origin_of(str(folder / MODEL), found.card, rows, history.resolved["recipe"]),
        )
        write_file(own / REPORT, task_page(report).encode())
        if shown:
            on_event(message("\n".join(metric_lines(report))))
            on_event(message(f"the report, with confusions and the worst mistakes: {own / REPORT}"))
