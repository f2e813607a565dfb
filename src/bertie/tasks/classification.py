"""Predicts one label for a text or a pair of texts. The base class of all tasks that read one state per row.

BERT, section 4.1: the label is predicted from the pooled state of the first token.
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
from bertie.errors import InputError, SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import SequenceHead, SequenceHeadSpec
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import FIRST, Vocabulary
from bertie.tasks.hf_head import MANY_LABELS, NUMBER, ONE_LABEL, ROWS, HFHead
from bertie.tasks.label_sets import (
    at_least_two,
    known,
    label_error,
    label_of,
    listed,
    one_label_resampling,
    one_label_scores,
    one_of,
    positive_of,
    sorted_labels,
)
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.majority import Majority, most_frequent
from bertie.tasks.task import (
    Answer,
    Example,
    LabelPairs,
    Task,
    TaskOptions,
    Values,
    encoded,
    text_of,
)
from bertie.text.tokenizers.tokenizer import Tokenizer

TEXT = ("text", "sentence", "review", "content", "comment", "sentence1", "premise", "question", "query")
OTHER = ("other", "text2", "sentence2", "hypothesis", "answer", "candidate", "pair")
LABEL = ("label", "class", "target", "sentiment", "category", "gold_label")


class Labelling(Task):
    """Base of tasks that read one state per row: one text or two, read as one sample, and a head over the state."""

    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": TEXT, "other": OTHER, "label": LABEL}
    targets: ClassVar[Sequence[str]] = ("label",)
    optional: ClassVar[Sequence[str]] = ("other",)
    texts: ClassVar[Sequence[str]] = ("text", "other")
    pair: bool | None = None  # whether a row has a second text; None before training: each row decides
    head: SequenceHeadSpec = SequenceHeadSpec()

    @property
    def read_positions(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return (FIRST,) if self.head.tokens == "first" else None

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
                found |= dict.fromkeys(self.labels_in(values))
        return self.replace(pair=pair).with_labels(found)

    def labels_in(self, values: Values) -> Collection[Any]:
        """The labels, or other targets, of one training row."""
        raise NotImplementedError

    def with_labels(self, found: Collection[Any]) -> Self:
        """The task with the labels of all rows, each once."""
        raise NotImplementedError

    def reads_role(self, role: str) -> bool:
        return role != "other" or self.pair is not False  # as in training

    def needs_role(self, role: str) -> bool:
        return role == "other" and self.pair is True

    def rows_from_texts(self, texts: Sequence[str]) -> list[Values]:
        if self.pair is None and len(texts) == 2 and "other" in self.optional:
            what = "two texts can be a pair or two rows, and this model does not say which of them it reads"
            raise SpecError(what, hint=f"{self.how_to_give_rows(('text', 'other'))}; for single texts leave out other")
        return super().rows_from_texts(texts)

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        has_other = "other" in values if self.pair is None else self.pair
        other = text_of(values, "other", "second text") if has_other else None
        fields, num_cut = encoded(tokenizer, max_length, text_of(values, "text"), other)
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
        """[B, outputs]; a training step knows which positions are read."""
        logits: Tensor = owned(encoder, encoder(batch).states)
        return logits

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        return list(owned(encoder, self.last_states(encoder, batch)).float().cpu().numpy())


class ClassifyOptions(TaskOptions):
    multi: bool = Field(default=False, description="Predict any number of labels per text, separated by commas.")

    def build(self) -> Task:
        from bertie.tasks.multi_label import MultiLabel  # which is built on this file

        return MultiLabel() if self.multi else Classify()


class Classify(Labelling):
    kind: Literal["classify"] = "classify"
    about: ClassVar[str] = "Predict one label of a text, or several with `multi`."
    Options: ClassVar[type[TaskOptions]] = ClassifyOptions
    main: ClassVar[str] = "accuracy"
    labels: tuple[str, ...] = ()

    @property
    def num_outputs(self) -> int:
        return len(self.labels)

    def labels_in(self, values: Values) -> Collection[str]:
        return [label_of(values.get("label"))]

    def with_labels(self, found: Collection[str]) -> Self:
        return self.replace(labels=at_least_two(sorted_labels(found), "label"))

    def summary(self) -> str:
        about = f"; f1 is that of {self.positive!r}" if self.positive is not None else ""
        return f"{len(self.labels):,} labels: {listed(self.labels)}{about}"

    @property
    def positive(self) -> str | None:
        return positive_of(self.labels)

    def gold(self, values: Values) -> str | None:
        return known(label_of(values["label"]), self.labels) if "label" in values else None

    def target(self, gold: str) -> np.ndarray:
        return np.asarray(self.labels.index(gold))

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits, targets = self.logits(owned, encoder, batch), batch.tensor("label")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({self.kind: Figure.over(losses)}, {"accuracy": Figure.over(correct)})

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [F.log_softmax(self.logits(owned, encoder, batch), -1)]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {self.kind: len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        return one_of(self.labels, outputs[0])

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return one_label_scores(gold, [answer["label"] for answer in answers], self.labels)

    def error_severity(self, answer: Answer, gold: str) -> float:
        return label_error(answer, gold)

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        return one_label_resampling(gold, [answer["label"] for answer in answers], self.labels)

    def majority(self, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
        label = most_frequent(trained)
        return self.constant_score(label, {"label": label}, measured)

    def describe(self, answer: Answer, gold: str) -> tuple[str, str]:
        probability = answer.get("probability")
        return gold, answer["label"] if probability is None else f"{answer['label']} ({probability:.0%})"

    def label_pairs(self, answers: Sequence[Answer], gold: Sequence[Any]) -> LabelPairs:
        return {"label": [(one, answer["label"]) for answer, one in zip(answers, gold, strict=True)]}

    def labels_of(self, gold: str) -> list[str]:
        return [gold]

    def hf_head(self) -> HFHead | None:
        return HFHead(ROWS, self.labels, ONE_LABEL)

    @classmethod
    def from_hf(cls, found: HFHead, head: SequenceHeadSpec) -> Task | None:
        is_own = found.role == ROWS and found.problem not in (MANY_LABELS, NUMBER) and len(found.labels) != 1
        return Classify(labels=found.labels, head=head) if is_own else None


class Pair(Classify):
    """Predicts one label for two texts: how they relate."""

    kind: Literal["pair"] = "pair"  # type: ignore[assignment]
    about: ClassVar[str] = "Predict one label of two texts: how they relate."
    optional: ClassVar[Sequence[str]] = ()
    pair: bool | None = True


def log_probs_of_two(logits: Tensor) -> Tensor:
    """[N, 2]: log-probabilities of yes and no from one logit."""
    logits = logits.flatten()
    return F.logsigmoid(torch.stack([logits, -logits], -1))
