"""Help states what is true: defaults as the code has them, choices, and no flag where a plain word is meant."""

import re
from collections.abc import Iterator

import click
import pytest

from bertie.cli.app import bertie
from bertie.cli.command import JobCommand
from bertie.jobs.finetuning import finetune_options
from bertie.jobs.finetuning.finetune import FinetuneJob
from bertie.jobs.training import pretrain
from bertie.models import embedding
from bertie.tasks import TASKS
from bertie.train.learning.adversarial import FGM, VirtualAdversarial


def commands(group: click.Command, path: str = "bertie") -> Iterator[tuple[str, JobCommand]]:
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")
    elif isinstance(group, JobCommand):
        yield path, group


def help_of(command: JobCommand) -> str:
    context = click.Context(command)
    context.meta["help_all"] = True
    return " ".join(command.get_help(context).split())


@pytest.mark.parametrize(("path", "command"), [pytest.param(*one, id=one[0]) for one in commands(bertie)])
def test_help_is_complete(path: str, command: JobCommand) -> None:
    text = help_of(command)
    for odd in ("{}", "()", "None", "PydanticUndefined", "INTEGER RANGE", "folder --"):
        assert odd not in text, odd
    assert not re.search(r"`[a-z_]+`", text.replace("`error`", "")), "an option is named, but not as a flag"
    for one in command.options:
        default = one.field.default
        if (
            one.field.is_required()
            or isinstance(default, bool)
            or not isinstance(default, int | float | str)
            or not default
        ):
            continue
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        assert f"[default: {shown}]" in text, one.name


def test_defaults_that_depend_on_other_options() -> None:
    rates = f"{finetune_options.RATE:g}".replace("e-0", "e-")
    assert len({finetune_options.FRESH_RATE, finetune_options.NEW_RATE, finetune_options.TOP_RATE}) == 1
    text = dict(commands(bertie))
    assert f"{rates} by default, but 1e-3 with --recipe, --lora, --features or --freeze all" in help_of(
        text["bertie finetune classify"]
    )
    assert finetune_options.FRESH_RATE == 1e-3
    lengths = {name: task.max_length for name, task in TASKS.items() if task.max_length != 128}
    assert lengths == {"answer": 384}, "as the help of `max_length` says"
    assert (FGM().epsilon, VirtualAdversarial().epsilon) == (1, 5), "as the help of `epsilon` says"
    assert f"{embedding.BATCH_TOKENS} by default" in help_of(text["bertie embed"])
    assert (pretrain.WARMUP, pretrain.LONGEST_WARMUP, pretrain.LENGTH) == (0.1, 10_000, 128)


def test_every_task_says_what_it_does() -> None:
    for name, command in commands(bertie):
        if name.startswith("bertie finetune"):
            task = name.split()[-1]
            assert command.in_flags(FinetuneJob.tasks()[task]) in help_of(
                command
            ) and f"bertie finetune {task} --base" in help_of(command)


def test_choices_are_listed() -> None:
    assert "--precision auto|float32|bfloat16" in help_of(dict(commands(bertie))["bertie pretrain"])
