"""How alike two texts are, as a number: regression on pairs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch.nn.functional as F
from torch import nn

from bertie.batch import Batch
from bertie.errors import InputError
from bertie.nn.encoder import Encoder
from bertie.objectives.report import Figure, LossReport
from bertie.tasks.classification import OTHER, TEXT, Labelling
from bertie.tasks.metrics.numbers import mean_squared_error, pearson, spearman
from bertie.tasks.task import Answer, Example, Values

SCORE = ("score", "similarity", "label", "target", "relatedness", "rating")


class Similarity(Labelling):
    """The scale is that of the training data: the model learns it mapped to 0 to 1."""

    kind: Literal["similarity"] = "similarity"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT, "other": OTHER, "score": SCORE}
    targets: ClassVar[Sequence[str]] = ("score",)
    optional: ClassVar[Sequence[str]] = ()
    main: ClassVar[str] = "spearman"
    pair: bool | None = True
    least: float = 0.0
    most: float = 1.0

    @property
    def num_outputs(self) -> int:
        return 1

    def told_by(self, values: Values) -> Collection[float]:
        return [number_of(values.get("score"))]

    def taught(self, found: Collection[float]) -> Self:
        if not found:
            raise InputError("no row has a score", hint="is the right column named?")
        least, most = min(found), max(found)
        if least == most:
            raise InputError(f"every row has the score {least:g}", hint="there must be two to learn a difference")
        return self.replace(least=least, most=most)

    def summary(self) -> str:
        return f"scores from {self.least:g} to {self.most:g}"

    def gold(self, values: Values) -> float | None:
        return number_of(values["score"]) if "score" in values else None

    def target(self, gold: float) -> np.ndarray:
        return np.asarray((gold - self.least) / (self.most - self.least), np.float32)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        told = self.logits(owned, encoder, batch).squeeze(-1)
        losses = F.mse_loss(told, batch.tensor("label"), reduction="none")
        return LossReport({"similarity": Figure.over(losses)})

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"similarity": len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        return {"score": self.least + float(outputs[0][0]) * (self.most - self.least)}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        told = [answer["score"] for answer in answers]
        figures = {"spearman": spearman, "pearson": pearson, "mean_squared_error": mean_squared_error}
        return {name: figure(gold, told) for name, figure in figures.items()}

    def wrongness(self, answer: Answer, gold: float) -> float:
        return abs(answer["score"] - gold)


def number_of(cell: Any) -> float:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"the score {cell!r} is no number")
    return number
