"""The protocol of a task: an objective whose targets people wrote, and which answers them in their own terms."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from bertie.batch import Batch, Sample
from bertie.nn.encoder import Encoder
from bertie.objectives.objective import Objective


class Task(Objective):
    def read(self, row: Mapping[str, Any]) -> Sample:
        """A row of the user's file, already tokenised by name, becomes a sample with its targets."""
        raise NotImplementedError

    def answers(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> Sequence[Any]:
        """One answer a row, in the user's terms: labels, tags of words, spans of characters."""
        raise NotImplementedError

    def score(self, answers: Sequence[Any], gold: Sequence[Any]) -> Mapping[str, float]:
        """The metrics that papers report, by name."""
        raise NotImplementedError
