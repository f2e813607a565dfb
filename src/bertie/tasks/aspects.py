"""Predicts a label for each of several aspects of a text, each with labels of its own."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.errors import InputError, SpecError
from bertie.nn.encoder import Encoder
from bertie.objectives.loss_report import Figure, LossReport
from bertie.tasks.classification import TEXT, Labelling
from bertie.tasks.hf_head import MANY_LABELS, ROWS, HFHead
from bertie.tasks.label_sets import (
    at_least_two,
    known,
    label_error,
    label_of,
    listed,
    one_label_resampling,
    one_label_scores,
    one_of,
    sorted_labels,
)
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.majority import Majority, most_frequent
from bertie.tasks.task import Answer, Example, LabelPairs, Task, TaskOptions, Values, is_empty


class AspectsOptions(TaskOptions):
    aspect: tuple[str, ...] = Field(default=(), description="A column of labels; one for each aspect.")

    def build(self) -> Task:
        if not self.aspect:
            raise SpecError("no columns of labels are given", hint="name them with `aspect`")
        return Aspects(aspects=dict.fromkeys(self.aspect, ()))


class Aspects(Labelling):
    """Several columns of labels at once, which share one encoder and one head."""

    kind: Literal["aspects"] = "aspects"
    about: ClassVar[str] = "Predict one label of a text for each of several aspects."
    Options: ClassVar[type[TaskOptions]] = AspectsOptions
    main: ClassVar[str] = "macro_f1"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT}
    targets: ClassVar[Sequence[str]] = ()  # the columns of `aspects`
    optional: ClassVar[Sequence[str]] = ()
    aspects: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # column -> labels

    @property
    def extra_roles(self) -> Sequence[str]:
        return tuple(self.aspects)

    @property
    def num_outputs(self) -> int:
        return sum(self.sizes)

    @property
    def sizes(self) -> list[int]:
        return [len(labels) for labels in self.aspects.values()]

    def labels_in(self, values: Values) -> Collection[tuple[str, str]]:
        return [(aspect, _aspect_label(values, aspect)) for aspect in self.aspects]

    def with_labels(self, found: Collection[tuple[str, str]]) -> Self:
        aspects = {
            aspect: at_least_two(sorted_labels(label for one, label in found if one == aspect), f"label of {aspect}")
            for aspect in self.aspects
        }
        return self.replace(aspects=aspects)

    def summary(self) -> str:
        return "; ".join(f"{aspect}: {listed(labels)}" for aspect, labels in self.aspects.items())

    def gold(self, values: Values) -> dict[str, str] | None:
        if not any(aspect in values for aspect in self.aspects):
            return None
        return {
            aspect: known(_aspect_label(values, aspect), labels, f"label of {aspect}")
            for aspect, labels in self.aspects.items()
        }

    def target(self, gold: dict[str, str]) -> np.ndarray:
        return np.array([labels.index(gold[aspect]) for aspect, labels in self.aspects.items()])

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        parts = self.logits(owned, encoder, batch).split(self.sizes, -1)
        targets = batch.tensor("label").view(-1, len(parts))  # [B, aspects]
        losses = [F.cross_entropy(part, targets[:, number], reduction="none") for number, part in enumerate(parts)]
        return LossReport({"aspects": Figure.over(torch.stack(losses))})

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [F.log_softmax(part, -1) for part in self.logits(owned, encoder, batch).split(self.sizes, -1)]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"aspects": batch.tensor("label").numel()}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        """The aspects as columns, like those of the training data, and their probabilities beside them."""
        parts = np.split(outputs[0], np.cumsum(self.sizes)[:-1])
        each = {
            aspect: one_of(labels, part) for (aspect, labels), part in zip(self.aspects.items(), parts, strict=True)
        }
        probabilities = {aspect: one["probabilities"] for aspect, one in each.items()}
        return {**{aspect: one["label"] for aspect, one in each.items()}, "probabilities": probabilities}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return _with_means(
            {
                aspect: one_label_scores([one[aspect] for one in gold], [one[aspect] for one in answers], labels)
                for aspect, labels in self.aspects.items()
            }
        )

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        each = {
            aspect: one_label_resampling([one[aspect] for one in gold], [one[aspect] for one in answers], labels)
            for aspect, labels in self.aspects.items()
        }

        def score(numbers: np.ndarray) -> dict[str, float]:
            return _with_means({aspect: one.score(numbers) for aspect, one in each.items()})

        return Resampling(len(answers), score)

    def majority(self, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
        answer = {aspect: most_frequent(gold[aspect] for gold in trained) for aspect in self.aspects}
        return self.constant_score("the most frequent label of each aspect", answer, measured)

    def describe(self, answer: Answer, gold: dict[str, str]) -> tuple[str, str]:
        names = [aspect for aspect in self.aspects if answer[aspect] != gold[aspect]]
        expected, found = (", ".join(f"{name}: {labels[name]}" for name in names) for labels in (gold, answer))
        return expected, found

    def error_severity(self, answer: Answer, gold: dict[str, str]) -> float:
        return sum(
            label_error({"label": answer[aspect], "probabilities": answer["probabilities"][aspect]}, label)
            for aspect, label in gold.items()
        )

    def label_pairs(self, answers: Sequence[Answer], gold: Sequence[Any]) -> LabelPairs:
        pairs = list(zip(answers, gold, strict=True))
        return {aspect: [(one[aspect], answer[aspect]) for answer, one in pairs] for aspect in self.aspects}

    def labels_of(self, gold: dict[str, str]) -> list[str]:
        return [f"{aspect}: {label}" for aspect, label in gold.items()]

    def hf_head(self) -> HFHead | None:
        labels = tuple(f"{aspect}: {label}" for aspect in self.aspects for label in self.aspects[aspect])
        return HFHead(ROWS, labels, MANY_LABELS)


def _with_means(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Means over the aspects, then each aspect's own."""
    means = {name: float(np.mean([one[name] for one in scores.values()])) for name in ("accuracy", "macro_f1")}
    return {**means, **{f"{aspect}.{name}": scores[aspect][name] for aspect in scores for name in means}}


def _aspect_label(values: Values, aspect: str) -> str:
    if is_empty(cell := values.get(aspect)):
        raise InputError(f"the {aspect} is empty", hint="use a label such as none for what is not mentioned")
    return label_of(cell, aspect)
