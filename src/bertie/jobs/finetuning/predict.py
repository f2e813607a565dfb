"""The job `predict`: answers rows with a task model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from bertie.data.rows.memory_rows import MemoryRows
from bertie.devices import HELP as DEVICE_HELP
from bertie.devices import DeviceName
from bertie.disk import atomic_file, check_output, writing_to
from bertie.errors import InputError, SpecError
from bertie.jobs.finetuning.evaluate import RowOptions
from bertie.jobs.finetuning.row_notes import report_rows
from bertie.jobs.job import Job, option
from bertie.jobs.options.data import Data, ModelSource, paths_in
from bertie.jobs.options.model_device import open_model
from bertie.models.answering_rows import READ_AHEAD, answers_of
from bertie.models.pretrained import Pretrained, load
from bertie.reporting.events import Event, OnEvent, ignore, message, progress
from bertie.reporting.page import table
from bertie.tasks.examples import Examples
from bertie.tasks.labelled import Labelled
from bertie.tasks.task import Answer, Example


class PredictJob(Job):
    """Predict with a task model: one answer per row, in the order of the rows, with its number.

    A row that cannot be used is answered with its error. Each answer is one JSON line, unless a terminal shows it.
    """

    verb: ClassVar[str] = "predict"
    example: ClassVar[str] = "bertie predict my-task --input texts.csv --output answers.jsonl"
    exclusive: ClassVar[Any] = (("texts", "input"),)
    requires: ClassVar[Any] = {"overwrite": "output"}
    model: ModelSource = option(help="A folder that bertie finetune wrote.", argument=True)
    texts: tuple[str, ...] = option(
        (),
        "Texts, each with its own answer; or the texts of one pair, or a query and its candidates.",
        argument=True,
        common=True,
    )
    input: Data = option(
        None,
        "Rows to answer; - is stdin, a text per line unless `format` says otherwise.",
        common=True,
        many=True,
        paths=True,
        metavar="FILE",
    )
    output: Path | None = option(
        None, "Write one JSON object per line here; standard output by default.", common=True, metavar="FILE"
    )
    overwrite: bool = option(False, "Replace an existing output file.", common=True)
    with_text: bool = option(False, "Put what was read of the row into its answer, as input.", common=True)
    device: DeviceName = option("auto", DEVICE_HELP, common=True)
    reading: RowOptions = RowOptions()

    def run(self, on_event: OnEvent = ignore) -> None:
        """Writes the answers, or reports each as an event of kind "answer"."""
        if not self.texts and self.input is None:
            raise SpecError("there is nothing to answer", hint="give texts, or rows as `input`")
        if self.output is not None:
            check_output(self.output, "output", [self.model, *paths_in(self.input)], self.overwrite)
        model = load(self.model, device=self.device)
        if self.output is None:
            for answer in self.answers(model, on_event):
                on_event(Event("answer", in_words(answer), answer))
            return
        with writing_to(self.output, "run it again, or choose another `output`"):
            self.output.parent.mkdir(parents=True, exist_ok=True)
            num_answers = 0
            with atomic_file(self.output) as file:
                for answer in self.answers(model, on_event):
                    file.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
                    num_answers += 1
        on_event(message(f"{num_answers:,} answers are in {self.output}"))

    def collect(self, model: Pretrained, on_event: OnEvent = ignore) -> "Predictions":
        """The answers of a model that is already loaded."""
        return Predictions(self.answers(open_model(model, self), on_event))

    def answers(self, model: Pretrained, on_event: OnEvent) -> Iterator[Answer]:
        """Each with the number of its row, from 1."""
        reading = self.reading
        task = model.task(reading.task)
        max_length = model.max_length_for(reading.max_length)
        if self.texts:
            given = task.rows_from_texts(self.texts)
            labelled = Labelled(MemoryRows("texts", given), {role: role for row in given for role in row})
        else:
            labelled = reading.open(model, task, self.input, "rows", on_event, targets=False)
        examples = Examples(task, labelled, model.tokenizer_for(max_length), max_length, labelled=False, cached=0)
        found = self._answered(model, examples, on_event)
        yield from task.arrange(self.texts, list(found)) if self.texts else found
        report_rows(examples, on_event)

    def _answered(self, model: Pretrained, examples: Examples, on_event: OnEvent) -> Iterator[Answer]:
        """One a row, in their order; a row that cannot be used is answered with its error."""
        num_errors, num_rows = 0, examples.num_samples
        for first in range(0, num_rows, READ_AHEAD):
            read: dict[int, Example | InputError] = {}
            for number in range(first, min(first + READ_AHEAD, num_rows)):
                try:
                    example = examples.example(number)
                    assert example is not None
                    read[number] = example
                except InputError as error:
                    read[number] = InputError(error.what, where=error.where)  # hints for training rows do not help here
            answers = answers_of(model.model, examples.task, (one for one in read.values() if isinstance(one, Example)))
            for number, one in read.items():
                answer = {"error": str(one)} if isinstance(one, InputError) else next(answers)[1]
                num_errors += "error" in answer
                given = {"input": inputs_of(examples, number)} if self.with_text else {}
                yield {"row": number + 1, **given, **answer}
                on_event(progress("Answering", number + 1, num_rows, "rows"))
        if num_errors:
            on_event(message(f"{num_errors:,} of {num_rows:,} rows could not be answered"))


def inputs_of(examples: Examples, number: int) -> dict[str, Any]:
    """What a row has to be answered, by role; nothing where it cannot be read."""
    try:
        values, _ = examples.data.values(number)
    except InputError:
        return {}
    return {role: value for role, value in values.items() if role not in examples.task.targets}


def in_words(answer: Answer) -> str:
    """An answer on one line: its number, its input, its plain values, and entities in their text."""
    own = {name: value for name, value in answer.items() if name not in ("row", "input")}
    words = [
        f"{value:.4f}" if isinstance(value, float) else str(value)
        for value in own.values()
        if not isinstance(value, list | dict)
    ]
    words += [f"{entity['text']} ({entity['type']})" for entity in own.get("entities", ())]
    return "  ".join([str(answer["row"]), *map(str, answer.get("input", {}).values()), *(words or [str(own)])])


class Predictions(list[Answer]):
    """One answer per row. A notebook shows them as a table."""

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for answer in self[:SHOWN] for name in answer))
        rows = [[str(answer.get(name, "")) for name in names] for answer in self[:SHOWN]]
        more = f"<p>{len(self) - SHOWN:,} more</p>" if len(self) > SHOWN else ""
        return table(names, rows) + more


SHOWN = 50  # answers of a table
