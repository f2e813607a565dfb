"""`bertie quickstart`: a first job from start to finish, on Python's documentation or on a user's own texts."""

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TextIO

import click
from rich.console import Console, ConsoleRenderable, RenderHook
from rich.control import Control
from rich.table import Table

from bertie.cli.display import console
from bertie.errors import SpecError
from bertie.jobs.job import check_name
from bertie.quickstart.plan import MINUTES, QuickstartFolder, asked_options
from bertie.quickstart.results import answer_parts, measure, open_finder, results_parts, write_page
from bertie.quickstart.stages import STAGES, run_stages
from bertie.reporting.events import Event
from bertie.reporting.progress import ProgressDisplay


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, epilog="\b\nExample:\n  bertie quickstart")
@click.argument("files", nargs=-1)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("quickstart"),
    help="The folder. An unfinished quickstart in it is continued.",
)
@click.option("--minutes", type=click.FloatRange(min=0.01), help=f"About how long it takes; {MINUTES} by default.")
@click.option("--text", multiple=True, help="Your texts instead of Python's documentation: files, folders, patterns.")
@click.option("--language", help="The language of --text: en, zh, ...; en by default.")
@click.option("--base", help="A model folder to start with, instead of training from scratch.")
@click.option("--ask", multiple=True, help="A question to answer at the end; may be repeated.")
@click.option("--until", help=f"The last stage to run: {', '.join(STAGES)}.")
def quickstart(
    files: tuple[str, ...],
    out: Path,
    minutes: float | None,
    text: tuple[str, ...],
    language: str | None,
    base: str | None,
    ask: tuple[str, ...],
    until: str | None,
) -> None:
    """Train a model from scratch and search by meaning, on text that this machine has.

    The text is the documentation of the Python packages installed here. Each stage shows the command that does it
    alone. A stopped quickstart is continued by the same command.
    """
    if until is not None:
        check_name("stage", until, STAGES)
        if ask:
            raise SpecError("--ask is answered at the end, not after one stage", hint="drop --until")
    if not all(question.strip() for question in ask):
        raise SpecError("--ask is empty", hint='ask for something, as in --ask "copy a folder"')
    place = QuickstartFolder(out)
    plan = place.start(asked_options(minutes, [*text, *(files or ())], language, base))
    finished = place.page.exists()
    if not (ask and finished):
        with place.log.open("a", encoding="utf-8") as log:
            screen = Screen(log)
            try:
                run_stages(place, plan, screen.run_command, screen.on_event, until)
            except KeyboardInterrupt:
                screen.print("\nStopped. The same command continues.")
                raise
    if until is not None:
        return
    finder, terminal = open_finder(place), Console(emoji=False)
    if not ask or not finished:
        results = measure(place, plan, finder)
        write_page(results, place, plan)
        show(results_parts(results, place, plan), terminal)
    for question in ask or typed_questions():
        show(answer_parts(question, finder, terminal.width), terminal)


class Screen(RenderHook):
    """Shows the lines of the stages and progress bars. Whatever else commands print goes to the log."""

    def __init__(self, log: TextIO):
        self.log, self.bars = log, ProgressDisplay(console)

    def on_event(self, event: Event) -> None:
        """Shows an event of the quickstart itself."""
        if event.kind == "progress":
            self.bars(event)
        elif event.data.get("detail"):
            print(event.message, file=self.log, flush=True)
        else:
            self.print(event.message)

    def print(self, line: str) -> None:
        self.bars.__exit__()  # the bar of what came before
        self.bars = ProgressDisplay(console)
        print(line, file=self.log, flush=True)
        print_line(line)

    def run_command(self, words: Sequence[str]) -> None:
        """Runs a command of bertie in this process. Mistakes of the user are raised."""
        from bertie.cli.app import bertie

        console.push_render_hook(self)
        try:
            with redirect_stdout(self.log), warnings.catch_warnings(record=True) as caught:
                bertie.main(args=list(words), prog_name="bertie", standalone_mode=False)
            for warning in caught:
                print(warning.message, file=self.log)
        finally:
            console.pop_render_hook()
            self.log.flush()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Keeps what a command prints off the screen, except for the refreshes of a progress bar."""
        moves: list[ConsoleRenderable] = [one for one in renderables if isinstance(one, Control)]
        printed = [one for one in renderables if not isinstance(one, Control)]
        Console(file=self.log, width=200).print(*printed, end="")
        return moves


def typed_questions() -> Iterator[str]:
    """Questions that somebody types, up to an empty one; none without a terminal."""
    while sys.stdin.isatty() and sys.stdout.isatty():
        try:
            question = input("\nAsk something (empty to end): ").strip()
        except EOFError:
            return
        if not question:
            return
        yield question


def show(parts: Iterable[str | Table], terminal: Console) -> None:
    for part in parts:
        print_line(part) if isinstance(part, str) else terminal.print(part)


def print_line(text: str) -> None:
    """Commands stay on one line, however long, so that they can be copied."""
    is_command = text.lstrip(" $").startswith("bertie")
    console.print(text, markup=False, highlight=False, soft_wrap=is_command)
