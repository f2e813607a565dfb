"""The job `quickstart`: from texts that this machine has to a model and a search by meaning, in minutes."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TextIO

from rich.console import Console

from bertie.errors import SpecError
from bertie.jobs.embed import EmbedJob
from bertie.jobs.finetuning.finetune import FinetuneJob
from bertie.jobs.job import Job, check_name, option
from bertie.jobs.result import WIDTH, Result
from bertie.jobs.text.corpus_jobs import BuildCorpusJob
from bertie.jobs.text.vocab import TrainVocabJob
from bertie.jobs.training.pretrain import PretrainJob
from bertie.jobs.whiten import WhitenJob
from bertie.quickstart.finding import Finder
from bertie.quickstart.results import (
    Results,
    answer_parts,
    answers_json,
    measure,
    open_finder,
    results_parts,
    write_page,
)
from bertie.quickstart.stages import STAGES, run_stages
from bertie.quickstart.time_plan import MINUTES, QuickstartFolder, asked_options
from bertie.reporting.events import Event, OnEvent, ignore

SHOWN = ("progress", "step")  # events of the commands that are passed on; all else is in the log
# The commands of the stages. A task is named by the second word of its command.
JOBS: dict[tuple[str, ...], type[Job]] = {
    ("vocab", "train"): TrainVocabJob,
    ("corpus", "build"): BuildCorpusJob,
    ("pretrain",): PretrainJob,
    ("whiten",): WhitenJob,
    ("finetune", "similarity"): FinetuneJob.for_task("similarity"),
    ("embed",): EmbedJob,
}


class QuickstartJob(Job):
    """Train a model from scratch and search by meaning, on text that this machine has.

    The text is the documentation of the Python packages installed here. Each stage shows the command that does it
    alone. A stopped quickstart is continued by the same command.
    """

    verb: ClassVar[str] = "quickstart"
    example: ClassVar[str] = "bertie quickstart"
    files: tuple[str, ...] = option((), "More of `text`.", argument=True)
    out: Path = option(Path("quickstart"), "The folder; an unfinished quickstart in it is continued.", common=True)
    minutes: float | None = option(None, f"About how long it takes; {MINUTES} by default.", common=True, ge=0.01)
    text: tuple[str, ...] = option(
        (),
        "Your texts instead of Python's documentation: files, folders, patterns.",
        common=True,
        many=True,
        metavar="PATH",
    )
    language: str | None = option(None, "The language of `text`: en, zh, ...; en by default.", common=True)
    base: str | None = option(
        None, "A model folder to start with, instead of training from scratch.", common=True, metavar="MODEL"
    )
    ask: tuple[str, ...] = option(
        (), "A question to answer at the end; may be repeated.", common=True, many=True, metavar="TEXT"
    )
    until: str | None = option(None, f"The last stage to run: {', '.join(STAGES)}.", common=True, metavar="STAGE")

    def run(self, on_event: OnEvent = ignore) -> "QuickstartResult | None":
        """None where only some of the stages were run."""
        self._check()
        place = QuickstartFolder(self.out)
        plan = place.start(asked_options(self.minutes, [*self.text, *self.files], self.language, self.base))
        was_finished = place.page.exists()
        if not (self.ask and was_finished):
            with place.log.open("a", encoding="utf-8") as log:
                report = partial(_report, log, on_event)
                run_stages(place, plan, partial(run_command, log=log, on_event=report), report, self.until)
        if self.until is not None:
            return None
        finder, results = open_finder(place), None
        if not self.ask or not was_finished:
            results = measure(place, plan, finder)
            write_page(results, place, plan)
        lines = [] if results is None else list(results_parts(results, place, plan))
        return QuickstartResult(place.folder, finder, results, lines, self.ask)

    def _check(self) -> None:
        if self.until is not None:
            check_name("stage", self.until, STAGES)
            if self.ask:
                raise SpecError("`ask` is answered at the end, not after one stage", hint="drop `until`")
        if not all(question.strip() for question in self.ask):
            raise SpecError("`ask` is empty", hint="ask for something, as in `ask=copy a folder`")


def _report(log: TextIO, on_event: OnEvent, event: Event) -> None:
    """Messages go to the log; those that are details go nowhere else."""
    if event.message:
        print(event.message, file=log, flush=True)
    if event.kind in SHOWN or not event.data.get("detail"):
        on_event(event)


def run_command(words: Sequence[str], *, log: TextIO, on_event: OnEvent) -> None:
    """Runs a command of a stage. Its result, messages and warnings are in the log; its progress is passed on."""

    def report(event: Event) -> None:
        if event.kind in SHOWN:
            on_event(Event(event.kind, data=event.data))
        if event.message:
            print(event.message, file=log, flush=True)

    with warnings.catch_warnings(record=True) as caught:
        result = job_of(words).run(report)
    for warning in caught:
        print(warning.message, file=log)
    print(result, file=log, flush=True)


def job_of(words: Sequence[str]) -> Job:
    """The job that a command's words describe."""
    verb = next(verb for verb in JOBS if tuple(words[: len(verb)]) == verb)
    job, rest = JOBS[verb], iter(words[len(verb) :])
    options: dict[str, Any] = {"task": verb[1]} if verb[0] == "finetune" else {}
    arguments = (one.name for one in job.options() if one.extra.get("argument"))
    flags = {one.name for one in job.options() if one.field.annotation is bool}
    for word in rest:
        if word.startswith("--"):
            name = word.removeprefix("--").replace("-", "_")
            options[name] = True if name in flags else next(rest)
        else:
            options[next(arguments)] = word
    return job.from_options(options)


class QuickstartResult(Result):
    """What was learned, and answers to questions: `result.answer("copy a folder")` gives more."""

    def __init__(
        self, folder: Path, finder: Finder, results: Results | None, lines: Sequence[Any], asked: Sequence[str]
    ):
        self.folder, self.finder, self.results, self.asked = folder, finder, results, tuple(asked)
        self._lines = lines

    def answer(self, question: str, width: int = WIDTH) -> Iterator[Any]:
        """The answers of each method, as lines and tables to print."""
        yield from answer_parts(question, self.finder, width)

    def print(self, console: Console) -> None:
        for part in (*self._lines, *(one for question in self.asked for one in self.answer(question, console.width))):
            # Commands stay on one line, however long, so that they can be copied.
            is_command = isinstance(part, str) and part.lstrip(" $").startswith("bertie")
            console.print(part, markup=False, highlight=False, soft_wrap=is_command)

    def parts(self) -> Iterable[Any]:
        yield from self._lines
        for question in self.asked:
            yield from self.answer(question)

    def to_json(self) -> Any:
        answers = {question: answers_json(question, self.finder) for question in self.asked}
        if self.results is None:
            return {"folder": str(self.folder), "answers": answers}
        found = {name: self.results.num_found(name) for name in self.results.methods} if self.results.outcomes else {}
        measured = {"found": found, "recalled": dict(self.results.recalled), "seconds": dict(self.results.seconds)}
        return {"folder": str(self.folder), **measured, "answers": answers}
