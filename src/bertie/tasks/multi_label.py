"""Predicts any number of labels for a text or a pair of texts."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.errors import InputError
from bertie.nn.encoder import Encoder
from bertie.nn.heads import SequenceHeadSpec
from bertie.objectives.loss_report import Figure, LossReport
from bertie.tasks.classification import LABEL, OTHER, TEXT, Labelling, log_probs_of_two
from bertie.tasks.hf_head import MANY_LABELS, ROWS, HFHead
from bertie.tasks.label_sets import NOTHING, known, label_of, listed, sorted_labels
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.labels import multi_label_scores, scores_of_counts, tune_thresholds
from bertie.tasks.metrics.majority import Majority, most_frequent
from bertie.tasks.probabilities import rounded, sigmoid
from bertie.tasks.task import Answer, Example, LabelPairs, Scores, Task, Values


class MultiLabel(Labelling):
    """A label is predicted where its probability reaches its own threshold."""

    kind: Literal["multi-label"] = "multi-label"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT, "other": OTHER, "label": ("labels", *LABEL)}
    main: ClassVar[str] = "f1"
    labels: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    separator: str = Field(default=",", min_length=1)  # of labels in one cell

    @property
    def num_outputs(self) -> int:
        return len(self.labels)

    def labels_in(self, values: Values) -> Collection[str]:
        return self._split(values.get("label"))

    def with_labels(self, found: Collection[str]) -> Self:
        if not found:
            raise InputError("no row has any label", hint="is the right column named?")
        return self.replace(labels=sorted_labels(found), thresholds=(0.5,) * len(found))

    def summary(self) -> str:
        return f"{len(self.labels):,} labels: {listed(self.labels)}"

    def _split(self, cell: Any) -> list[str]:
        """A list, or labels in one text; an empty one has none."""
        if isinstance(cell, str):
            cell = [part for part in cell.split(self.separator) if part.strip()]
        return list(dict.fromkeys(map(label_of, cell if isinstance(cell, list | tuple) else [cell])))

    def gold(self, values: Values) -> list[str] | None:
        if "label" not in values:
            return None
        return [known(label, self.labels) for label in self._split(values["label"])]

    def target(self, gold: list[str]) -> np.ndarray:
        return self._rows([gold])[0].astype(np.float32)

    def _rows(self, every: Sequence[Sequence[str]]) -> np.ndarray:
        """[N, K] bool"""
        rows = [[label in labels for label in self.labels] for labels in every]
        return np.array(rows, np.bool_).reshape(len(every), len(self.labels))

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits = self.logits(owned, encoder, batch)
        targets = batch.tensor("label").view_as(logits)
        losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        return LossReport({"multi_label": Figure.over(losses)})

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [log_probs_of_two(self.logits(owned, encoder, batch))]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"multi_label": batch.tensor("label").numel()}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        shares = sigmoid(outputs[0])
        found = [label for label, passes in zip(self.labels, shares >= self.thresholds, strict=True) if passes]
        return {"labels": found, "probabilities": dict(zip(self.labels, map(rounded, shares), strict=True))}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        scores = multi_label_scores(self._rows(gold), self._rows([answer["labels"] for answer in answers]))
        return {"f1": scores["micro_f1"], **scores}

    def error_severity(self, answer: Answer, gold: list[str]) -> float:
        """How far off the probabilities of the wrong ones are, together."""
        wrong = set(answer["labels"]) ^ set(gold)
        return sum(abs((label in gold) - answer["probabilities"][label]) for label in wrong)

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        wanted, found = self._rows(gold), self._rows([answer["labels"] for answer in answers])

        def score(numbers: np.ndarray) -> dict[str, float]:
            scores = multi_label_scores(wanted[numbers], found[numbers])
            return {"f1": scores["micro_f1"], **scores}

        return Resampling(len(answers), score)

    def majority(self, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
        found = [label for labels in trained for label in labels]
        label = most_frequent(found) if found else None
        return self.constant_score(label or "no label", {"labels": [] if label is None else [label]}, measured)

    def describe(self, answer: Answer, gold: list[str]) -> tuple[str, str]:
        return ", ".join(gold) or NOTHING, ", ".join(answer["labels"]) or NOTHING

    def scores_by_label(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, Scores]:
        wanted, found = self._rows(gold), self._rows([answer["labels"] for answer in answers])
        columns = scores_of_counts((wanted & found).sum(0), found.sum(0), wanted.sum(0)).items()
        return {"label": {label: {name: float(one[k]) for name, one in columns} for k, label in enumerate(self.labels)}}

    def label_pairs(self, answers: Sequence[Answer], gold: Sequence[Any]) -> LabelPairs:
        """Each label is predicted or not."""
        says, pairs = {True: "yes", False: "no"}, list(zip(answers, gold, strict=True))
        return {
            label: [(says[label in one], says[label in answer["labels"]]) for answer, one in pairs]
            for label in self.labels
        }

    def labels_of(self, gold: list[str]) -> list[str]:
        return gold

    def tuned(self, examples: Sequence[Example], outputs: Sequence[Sequence[np.ndarray]]) -> Self:
        scores = np.stack([sigmoid(one[0]) for one in outputs])
        return self.replace(thresholds=tuple(tune_thresholds(scores, self._rows([one.gold for one in examples]))))

    def hf_head(self) -> HFHead | None:
        return HFHead(ROWS, self.labels, MANY_LABELS)

    @classmethod
    def from_hf(cls, found: HFHead, head: SequenceHeadSpec) -> Task | None:
        if found.role != ROWS or found.problem != MANY_LABELS:
            return None
        return MultiLabel(labels=found.labels, thresholds=(0.5,) * len(found.labels), head=head)
