"""`bertie quickstart`: a first job from end to end, on the documentation of this Python or on a user's own texts."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which
from typing import Any

import typer
from rich.console import Console

from bertie.cli.app import build_command, console
from bertie.cli.choices import check
from bertie.data.manifest import write_whole
from bertie.errors import SpecError
from bertie.models.pretrained import load
from bertie.quickstart.finding import Finder
from bertie.quickstart.plan import Place, Plan
from bertie.quickstart.results import open_finder, results
from bertie.quickstart.results_page import answer_table, next_commands, question_table, results_page, score_table
from bertie.quickstart.running import run_stages
from bertie.quickstart.stages import STAGES
from bertie.text.sentences import check_language

SHOWN = 5  # answers to a question


def quickstart(
    files: list[str] = typer.Argument(None, help="More of --text: --text *.txt, as a shell writes it, works."),
    out: Path = typer.Option(Path("quickstart"), help="The folder; an unfinished quickstart in it goes on."),
    minutes: float | None = typer.Option(None, min=0.01, help="About how long all of it takes; 8.5 by default."),
    text: list[str] = typer.Option([], help="Your texts instead of Python's documentation: files, folders, patterns."),
    lang: str | None = typer.Option(None, help="The language of --text: en, zh, ...; en by default."),
    base: str | None = typer.Option(None, help="A model folder to begin with, instead of training one from nothing."),
    ask: list[str] = typer.Option([], help="A question to answer at the end; may be given several times."),
    until: str | None = typer.Option(None, help=f"The last stage to run: {', '.join(STAGES)}."),
) -> None:
    """Train a vocabulary, a model, a classifier and a search by meaning, on text that this machine has.

    That is the documentation of the Python and the packages that are installed here. Each stage tells the command
    that does it alone. When it is stopped, or the machine fails, the same command goes on.
    """
    check_wishes(until, ask)
    place = Place(out)
    if base is not None and not place.entries.exists():
        load(base)  # that it is no model is told before anything is done
    plan = place.begin(wishes_of(minutes, [*text, *(files or ())], lang, base))
    if not (ask and place.page.exists()):
        try:
            run_stages(place, plan, run, say, until)
        except KeyboardInterrupt:
            say("\nWhat is done is kept: the same command goes on.")
            raise
    if until is not None:
        return
    finder, screen = open_finder(place), Console(emoji=False)
    if not ask or not place.page.exists():
        tell_results(place, plan, finder, screen)
    for question in ask or asked_in_terminal():
        answer(question, finder, screen)


def check_wishes(until: str | None, ask: Sequence[str]) -> None:
    if until is not None:
        check("stage", until, STAGES)
        if ask:
            raise SpecError("--ask is answered at the end, not after one stage", hint="leave out --until")
    if not all(question.strip() for question in ask):
        raise SpecError("--ask has no words", hint='ask for something, as in --ask "copy a folder"')


def tell_results(place: Place, plan: Plan, finder: Finder, screen: Console) -> None:
    say("\nThe results:")
    found = results(place, plan, finder)
    write_whole(place.page, results_page(found, place, plan).encode())
    screen.print(score_table(found))
    if found.outcomes:
        screen.print(question_table(found))
    say(f"All of it is in {place.page}. To try next:")
    for command in next_commands(found, place, plan):
        say(f"  {command}")
    own = Path(sys.executable).with_name("bertie")
    if which("bertie") is None and own.exists():
        say(f"Here bertie is {shlex.quote(os.path.relpath(own))}.")


def wishes_of(minutes: float | None, texts: Sequence[str], language: str | None, base: str | None) -> dict[str, Any]:
    """Paths are absolute, so that the folder goes on from anywhere."""
    wishes = {
        "minutes": minutes,
        "texts": tuple(map(absolute, texts)) or None,
        "language": language and check_language(language),
        "base": base and absolute(base),
    }
    return {name: value for name, value in wishes.items() if value is not None}


def run(words: Sequence[str]) -> None:
    """A command of bertie, in this process. Mistakes of the user pass through."""
    if code := build_command().main(args=list(words), prog_name="bertie", standalone_mode=False):
        raise typer.Exit(code)


def answer(question: str, finder: Finder, screen: Console) -> None:
    if num_cut := finder.num_cut(question):
        say(f"the last {num_cut:,} tokens of the question are not read by meaning: it is longer than the texts")
    sides = finder.by_meaning(question, SHOWN), finder.by_words(question, SHOWN)
    screen.print(answer_table(question, *sides, screen.width))


def asked_in_terminal() -> Iterator[str]:
    """Questions that somebody types, until an empty one; none where nobody is there."""
    while sys.stdin.isatty() and sys.stdout.isatty():
        try:
            question = input("\nAsk for something (empty: end): ").strip()
        except EOFError:
            return
        if not question:
            return
        yield question


def absolute(name: str) -> str:
    """What is no path here is a pattern, or a name on the hub."""
    return str(Path(name).resolve()) if Path(name).exists() else name


def say(told: str) -> None:
    """What is to be copied stays on one line, however long."""
    is_command = told.lstrip().startswith(("$ bertie", "bertie"))
    console.print(told, markup=False, highlight=False, soft_wrap=is_command)
