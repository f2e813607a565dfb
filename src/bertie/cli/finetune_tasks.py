"""`bertie finetune TASK`: one command per task, with the options of that task."""

import click

from bertie.cli.app import VerbGroup
from bertie.cli.command import JobCommand
from bertie.jobs.finetuning.finetune import FinetuneJob


class FinetuneGroup(VerbGroup):
    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.verbs:
            return super().get_command(ctx, name)
        return TaskCommand(name, FinetuneJob.for_task(name), {"task": name})


class TaskCommand(JobCommand):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            owners = FinetuneJob.tasks_with(error.option_name.lstrip("-").replace("-", "_"))
            if not owners:
                raise
            what = f"{error.option_name} is an option of {' and '.join(owners)}, not of {self.name}."
            raise click.UsageError(what, ctx) from None
