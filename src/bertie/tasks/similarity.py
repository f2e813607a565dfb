"""How alike two texts are, as a number: regression on pairs."""

from collections.abc import Iterable, Mapping, Sequence
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
    least: float = 0.0
    most: float = 1.0

    @property
    def num_outputs(self) -> int:
        return 1

    def fitted(self, rows: Iterable[Values]) -> Self:
        scores = [_number(values["score"]) for values in rows]
        return self.replace(least=min(scores), most=max(scores) if max(scores) > min(scores) else min(scores) + 1)

    def gold(self, values: Values) -> float | None:
        return _number(values["score"]) if "score" in values else None

    def target(self, gold: float) -> np.ndarray:
        return np.asarray((gold - self.least) / (self.most - self.least), np.float32)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        told = owned(encoder, encoder(batch).states).squeeze(-1)
        return LossReport({"similarity": Figure.over(F.mse_loss(told, batch.tensor("label"), reduction="none"))})

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"similarity": len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        return {"score": self.least + float(outputs[0][0]) * (self.most - self.least)}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        told, wanted = [answer["score"] for answer in answers], list(gold)
        figures = {"spearman": spearman, "pearson": pearson, "mean_squared_error": mean_squared_error}
        return {name: figure(wanted, told) for name, figure in figures.items()}


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"the score {value!r} is no number") from None
    if not np.isfinite(number):
        raise InputError(f"the score {value!r} is no number")
    return number
