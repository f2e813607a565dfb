"""`bertie quickstart`: after its results, somebody at a terminal may ask questions."""

import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from bertie.cli.command import JobCommand
from bertie.quickstart.quickstart_job import QuickstartJob


class QuickstartCommand(JobCommand):
    def show(self, result: Any, as_json: bool) -> None:
        super().show(result, as_json)
        console = Console(emoji=False)
        for question in () if as_json or result.asked else typed_questions():
            for part in result.answer(question, console.width):
                console.print(part, markup=False, highlight=False)


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


quickstart = QuickstartCommand("quickstart", QuickstartJob)
