"""The command `bertie`: results go to stdout, progress and mistakes to stderr.

`VERBS` is the table of all commands. A command is a job: its module is imported only when it is called, so that
`bertie --help` does not wait for torch.
"""

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import click

from bertie.cli.display import console
from bertie.cli.standard_output import checked_stdout
from bertie.errors import UserError

JOBS = "bertie.jobs"
VIEWS = "bertie.jobs.text.corpus_views"
CONTEXT = {"help_option_names": ["-h", "--help"]}


class Verb(NamedTuple):
    summary: str
    job: str  # "module:class"
    inner: Mapping[str, "Verb"] = {}  # verbs of its own, as in `bertie corpus build`
    has_default: bool = False  # whether the first of these is meant where none is named


VERBS = {
    "corpus": Verb(
        "Build a corpus from text, extend it, look at it, check it.",
        "",
        {
            "build": Verb("Build a corpus from text files.", f"{JOBS}.text.corpus_jobs:BuildCorpusJob"),
            "add": Verb("Append documents to a corpus.", f"{JOBS}.text.corpus_jobs:AddToCorpusJob"),
            "verify": Verb("Check that every byte is as it was written.", f"{JOBS}.text.corpus_jobs:VerifyCorpusJob"),
            "report": Verb("Report counts, lengths, scripts, what was left out.", f"{VIEWS}:ReportCorpusJob"),
            "show": Verb("Print a document with its sentences, words and pieces.", f"{VIEWS}:ShowDocumentJob"),
            "freeze": Verb("Write static masks.", f"{VIEWS}:FreezeCorpusJob"),
        },
    ),
    "embed": Verb("Turn every text of a file into a vector.", f"{JOBS}.embed:EmbedJob"),
    "evaluate": Verb("Measure a task model on labelled rows.", f"{JOBS}.finetuning.evaluate:EvaluateJob"),
    "fill": Verb("Guess the missing words of a sentence.", f"{JOBS}.fill:FillJob"),
    "finetune": Verb("Train a model for a task.", f"{JOBS}.finetuning.finetune:FinetuneJob"),
    "inspect": Verb(
        "Look into a model.", "", {"params": Verb("Count parameters by part.", f"{JOBS}.inspect:CountJob")}
    ),
    "machine": Verb("Show the machine and how fast each precision runs on it.", f"{JOBS}.machine_job:MachineJob"),
    "plan": Verb("Estimate the time, memory and disk of a run.", f"{JOBS}.training.plan:PlanJob"),
    "predict": Verb("Predict with a task model.", f"{JOBS}.finetuning.predict:PredictJob"),
    "pretrain": Verb("Train a model on a corpus.", f"{JOBS}.training.pretrain:PretrainJob"),
    "quickstart": Verb("Do a first job from end to end, in minutes.", "bertie.cli.quickstart:quickstart"),
    "recipes": Verb(
        "List the recipes, or show what one is made of.",
        "",
        {
            "list": Verb("List the recipes and their sizes.", f"{JOBS}.training.recipe_jobs:ListRecipesJob"),
            "show": Verb("Show the parts of a recipe.", f"{JOBS}.training.recipe_jobs:ShowRecipeJob"),
        },
        has_default=True,
    ),
    "runs": Verb(
        "List runs, draw their curves, compare them.",
        "",
        {
            "list": Verb("List the runs in a folder.", f"{JOBS}.training.runs:ListRunsJob"),
            "show": Verb("Draw the curves of a run.", f"{JOBS}.training.runs:ShowRunJob"),
            "compare": Verb("Compare several runs.", f"{JOBS}.training.runs:CompareRunsJob"),
        },
        has_default=True,
    ),
    "vocab": Verb(
        "Train a vocabulary, or add words to one.",
        "",
        {
            "train": Verb("Train a vocabulary.", f"{JOBS}.text.vocab:TrainVocabJob"),
            "extend": Verb("Add words to a tokenizer and its model.", f"{JOBS}.text.vocab:ExtendVocabJob"),
        },
    ),
    "whiten": Verb("Spread a model's vectors, so that their cosines can be compared.", f"{JOBS}.whiten:WhitenJob"),
}


class VerbGroup(click.Group):
    """Verbs by name, each loaded when it is called."""

    def __init__(self, name: str | None, verbs: Mapping[str, Verb], **options: Any):
        super().__init__(name, no_args_is_help=True, **options)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.verbs:
            from difflib import get_close_matches

            nearest = get_close_matches(name, self.verbs, n=1)
            did_you_mean = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise click.UsageError(f"No such command {name!r}.{did_you_mean}", ctx)
        verb = self.verbs[name]
        if verb.inner:
            group = VerbGroupWithDefault if verb.has_default else VerbGroup
            return group(name, verb.inner, help=verb.summary, context_settings=CONTEXT)
        module, attribute = verb.job.split(":")
        found = getattr(importlib.import_module(module), attribute)
        if isinstance(found, click.Command):
            return found
        if name == "finetune":  # a command for each task, those of plugins included
            from bertie.cli.finetune_tasks import FinetuneGroup

            tasks = {task: Verb(about, "") for task, about in found.tasks().items()}
            return FinetuneGroup(name, tasks, help=verb.summary, context_settings=CONTEXT)
        from bertie.cli.command import JobCommand

        return JobCommand(name, found)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):  # without loading them
            formatter.write_dl([(name, verb.summary) for name, verb in self.verbs.items()])


class VerbGroupWithDefault(VerbGroup):
    """Its first verb is meant where none is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = bool(args) and (args[0] in self.verbs or args[0] in ("-h", "--help"))
        return super().parse_args(ctx, args if known else [next(iter(self.verbs)), *args])


bertie = VerbGroup("bertie", VERBS, help="From raw text to a language encoder, and from the encoder to a task model.")
click.version_option(version("bertie"), prog_name="bertie", message="%(prog)s %(version)s")(bertie)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and leaves with its exit code: 2 for a user's mistake, 130 when interrupted."""
    try:
        with checked_stdout():
            words = sys.argv[1:] if arguments is None else list(arguments)
            if any(word.startswith(("--plugin", "--config")) for word in words):
                words = use_plugins(words)
            code = bertie.main(args=words, prog_name="bertie", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except UserError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort) as error:
        interruption = error.__cause__ or error  # click raises Abort in place of a KeyboardInterrupt
        console.print(
            str(interruption) or "Interrupted.", style="yellow", markup=False, highlight=False, soft_wrap=True
        )
        sys.exit(getattr(interruption, "exit_code", 130))
    except BrokenPipeError:
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def use_plugins(words: Sequence[str]) -> list[str]:
    """Loads the files given with --plugin, also in a config file, since they may define commands. Returns the other
    words."""
    from bertie.jobs.job import plugins_in
    from bertie.plugins import use

    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        if name not in ("--plugin", "--config"):
            kept.append(word)
            continue
        file = value if sign else next(rest, "")
        if name == "--config":
            kept += [name, file]
        for plugin in [file] if name == "--plugin" else plugins_in(Path(file)):
            use(plugin)
    return kept


if __name__ == "__main__":
    main()
