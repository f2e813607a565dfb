"""Labels of texts and of pairs of texts: one label, many, or one for each of several aspects."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from bertie.tasks.metrics.labels import accuracy, f1, macro_f1, matthews, multi_label_scores, tune_thresholds
from bertie.tasks.task import Answer, Example, Task, Values, encoded, text_of
from bertie.text.tokenizer import Tokenizer

TEXT = ("text", "sentence", "review", "content", "comment", "sentence1", "premise", "question", "query")
OTHER = ("other", "text2", "sentence2", "hypothesis", "answer", "candidate", "pair")
LABEL = ("label", "class", "target", "sentiment", "category", "gold_label")


class Labelling(Task):
    """What the three share: one text or two, read as one sample, and a head over the pooled state."""

    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT, "other": OTHER, "label": LABEL}
    targets: ClassVar[Sequence[str]] = ("label",)
    optional: ClassVar[Sequence[str]] = ("other",)
    head: SequenceHeadSpec = SequenceHeadSpec()

    @property
    def num_outputs(self) -> int:
        raise NotImplementedError

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> SequenceHead:
        return self.head.build(encoder, self.num_outputs)

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        other = text_of(values, "other") if "other" in values else None
        fields, num_cut = encoded(tokenizer, length, text_of(values, "text"), other)
        gold = self.gold(values)
        if gold is not None:
            fields["label"] = self.target(gold)
        return Example((fields,), gold, num_cut=num_cut)

    def gold(self, values: Values) -> Any:
        raise NotImplementedError

    def target(self, gold: Any) -> np.ndarray:
        raise NotImplementedError

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        return list(owned(encoder, encoder(batch).states).float().numpy())


class Classify(Labelling):
    kind: Literal["classify"] = "classify"
    main: ClassVar[str] = "accuracy"
    labels: tuple[str, ...] = ()

    @property
    def num_outputs(self) -> int:
        return len(self.labels)

    def fitted(self, rows: Iterable[Values]) -> Self:
        return self.replace(labels=sorted_labels(str(values["label"]) for values in rows))

    def gold(self, values: Values) -> str | None:
        return _known(str(values["label"]), self.labels) if "label" in values else None

    def target(self, gold: str) -> np.ndarray:
        return np.asarray(self.labels.index(gold))

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits, targets = owned(encoder, encoder(batch).states), batch.tensor("label")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({"classify": Figure.over(losses)}, {"accuracy": Figure.over(correct)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [F.log_softmax(owned(encoder, encoder(batch).states), -1)]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"classify": len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        shares = softmax(outputs[0])
        best = int(shares.argmax())
        probabilities = {label: round(float(share), 6) for label, share in zip(self.labels, shares, strict=True)}
        return {"label": self.labels[best], "probability": float(shares[best]), "probabilities": probabilities}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return one_label_scores(list(gold), [answer["label"] for answer in answers], self.labels)


class Pair(Classify):
    """One label for two texts: what the one is to the other."""

    kind: Literal["pair"] = "pair"  # type: ignore[assignment]
    optional: ClassVar[Sequence[str]] = ()


class MultiLabel(Labelling):
    """Any number of labels a text. A label is told where its probability passes its own threshold."""

    kind: Literal["multi-label"] = "multi-label"
    main: ClassVar[str] = "f1"
    labels: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    separator: str = Field(default=",", min_length=1)  # of labels in one cell

    @property
    def num_outputs(self) -> int:
        return len(self.labels)

    def fitted(self, rows: Iterable[Values]) -> Self:
        labels = sorted_labels(label for values in rows for label in self._split(values["label"]))
        return self.replace(labels=labels, thresholds=(0.5,) * len(labels))

    def _split(self, cell: Any) -> list[str]:
        parts = cell if isinstance(cell, list | tuple) else str(cell or "").split(self.separator)
        return [str(part).strip() for part in parts if str(part).strip()]

    def gold(self, values: Values) -> list[str] | None:
        if "label" not in values:
            return None
        return [_known(label, self.labels) for label in self._split(values["label"])]

    def target(self, gold: list[str]) -> np.ndarray:
        return np.array([label in gold for label in self.labels], np.float32)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits = owned(encoder, encoder(batch).states)
        targets = batch.tensor("label").view_as(logits)
        losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        return LossReport({"multi_label": Figure.over(losses)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [log_shares_of_two(owned(encoder, encoder(batch).states))]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"multi_label": batch.tensor("label").numel()}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        shares = 1 / (1 + np.exp(-outputs[0]))
        told = [label for label, share, least in zip(self.labels, shares, self.thresholds, strict=True) if share >= least]
        return {"labels": told, "probabilities": dict(zip(self.labels, map(float, shares), strict=True))}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        found = [[label in answer["labels"] for label in self.labels] for answer in answers]
        wanted = [[label in one for label in self.labels] for one in gold]
        scores = multi_label_scores(wanted, found)
        return {"f1": scores["micro_f1"], **scores}

    def tuned(self, examples: Sequence[Example], outputs: Sequence[Sequence[np.ndarray]]) -> Self:
        scores = np.stack([1 / (1 + np.exp(-one[0])) for one in outputs])
        gold = np.stack([self.target(example.gold) for example in examples])
        return self.replace(thresholds=tuple(map(float, tune_thresholds(scores, gold))))


class Aspects(Labelling):
    """Several label columns at once: each aspect has labels of its own, all share one encoder and one head."""

    kind: Literal["aspects"] = "aspects"
    main: ClassVar[str] = "macro_f1"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT}
    targets: ClassVar[Sequence[str]] = ()  # the columns of `aspects`
    aspects: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # column -> labels

    @property
    def num_outputs(self) -> int:
        return sum(map(len, self.aspects.values()))

    def fitted(self, rows: Iterable[Values]) -> Self:
        found: dict[str, Counter[str]] = {aspect: Counter() for aspect in self.aspects}
        for values in rows:
            for aspect in self.aspects:
                found[aspect][str(values[aspect])] += 1
        return self.replace(aspects={aspect: sorted_labels(labels) for aspect, labels in found.items()})

    def gold(self, values: Values) -> dict[str, str] | None:
        if not all(aspect in values for aspect in self.aspects):
            return None
        return {aspect: _known(str(values[aspect]), labels, aspect) for aspect, labels in self.aspects.items()}

    def target(self, gold: dict[str, str]) -> np.ndarray:
        return np.array([labels.index(gold[aspect]) for aspect, labels in self.aspects.items()])

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits = owned(encoder, encoder(batch).states)
        targets = batch.tensor("label").view(len(logits), -1)  # [B, aspects]
        parts = logits.split([len(labels) for labels in self.aspects.values()], -1)
        losses = [F.cross_entropy(part, targets[:, n], reduction="none") for n, part in enumerate(parts)]
        return LossReport({"aspects": Figure.over(torch.stack(losses))})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        logits = owned(encoder, encoder(batch).states)
        return [F.log_softmax(part, -1) for part in logits.split([*map(len, self.aspects.values())], -1)]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"aspects": batch.tensor("label").numel()}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        ends = np.cumsum([len(labels) for labels in self.aspects.values()])[:-1]
        parts = np.split(outputs[0], ends)
        return {
            aspect: labels[int(part.argmax())]
            for (aspect, labels), part in zip(self.aspects.items(), parts, strict=True)
        }

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        each = {
            aspect: one_label_scores([one[aspect] for one in gold], [one[aspect] for one in answers], labels)
            for aspect, labels in self.aspects.items()
        }
        means = {name: float(np.mean([scores[name] for scores in each.values()])) for name in ("accuracy", "macro_f1")}
        return {**means, **{f"{aspect}.{name}": each[aspect][name] for aspect in each for name in means}}


def one_label_scores(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    """F1 is that of the second of two labels; of more labels it is their mean."""
    macro = macro_f1(gold, predicted)
    single = f1(gold, predicted, labels[1]) if len(labels) == 2 else macro
    known = {"accuracy": accuracy(gold, predicted), "matthews": matthews(gold, predicted)}
    return {**known, "f1": single, "macro_f1": macro}


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Numbers in their order, words in theirs."""
    found = dict.fromkeys(labels)
    if all(label.lstrip("-").isdigit() for label in found):
        return tuple(sorted(found, key=int))
    return tuple(sorted(found))


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max())
    return shares / shares.sum()


def log_shares_of_two(logits: Tensor) -> Tensor:
    """[N, 2]: of yes and no, where one logit tells both."""
    logits = logits.flatten()
    return F.logsigmoid(torch.stack([logits, -logits], -1))


def _known(label: str, labels: Sequence[str], aspect: str = "label") -> str:
    if label not in labels:
        raise InputError(f"the {aspect} {label!r} is not among those of the training data")
    return label
