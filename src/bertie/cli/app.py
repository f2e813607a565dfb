"""The command `bertie`: arguments enter; results leave on stdout, progress and mistakes on stderr.

Every verb has one line in `VERBS`. A verb's file is imported only when the verb is called, so that `bertie --help`
does not wait for torch. A verb's function takes typer's parameters, prints its results to stdout, shows progress on
`console`, and raises `UserError` for what the user did wrong.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from bertie.errors import UserError

# Progress and messages. Results never come here, so that `bertie ... > file` holds results alone.
console = Console(stderr=True, emoji=False)  # a text with ":cat:" in it is shown as it is


class Verb(NamedTuple):
    target: str  # "module:name" of a function, or of a typer.Typer when the verb has verbs of its own
    summary: str
    example: str


VERBS = {
    "corpus": Verb(
        "bertie.cli.corpus:corpus",
        "Build a corpus from raw text, add to it, look at it, check it.",
        "bertie corpus build texts/*.jsonl --tokenizer my-vocab --out my-corpus",
    ),
    "embed": Verb(
        "bertie.cli.embed:embed",
        "Turn every text of a file into a vector.",
        "bertie embed my-model texts.txt --out vectors.npy",
    ),
    "evaluate": Verb(
        "bertie.cli.evaluate:evaluate",
        "Measure a task model on labelled rows.",
        "bertie evaluate my-task --data test.tsv --json",
    ),
    "fill": Verb(
        "bertie.cli.fill:fill",
        "Guess the missing words of a sentence.",
        'bertie fill my-model "Paris is the [MASK] of France."',
    ),
    "finetune": Verb(
        "bertie.cli.finetune:finetune",
        "Train a model for a task; run it again to go on.",
        "bertie finetune classify --base my-model --train train.tsv --dev dev.tsv --out my-task",
    ),
    "inspect": Verb(
        "bertie.cli.inspect:inspect",
        "Look into a model: parameters by part.",
        "bertie inspect params --recipe bert --size base",
    ),
    "machine": Verb(
        "bertie.cli.machine:machine",
        "Show the machine and how fast each precision runs on it.",
        "bertie machine --json",
    ),
    "plan": Verb(
        "bertie.cli.plan:plan",
        "Tell what a run would take: time, memory, disk.",
        "bertie plan --recipe bert --size mini --corpus my-corpus --steps 2000",
    ),
    "predict": Verb(
        "bertie.cli.predict:predict",
        "Let a task model answer.",
        "bertie predict my-task --input texts.csv --output answers.jsonl",
    ),
    "pretrain": Verb(
        "bertie.cli.pretrain:pretrain",
        "Train a model on a corpus; run it again to go on.",
        "bertie pretrain --recipe bert --size mini --corpus my-corpus --steps 2000 --out my-run",
    ),
    "quickstart": Verb(
        "bertie.cli.quickstart:quickstart",
        "Do a first job from end to end, in minutes.",
        'bertie quickstart --ask "how do I copy a folder?"',
    ),
    "recipes": Verb(
        "bertie.cli.recipes:recipes",
        "List the recipes, or show what one is made of.",
        "bertie recipes show albert",
    ),
    "runs": Verb(
        "bertie.cli.runs:runs",
        "List runs, draw their curves, compare them.",
        "bertie runs show my-run",
    ),
    "vocab": Verb(
        "bertie.cli.vocab:vocab",
        "Train a vocabulary, or give an old one new words.",
        "bertie vocab train texts/ --kind wordpiece --size 16000 --out my-vocab",
    ),
    "whiten": Verb(
        "bertie.cli.whiten:whiten",
        "Spread a model's vectors, so that cosines tell something.",
        "bertie whiten my-model --data texts.txt --out my-white-model",
    ),
}


def example(line: str) -> str:
    """The end of a command's help. The `\\b` keeps the line as it is written."""
    return f"\b\nExample:\n  {line}"


class LazyCommand(TyperCommand):
    """A verb in the list of verbs: its name and summary, without its code."""

    def __init__(self, name: str, verb: Verb):
        super().__init__(name, help=verb.summary)
        self.verb = verb

    def load(self) -> Any:
        module, attribute = self.verb.target.split(":")
        target = getattr(importlib.import_module(module), attribute)
        # No markup: "[MASK]" in a help text must survive.
        owner = typer.Typer(rich_markup_mode=None, add_completion=False)
        if isinstance(target, typer.Typer):
            owner.add_typer(target, name=self.name, help=self.verb.summary, epilog=example(self.verb.example))
            return get_command(owner).commands[self.name]  # type: ignore[attr-defined]
        owner.command(self.name, epilog=example(self.verb.example))(target)
        return get_command(owner)


class LazyGroup(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            console.print("Interrupted.", style="red")
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    epilog=example("bertie machine"),
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bertie {version('bertie')}")
        raise typer.Exit


@app.callback()
def bertie(
    version: bool = typer.Option(False, "--version", callback=print_version, is_eager=True, help="Print the version."),
) -> None:
    """From raw text to a language encoder, and from the encoder to a task model."""


def build_command() -> LazyGroup:
    command = get_command(app)
    assert isinstance(command, LazyGroup)
    for name, verb in VERBS.items():
        command.add_command(LazyCommand(name, verb))
    return command


def silence_stdout() -> None:
    """The reader of our pipe is gone: let Python's last flush go nowhere instead of complaining."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is closed or is no real file
        return


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code: 2 for a user's mistake, 130 when interrupted."""
    try:
        build_command().main(args=arguments, prog_name="bertie")
    except UserError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except SystemExit:
        try:
            sys.stdout.flush()  # typer silences a broken pipe that a write meets, but not this one
        except BrokenPipeError:
            silence_stdout()
            sys.exit(1)
        raise


if __name__ == "__main__":
    main()
