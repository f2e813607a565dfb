"""The job `predict`: answers rows with a task model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from bertie.disk import atomic_file, writing_to
from bertie.errors import InputError, SpecError
from bertie.jobs.data import Data, ModelSource
from bertie.jobs.evaluate import RowOptions
from bertie.jobs.job import Job, option
from bertie.jobs.row_notes import report_corrected, report_cuts, report_rows, report_unknown_in
from bertie.models.answering_rows import READ_AHEAD, answers_of
from bertie.models.pretrained import Pretrained, load
from bertie.reporting.events import Event, OnEvent, ignore, message, progress
from bertie.reporting.page import table
from bertie.tasks.examples import Examples
from bertie.tasks.task import Answer, Example, Task


class PredictJob(Job):
    """Predict with a task model: one answer per row, in the order of the rows.

    A row that cannot be used gets an object with its `error`. Each answer is one JSON line, unless a terminal shows it.
    """

    verb: ClassVar[str] = "predict"
    example: ClassVar[str] = "bertie predict my-task --input texts.csv --output answers.jsonl"
    exclusive: ClassVar[Any] = (("texts", "input"),)
    model: ModelSource = option(help="A folder that bertie finetune wrote.", argument=True)
    texts: tuple[str, ...] = option(
        (),
        "A text, the texts of a pair, or a query and its candidates, instead of `input`.",
        argument=True,
        common=True,
    )
    input: Data = option(None, "Rows to answer.", common=True, many=True, paths=True, metavar="FILE")
    output: Path | None = option(
        None, "Write one JSON object per line here; standard output by default.", common=True, metavar="FILE"
    )
    reading: RowOptions = RowOptions()

    def run(self, on_event: OnEvent = ignore) -> None:
        """Writes the answers, or reports each as an event of kind "answer"."""
        if not self.texts and self.input is None:
            raise SpecError("there is nothing to answer", hint="give texts, or rows as `input`")
        model = load(self.model)
        if self.output is None:
            for answer, text in self.answers(model, on_event):
                on_event(Event("answer", text, answer))
            return
        self.output.parent.mkdir(parents=True, exist_ok=True)
        with writing_to(self.output), atomic_file(self.output) as file:
            for answer, _ in self.answers(model, on_event):
                file.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")

    def collect(self, model: Pretrained, on_event: OnEvent = ignore) -> "Predictions":
        """The answers of a model that is already loaded."""
        return Predictions(answer for answer, _ in self.answers(model, on_event))

    def answers(self, model: Pretrained, on_event: OnEvent) -> Iterator[tuple[Answer, str]]:
        """Each answer, with its words for people."""
        reading = self.reading
        task = model.task(reading.task)
        max_length = model.max_length_for(reading.max_length)
        tokenizer = model.tokenizer_for(max_length)
        if self.texts:
            values = task.rows_from_texts(self.texts)
            read = [task.read(one, tokenizer, max_length) for one in values]
            answers = [answer for _, answer in answers_of(model.model, task, read)]
            report_corrected(tokenizer, task, values, on_event)
            report_cuts([one.num_cut for one in read], max_length, on_event)
            report_unknown_in(read, tokenizer, on_event)
            yield from ((answer, in_words(answer)) for answer in task.arrange(self.texts, answers))
            return
        labelled = reading.open(model, task, self.input, "rows", on_event, targets=False)
        examples = Examples(task, labelled, tokenizer, max_length, labelled=False, cached=0)
        num_errors = 0
        for number, answer in enumerate(answered(model, task, examples), 1):
            num_errors += "error" in answer
            yield answer, in_words(answer)
            on_event(progress("Answering", number, examples.num_samples, "rows"))
        report_rows(examples, on_event)
        if num_errors:
            on_event(message(f"{num_errors:,} of {examples.num_samples:,} rows could not be answered"))


def answered(model: Pretrained, task: Task, examples: Examples) -> Iterator[Answer]:
    """One a row, in their order; a row that cannot be used is answered with its error."""
    for first in range(0, examples.num_samples, READ_AHEAD):
        read: list[Example | InputError] = []
        for number in range(first, min(first + READ_AHEAD, examples.num_samples)):
            try:
                example = examples.example(number)
                assert example is not None
                read.append(example)
            except InputError as error:
                read.append(InputError(error.what, where=error.where))  # hints for training rows do not help here
        answers = answers_of(model.model, task, (one for one in read if isinstance(one, Example)))
        for one in read:
            yield {"error": str(one)} if isinstance(one, InputError) else next(answers)[1]


def in_words(answer: Answer) -> str:
    """An answer on one line: its plain values, and entities in their text."""
    words = [
        f"{value:.4f}" if isinstance(value, float) else str(value)
        for value in answer.values()
        if not isinstance(value, list | dict)
    ]
    words += [f"{entity['text']} ({entity['type']})" for entity in answer.get("entities", ())]
    return "  ".join(words) or str(answer)


class Predictions(list[Answer]):
    """One answer per row. A notebook shows them as a table."""

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for answer in self[:SHOWN] for name in answer))
        rows = [[str(answer.get(name, "")) for name in names] for answer in self[:SHOWN]]
        more = f"<p>{len(self) - SHOWN:,} more</p>" if len(self) > SHOWN else ""
        return table(names, rows) + more


SHOWN = 50  # answers of a table
