"""One of several: a text and its candidates enter, which of them belongs to it leaves. Also the order of candidates.

BERT, section 4.4: every candidate is read with the text, and gets one number.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.errors import InputError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import SequenceHead, SequenceHeadSpec
from bertie.objectives.objective import Vocabulary
from bertie.objectives.report import Figure, LossReport
from bertie.tasks.classification import OTHER, TEXT, Labelling, log_shares_of_two, softmax
from bertie.tasks.metrics.ranking import ranking_scores
from bertie.tasks.task import Answer, Example, Task, Values, encoded, text_of
from bertie.text.tokenizer import Tokenizer


class Choice(Task):
    """All candidates of a row are one sample, one after another; `candidates` holds their lengths."""

    kind: Literal["choice"] = "choice"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "text": TEXT,
        "candidates": ("candidates", "choices", "endings", "options", "answers"),
        "label": ("label", "answer", "target", "correct"),
    }
    targets: ClassVar[Sequence[str]] = ("label",)
    main: ClassVar[str] = "accuracy"
    head: SequenceHeadSpec = SequenceHeadSpec()

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> SequenceHead:
        return self.head.build(encoder, 1)

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        text, candidates = text_of(values, "text"), values.get("candidates")
        if not isinstance(candidates, list | tuple) or len(candidates) < 2:
            raise InputError("there are no two candidates to choose from")
        read = [encoded(tokenizer, length, text, str(candidate)) for candidate in candidates]
        fields = {name: np.concatenate([one[name] for one, _ in read]) for name in ("tokens", "segments")}
        fields["candidates"] = np.array([len(one["tokens"]) for one, _ in read])
        gold = None
        if "label" in values:
            gold = _number_of(values["label"], candidates)
            fields["label"] = np.asarray(gold)
        return Example((fields,), gold, {"candidates": list(candidates)}, sum(num_cut for _, num_cut in read))

    def _logits(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> Ragged:
        """One number a candidate, rows of candidates."""
        lengths = batch.ragged("candidates")
        apart = {name: Ragged(batch.tensor(name), lengths.values) for name in ("tokens", "segments")}
        return lengths.with_values(owned(encoder, encoder(Batch(apart)).states).squeeze(-1))

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits, targets = self._logits(owned, encoder, batch).pad(-torch.inf), batch.tensor("label")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({"choice": Figure.over(losses)}, {"accuracy": Figure.over(correct)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [F.log_softmax(self._logits(owned, encoder, batch).pad(-torch.inf), -1)]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"choice": len(batch.tensor("label"))}

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        return [row.float().numpy() for row in self._logits(owned, encoder, batch).rows()]

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        shares = softmax(outputs[0])
        best = int(shares.argmax())
        return {"choice": best, "candidate": example.told["candidates"][best], "probabilities": shares.tolist()}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return {"accuracy": float(np.mean([answer["choice"] == wanted for answer, wanted in zip(answers, gold, strict=True)]))}


class Rank(Labelling):
    """A query and one candidate a row; candidates of the same query are put in order. Learned as relevant or not."""

    kind: Literal["rank"] = "rank"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "text": ("query", "question", *TEXT),
        "other": ("candidate", "passage", *OTHER),
        "relevance": ("relevance", "label", "relevant", "target"),
    }
    targets: ClassVar[Sequence[str]] = ("relevance",)
    optional: ClassVar[Sequence[str]] = ()
    main: ClassVar[str] = "mrr"

    @property
    def num_outputs(self) -> int:
        return 1

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        example = super().read(values, tokenizer, length)
        return Example(example.samples, example.gold, {"query": values["text"]}, example.num_cut)

    def gold(self, values: Values) -> tuple[str, int] | None:
        if "relevance" not in values:
            return None
        return values["text"], int(str(values["relevance"]).strip().lower() in ("1", "true", "yes", "relevant", "1.0"))

    def target(self, gold: tuple[str, int]) -> np.ndarray:
        return np.asarray(gold[1], np.float32)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits: Tensor = owned(encoder, encoder(batch).states).squeeze(-1)
        losses = F.binary_cross_entropy_with_logits(logits, batch.tensor("label"), reduction="none")
        return LossReport({"rank": Figure.over(losses)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [log_shares_of_two(owned(encoder, encoder(batch).states))]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"rank": len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        return {"score": float(outputs[0][0]), "query": example.told["query"]}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        queries, relevance = zip(*gold, strict=True)
        return ranking_scores(list(queries), [answer["score"] for answer in answers], list(relevance))


def _number_of(label: Any, candidates: Sequence[Any]) -> int:
    """A number from 0, a letter, or the candidate itself."""
    if label in candidates:
        return list(candidates).index(label)
    word = str(label).strip()
    number = int(word) if word.isdigit() else ord(word.upper()) - ord("A") if len(word) == 1 and word.isalpha() else -1
    if not 0 <= number < len(candidates):
        raise InputError(f"the label {label!r} names none of the {len(candidates)} candidates")
    return number
