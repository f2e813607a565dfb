"""The state of a run: what was done enters, what a checkpoint holds beside weights and optimiser leaves, and back."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from bertie.data.course import Place
from bertie.train.budget import Done


@dataclass
class RunState:
    """`seconds` run on while it is held, from those of the sittings before."""

    place: Place  # where the data of the next step are, but for a new stage of the course
    steps: int = 0
    tokens: int = 0
    seconds_before: float = 0.0
    best: dict[str, Any] | None = None  # step, loss and rank
    waited: int = 0  # evaluations since
    evaluation: dict[str, Any] | None = None  # the last one
    counts: Counter[str] = field(default_factory=Counter)  # of what was done to rows, in all steps
    _begun: float = field(default_factory=lambda: time.perf_counter())

    @property
    def done(self) -> Done:
        return Done(self.steps, self.tokens, self.seconds_before + time.perf_counter() - self._begun)

    def add_step(self, num_tokens: int, place: Place) -> None:
        self.steps += 1
        self.tokens += num_tokens
        self.place = place

    def facts(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "tokens": self.tokens,
            "seconds": self.done.seconds,
            "place": list(self.place),
            "best": self.best,
            "waited": self.waited,
            "evaluation": self.evaluation,
            "counts": dict(self.counts),
        }

    @classmethod
    def restored(cls, facts: Mapping[str, Any]) -> Self:
        return cls(
            place=Place(*facts["place"]),
            steps=facts["steps"],
            tokens=facts["tokens"],
            seconds_before=facts["seconds"],
            best=facts["best"],
            waited=facts["waited"],
            evaluation=facts["evaluation"],
            counts=Counter(facts.get("counts", {})),
        )
