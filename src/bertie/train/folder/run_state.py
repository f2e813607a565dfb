"""The state of a run: what a checkpoint holds beside weights, optimizer and memory."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from bertie.data.data_schedule import Cursor
from bertie.nn.memory import Memory
from bertie.train.budget import Done


@dataclass
class RunState:
    """The time of `done` runs on while the object lives, and starts with that of earlier sessions."""

    place: Cursor  # where the data of the next step are, unless a new stage of the data schedule begins
    steps: int = 0
    tokens: int = 0
    seconds_before: float = 0.0
    best: dict[str, Any] | None = None  # step, loss and rank
    waited: int = 0  # evaluations since the best
    evaluation: dict[str, Any] | None = None  # the last one
    memory: Memory | None = None  # of this rank's rows, where the next step's continue them; it has a file of its own
    counts: Counter[str] = field(default_factory=Counter)  # of what was done to rows, over all steps
    _begun: float = field(default_factory=lambda: time.perf_counter())

    @property
    def done(self) -> Done:
        return Done(self.steps, self.tokens, self.seconds_before + time.perf_counter() - self._begun)

    def figures(self) -> dict[str, Any]:
        """For the summary and the model folder."""
        return {"steps": self.steps, "tokens": self.tokens, "best": self.best, "evaluation": self.evaluation}

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
            place=Cursor(*facts["place"]),
            steps=facts["steps"],
            tokens=facts["tokens"],
            seconds_before=facts["seconds"],
            best=facts["best"],
            waited=facts["waited"],
            evaluation=facts["evaluation"],
            counts=Counter(facts.get("counts", {})),
        )
