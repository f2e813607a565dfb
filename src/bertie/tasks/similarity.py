"""Predicts how similar two texts are, as a number: regression on pairs."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch.nn.functional as F
from pydantic import Field, field_validator
from torch import nn

from bertie.batch import Batch
from bertie.errors import InputError, SpecError
from bertie.nn.encoder import Encoder
from bertie.nn.heads import SequenceHeadSpec
from bertie.objectives.loss_report import Figure, LossReport
from bertie.tasks.classification import OTHER, TEXT, Labelling
from bertie.tasks.hf_head import MANY_LABELS, NUMBER, ROWS, HFHead
from bertie.tasks.metrics.majority import Majority
from bertie.tasks.metrics.numbers import mean_squared_error, pearson, spearman
from bertie.tasks.task import Answer, Example, Task, TaskOptions, Values

SCORE = ("score", "similarity", "label", "target", "relatedness", "rating")


class SimilarityOptions(TaskOptions):
    siamese: bool = Field(
        default=False, description="Learn a vector for each text, compared by cosine; rows may have single texts."
    )
    loss: str | None = Field(
        default=None,
        description="With `siamese`: cosine, cosent, softmax, ranking, triplet or simcse; chosen by the columns.",
    )
    sizes: tuple[int, ...] = Field(
        default=(), description="With `siamese`: learn shorter vectors, too, of these sizes, like 256,128,64."
    )

    @field_validator("sizes", mode="before")
    @classmethod
    def _from_text(cls, sizes: Any) -> Any:
        """Also "256,128,64", or such texts in a list, as a command line gives them."""
        given = ",".join(map(str, sizes)) if isinstance(sizes, list | tuple) else str(sizes)
        words = [word.strip() for word in given.split(",") if word.strip()]
        if not all(re.fullmatch(r"\d{1,9}", word, re.ASCII) for word in words):
            raise ValueError(f"{given!r} is not a list of sizes like 256,128,64")
        return tuple(map(int, words))

    def build(self) -> Task:
        from bertie.tasks.siamese.siamese import Siamese  # which is built on this file
        from bertie.tasks.siamese.siamese_rows import check_loss

        if self.siamese:
            return Siamese.parse({"criterion": check_loss(self.loss), "sizes": self.sizes}, where="similarity")
        if unused := next((name for name in ("loss", "sizes") if getattr(self, name)), None):
            raise SpecError(f"`{unused}` needs `siamese`", hint=f"add `siamese`, or leave out `{unused}`")
        return Similarity()


class Similarity(Labelling):
    """Scores have the scale of the training data: the model learns them mapped to 0 to 1."""

    kind: Literal["similarity"] = "similarity"
    about: ClassVar[str] = "Predict how similar two texts are; with `siamese`, learn vectors to compare."
    Options: ClassVar[type[TaskOptions]] = SimilarityOptions
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

    def labels_in(self, values: Values) -> Collection[float]:
        return [number_of(values.get("score"))]

    def with_labels(self, found: Collection[float]) -> Self:
        if not found:
            raise InputError("no row has a score", hint="is it the right column?")
        least, most = min(found), max(found)
        if least == most:
            raise InputError(f"every row has the score {least:g}", hint="at least two are needed")
        return self.replace(least=least, most=most)

    def summary(self) -> str:
        return f"scores from {self.least:g} to {self.most:g}"

    def gold(self, values: Values) -> float | None:
        return number_of(values["score"]) if "score" in values else None

    def target(self, gold: float) -> np.ndarray:
        return np.asarray((gold - self.least) / (self.most - self.least), np.float32)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        predicted = self.logits(owned, encoder, batch).squeeze(-1)
        losses = F.mse_loss(predicted, batch.tensor("label"), reduction="none")
        return LossReport({"similarity": Figure.over(losses)})

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"similarity": len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        return {"score": self.least + float(outputs[0][0]) * (self.most - self.least)}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        predicted = [answer["score"] for answer in answers]
        figures = {"spearman": spearman, "pearson": pearson, "mean_squared_error": mean_squared_error}
        return {name: figure(gold, predicted) for name, figure in figures.items()}

    def error_severity(self, answer: Answer, gold: float) -> float:
        return abs(answer["score"] - gold)

    def majority(self, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
        mean = sum(trained) / len(trained)
        return self.constant_score(f"the mean, {mean:.4g}", {"score": mean}, measured)

    def describe(self, answer: Answer, gold: float) -> tuple[str, str]:
        return f"{gold:.4g}", f"{answer['score']:.4g}"

    def hf_head(self) -> HFHead | None:
        return HFHead(ROWS, ("similarity",), NUMBER)

    @classmethod
    def from_hf(cls, found: HFHead, head: SequenceHeadSpec) -> Task | None:
        is_own = found.role == ROWS and found.problem != MANY_LABELS and len(found.labels) == 1
        return Similarity(head=head) if is_own else None


def number_of(cell: Any) -> float:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"the score {cell!r} is not a number")
    return number
