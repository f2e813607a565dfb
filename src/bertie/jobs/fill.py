"""The job `fill`: guesses the missing words of a sentence."""

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from bertie.devices import HELP as DEVICE_HELP
from bertie.devices import DeviceName
from bertie.jobs.job import Job, option
from bertie.jobs.result import Result
from bertie.models.guess import Guess
from bertie.models.pretrained import load
from bertie.reporting.events import OnEvent, ignore, warning


class FillJob(Job):
    """Guess the missing words of a sentence."""

    verb: ClassVar[str] = "fill"
    example: ClassVar[str] = 'bertie fill my-model "Paris is the [MASK] of France."'
    model: str = option(help="A model folder with a masked-LM head, a run folder, or a name on the hub.", argument=True)
    text: str = option(help="A sentence with [MASK] for each missing word.", argument=True)
    top: int = option(5, "Candidates for each gap.", common=True, ge=1)
    max_length: int | None = option(None, "Cut a longer text to this many tokens.", common=True, ge=1)
    device: DeviceName = option("auto", DEVICE_HELP, common=True)

    def run(self, on_event: OnEvent = ignore) -> "Guesses":
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            guesses = load(self.model, device=self.device).fill(self.text, top=self.top, max_length=self.max_length)
        for one in caught:
            on_event(warning(str(one.message)))
        return Guesses(guesses)


class Guesses(Result):
    def __init__(self, guesses: Sequence[Guess]):
        self.guesses = guesses

    def to_json(self) -> Any:
        return [dataclasses.asdict(guess) for guess in self.guesses]

    def parts(self) -> Iterable[str]:
        several = self.guesses[-1].gap > 0
        for guess in self.guesses:
            gap = f"gap {guess.gap + 1}  " if several else ""
            yield f"{gap}{guess.probability:7.2%}  {guess.token}"
