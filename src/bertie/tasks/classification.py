"""Labels of texts and of pairs of texts: one label, many, or one for each of several aspects.

BERT, section 4.1: the pooled state of the first token tells the label.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.errors import InputError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import SequenceHead, SequenceHeadSpec
from bertie.objectives.objective import Vocabulary
from bertie.objectives.report import Figure, LossReport
from bertie.tasks.label_sets import (
    at_least_two,
    doubt,
    known,
    label_of,
    listed,
    one_label_scores,
    one_of,
    sorted_labels,
)
from bertie.tasks.metrics.labels import multi_label_scores, tune_thresholds
from bertie.tasks.probabilities import rounded, sigmoid
from bertie.tasks.task import Answer, Example, Task, Values, encoded, is_empty, looked_at_by, text_of
from bertie.text.tokenizer import Tokenizer

TEXT = ("text", "sentence", "review", "content", "comment", "sentence1", "premise", "question", "query")
OTHER = ("other", "text2", "sentence2", "hypothesis", "answer", "candidate", "pair")
LABEL = ("label", "class", "target", "sentiment", "category", "gold_label")


class Labelling(Task):
    """What all that look at one state a row share: one text or two, read as one sample, and a head over the state."""

    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT, "other": OTHER, "label": LABEL}
    targets: ClassVar[Sequence[str]] = ("label",)
    optional: ClassVar[Sequence[str]] = ("other",)
    texts: ClassVar[Sequence[str]] = ("text", "other")
    pair: bool | None = None  # whether a row has a second text; None: as it comes, before any training
    head: SequenceHeadSpec = SequenceHeadSpec()

    @property
    def looks_at(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return looked_at_by(self.head)

    @property
    def num_outputs(self) -> int:
        raise NotImplementedError

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> SequenceHead:
        return self.head.build(encoder, self.num_outputs)

    def fitted(self, rows: Iterable[Values]) -> Self:
        pair, found = bool(self.pair), dict[Any, None]()
        for values in rows:
            pair = pair or "other" in values
            with suppress(InputError):
                found |= dict.fromkeys(self.told_by(values))
        return self.replace(pair=pair).taught(found)

    def told_by(self, values: Values) -> Collection[Any]:
        """What one training row tells of the targets in general."""
        raise NotImplementedError

    def taught(self, found: Collection[Any]) -> Self:
        """With what all rows told, each once."""
        raise NotImplementedError

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        has_other = "other" in values if self.pair is None else self.pair
        other = text_of(values, "other", "second text") if has_other else None
        fields, num_cut = encoded(tokenizer, length, text_of(values, "text"), other)
        gold = self.gold(values)
        if gold is not None:
            fields["label"] = self.target(gold)
        return Example((fields,), gold, num_cut=num_cut)

    def gold(self, values: Values) -> Any:
        """None where the row has none."""
        raise NotImplementedError

    def target(self, gold: Any) -> np.ndarray:
        raise NotImplementedError

    def logits(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> Tensor:
        """[B, outputs] within a step, which knows what is looked at."""
        logits: Tensor = owned(encoder, encoder(batch).states)
        return logits

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        return list(owned(encoder, self.last_states(encoder, batch)).float().cpu().numpy())


class Classify(Labelling):
    kind: Literal["classify"] = "classify"
    main: ClassVar[str] = "accuracy"
    labels: tuple[str, ...] = ()

    @property
    def num_outputs(self) -> int:
        return len(self.labels)

    def told_by(self, values: Values) -> Collection[str]:
        return [label_of(values.get("label"))]

    def taught(self, found: Collection[str]) -> Self:
        return self.replace(labels=at_least_two(sorted_labels(found), "label"))

    def summary(self) -> str:
        return f"{len(self.labels):,} labels: {listed(self.labels)}"

    def gold(self, values: Values) -> str | None:
        return known(label_of(values["label"]), self.labels) if "label" in values else None

    def target(self, gold: str) -> np.ndarray:
        return np.asarray(self.labels.index(gold))

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits, targets = self.logits(owned, encoder, batch), batch.tensor("label")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({self.kind: Figure.over(losses)}, {"accuracy": Figure.over(correct)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [F.log_softmax(self.logits(owned, encoder, batch), -1)]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {self.kind: len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        return one_of(self.labels, outputs[0])

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return one_label_scores(gold, [answer["label"] for answer in answers], self.labels)

    def wrongness(self, answer: Answer, gold: str) -> float:
        return doubt(answer, gold)

    def labels_told(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
        return {"label": [(one, answer["label"]) for answer, one in zip(answers, gold, strict=True)]}

    def labels_of(self, gold: str) -> list[str]:
        return [gold]


class Pair(Classify):
    """One label for two texts: what the one is to the other."""

    kind: Literal["pair"] = "pair"  # type: ignore[assignment]
    optional: ClassVar[Sequence[str]] = ()
    pair: bool | None = True


class MultiLabel(Labelling):
    """Any number of labels a text. A label is told where its probability passes its own threshold."""

    kind: Literal["multi-label"] = "multi-label"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT, "other": OTHER, "label": ("labels", *LABEL)}
    main: ClassVar[str] = "f1"
    labels: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    separator: str = Field(default=",", min_length=1)  # of labels in one cell

    @property
    def num_outputs(self) -> int:
        return len(self.labels)

    def told_by(self, values: Values) -> Collection[str]:
        return self._split(values.get("label"))

    def taught(self, found: Collection[str]) -> Self:
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

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [log_shares_of_two(self.logits(owned, encoder, batch))]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"multi_label": batch.tensor("label").numel()}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        shares = sigmoid(outputs[0])
        told = [label for label, passes in zip(self.labels, shares >= self.thresholds, strict=True) if passes]
        return {"labels": told, "probabilities": dict(zip(self.labels, map(rounded, shares), strict=True))}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        scores = multi_label_scores(self._rows(gold), self._rows([answer["labels"] for answer in answers]))
        return {"f1": scores["micro_f1"], **scores}

    def wrongness(self, answer: Answer, gold: list[str]) -> float:
        """How far off the probabilities of the wrong ones are, together."""
        wrong = set(answer["labels"]) ^ set(gold)
        return sum(abs((label in gold) - answer["probabilities"][label]) for label in wrong)

    def labels_told(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
        """Each label is told or not."""
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


class Aspects(Labelling):
    """Several label columns at once: each aspect has labels of its own, all share one encoder and one head."""

    kind: Literal["aspects"] = "aspects"
    main: ClassVar[str] = "macro_f1"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT}
    targets: ClassVar[Sequence[str]] = ()  # the columns of `aspects`
    optional: ClassVar[Sequence[str]] = ()
    aspects: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # column -> labels

    @property
    def num_outputs(self) -> int:
        return sum(self.sizes)

    @property
    def sizes(self) -> list[int]:
        return [len(labels) for labels in self.aspects.values()]

    def told_by(self, values: Values) -> Collection[tuple[str, str]]:
        return [(aspect, _aspect_label(values, aspect)) for aspect in self.aspects]

    def taught(self, found: Collection[tuple[str, str]]) -> Self:
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

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
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
        each = {
            aspect: one_label_scores([one[aspect] for one in gold], [one[aspect] for one in answers], labels)
            for aspect, labels in self.aspects.items()
        }
        means = {name: float(np.mean([scores[name] for scores in each.values()])) for name in ("accuracy", "macro_f1")}
        return {**means, **{f"{aspect}.{name}": each[aspect][name] for aspect in each for name in means}}

    def wrongness(self, answer: Answer, gold: dict[str, str]) -> float:
        said = {aspect: {"label": answer[aspect], "probabilities": answer["probabilities"][aspect]} for aspect in gold}
        return sum(doubt(said[aspect], label) for aspect, label in gold.items())

    def labels_told(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
        pairs = list(zip(answers, gold, strict=True))
        return {aspect: [(one[aspect], answer[aspect]) for answer, one in pairs] for aspect in self.aspects}

    def labels_of(self, gold: dict[str, str]) -> list[str]:
        return [f"{aspect}: {label}" for aspect, label in gold.items()]


def log_shares_of_two(logits: Tensor) -> Tensor:
    """[N, 2]: of yes and no, where one logit tells both."""
    logits = logits.flatten()
    return F.logsigmoid(torch.stack([logits, -logits], -1))


def _aspect_label(values: Values, aspect: str) -> str:
    if is_empty(cell := values.get(aspect)):
        raise InputError(f"the {aspect} is empty", hint="give what is not mentioned a label of its own, such as none")
    return label_of(cell, aspect)
