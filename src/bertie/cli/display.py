"""Shows the events of a job: progress and messages on stderr, answers on stdout."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import click
from rich.console import Console

from bertie.reporting.events import Event
from bertie.reporting.progress import ProgressDisplay

# Progress and messages. Results never come here, so that `bertie ... > file` holds results alone.
console = Console(stderr=True, emoji=False)  # a text with ":cat:" in it is shown as it is


@dataclass
class Display(ProgressDisplay):
    """`in_flags` turns the names of options in messages into flags. Even a quiet display shows warnings."""

    as_json: bool = False
    in_flags: Callable[[str], str] = str

    def __call__(self, event: Event) -> None:
        if event.kind == "answer":
            plain = self.as_json or not sys.stdout.isatty()
            click.echo(json.dumps(event.data, ensure_ascii=False) if plain else event.message)
        elif event.kind == "step":
            super().__call__(replace(event, message=""))
        elif self.quiet and event.kind == "warning":
            console.print(self.in_flags(event.message), style="yellow", markup=False, highlight=False, soft_wrap=True)
        else:
            super().__call__(replace(event, message=self.in_flags(event.message)))
