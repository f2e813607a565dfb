"""Chooses one of several candidates for a text, or ranks them.

BERT, section 4.4: every candidate is read together with the text and gets one score.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.data.rows.gathered_rows import gathered
from bertie.data.rows.header import is_number
from bertie.data.rows.rows import Rows
from bertie.errors import InputError, SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import SequenceHead, SequenceHeadSpec
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import FIRST, Vocabulary
from bertie.tasks.classification import OTHER, TEXT, Labelling, log_probs_of_two
from bertie.tasks.hf_head import CHOICE, MANY_LABELS, ROWS, HFHead
from bertie.tasks.label_sets import at_least_two, label_of, sorted_labels
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.labels import accuracy
from bertie.tasks.metrics.majority import Majority, most_frequent
from bertie.tasks.metrics.ranking import group_scores, ranking_scores
from bertie.tasks.probabilities import rounded, sigmoid, softmax
from bertie.tasks.task import Answer, Example, LabelPairs, Task, Values, encoded, text_of
from bertie.text.tokenizers.tokenizer import Tokenizer


class Choice(Task):
    """All candidates of a row are one sample, one after the other; `candidates` holds their lengths."""

    kind: Literal["choice"] = "choice"
    about: ClassVar[str] = "Choose one of several candidates."
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "text": ("text", "context", "ctx", "startphrase", *TEXT),
        "candidates": ("candidates", "choices", "endings", "options", "answers"),
        "label": ("label", "answer", "target", "correct", "answerKey", "gold"),
    }
    targets: ClassVar[Sequence[str]] = ("label",)
    texts: ClassVar[Sequence[str]] = ("text",)  # a label may be the text of a candidate
    main: ClassVar[str] = "accuracy"
    numbered_from: int = Field(default=0, ge=0, le=1)  # number of the first candidate, in labels and answers
    by_number: bool = False  # labels are numbers of candidates: all those of the training rows could be
    head: SequenceHeadSpec = SequenceHeadSpec()

    @property
    def read_positions(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return (FIRST,) if self.head.tokens == "first" else None

    def prepare_rows(self, rows: Rows, columns: Mapping[str, str]) -> tuple[Rows, Mapping[str, str]]:
        """Candidates may have a column each."""
        return gathered(rows, "candidates", self.roles["candidates"], columns)

    def rows_from_texts(self, texts: Sequence[str]) -> list[Values]:
        if len(texts) < 2:
            what = f"a row of this task is a text and its candidates: at least 2 texts, not {len(texts)}"
            raise SpecError(what, hint=self.how_to_give_rows(("text", "candidates")))
        return [{"text": texts[0], "candidates": list(texts[1:])}]

    def fitted(self, rows: Iterable[Values]) -> Self:
        """Labels are numbers from 1 where none is 0 and one is as high as there are candidates."""
        found, named = list[tuple[str, int]](), False  # label, number of candidates
        for values in rows:
            with suppress(InputError):
                candidates, label = Candidates.of(values), label_of(values.get("label"))
                found.append((label, len(candidates.texts)))
                named = named or bool(candidates.names)
        if not found:
            raise InputError("no row has candidates and a label", hint="are these the right columns?")
        numbers = all(label.isdecimal() and int(label) <= count for label, count in found)
        from_zero = any(label == "0" for label, _ in found)
        numbered_from = int(numbers and not from_zero and any(label == str(count) for label, count in found))
        by_number = numbers and not named and all(int(label) - numbered_from < count for label, count in found)
        return self.replace(numbered_from=numbered_from, by_number=by_number)

    def summary(self) -> str:
        return f"candidates are numbered from {self.numbered_from}"

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> SequenceHead:
        return self.head.build(encoder, 1)

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        text, candidates = text_of(values, "text"), Candidates.of(values)
        read = [encoded(tokenizer, max_length, text, candidate) for candidate in candidates.texts]
        fields = {name: np.concatenate([one[name] for one, _ in read]) for name in ("tokens", "segments")}
        fields["candidates"] = np.array([len(one["tokens"]) for one, _ in read])
        gold = None
        if "label" in values:
            place = candidates.place_of(label_of(values["label"]), self.numbered_from, self.by_number)
            gold, fields["label"] = place + self.numbered_from, np.asarray(place)
        return Example((fields,), gold, {"candidates": candidates.texts}, sum(num_cut for _, num_cut in read))

    def _logits(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> Ragged:
        """One number per candidate, rows of candidates."""
        lengths = batch.ragged("candidates")
        apart = {name: Ragged(batch.tensor(name), lengths.values) for name in ("tokens", "segments")}
        return lengths.with_values(owned(encoder, self.last_states(encoder, Batch(apart))).squeeze(-1))

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits, targets = self._logits(owned, encoder, batch).pad(-torch.inf), batch.tensor("label")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({"choice": Figure.over(losses)}, {"accuracy": Figure.over(correct)})

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [F.log_softmax(self._logits(owned, encoder, batch).pad(-torch.inf), -1)]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"choice": len(batch.tensor("label"))}

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        logits = self._logits(owned, encoder, batch)
        return [row.numpy() for row in logits.with_values(logits.values.float().cpu()).rows()]

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        shares = softmax(outputs[0])
        best = int(shares.argmax())
        return {
            "choice": best + self.numbered_from,
            "candidate": example.context["candidates"][best],
            "probabilities": [rounded(share) for share in shares],
        }

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return {"accuracy": accuracy(gold, [answer["choice"] for answer in answers])}

    def error_severity(self, answer: Answer, gold: int) -> float:
        """How improbable the right candidate was, where another was chosen."""
        return 0.0 if answer["choice"] == gold else 1 - answer["probabilities"][gold - self.numbered_from]

    def labels_of(self, gold: int) -> list[str]:
        """Its number: if one number is right more often than others, that can be learned without reading."""
        return [str(gold)]

    def describe(self, answer: Answer, gold: int) -> tuple[str, str]:
        return f"candidate {gold}", f"candidate {answer['choice']}: {answer['candidate']}"

    def majority(self, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
        place = most_frequent(trained)
        return self.constant_score(f"candidate {place}", {"choice": place}, measured)

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        right = np.array([answer["choice"] == wanted for answer, wanted in zip(answers, gold, strict=True)])
        return Resampling(len(answers), lambda numbers: {"accuracy": float(right[numbers].mean())})

    def hf_head(self) -> HFHead | None:
        return HFHead(CHOICE)

    @classmethod
    def from_hf(cls, found: HFHead, head: SequenceHeadSpec) -> Task | None:
        return Choice(head=head) if found.role == CHOICE else None


class Candidates:
    def __init__(self, texts: list[str], names: list[str]):
        self.texts, self.names = texts, names

    @classmethod
    def of(cls, values: Values) -> "Candidates":
        """From a list of texts, or from an object with lists `text` and `label`, the names of the candidates."""
        texts, names = values.get("candidates"), list[str]()
        if isinstance(texts, Mapping):
            names = [label_of(name, "name") for name in texts.get("label") or ()]
            texts = texts.get("text")
        if not isinstance(texts, list | tuple) or len(texts) < 2:
            raise InputError("there is no list of at least two candidates")
        return cls(
            [one if isinstance(one, str) and one.strip() else label_of(one, "candidate") for one in texts], names
        )

    def place_of(self, label: str, numbered_from: int, by_number: bool = False) -> int:
        """From 0, by name, text, number or letter; with `by_number` not by text, since texts may be numbers, too."""
        for every in (self.names, [] if by_number else [text.strip() for text in self.texts]):
            if label in every:
                return every.index(label)
        place = -1
        if label.isdecimal():
            place = int(label) - numbered_from
        elif len(label) == 1 and label.isascii() and label.isalpha():
            place = ord(label.upper()) - ord("A")
        if not 0 <= place < len(self.texts):
            raise InputError(f"the label {label!r} names none of the {len(self.texts)} candidates")
        return place


class Rank(Labelling):
    """A row has a query and one candidate; candidates of the same query are ranked, wherever their rows stand. Each is
    learned as relevant or not."""

    kind: Literal["rank"] = "rank"
    about: ClassVar[str] = "Rank candidates by how well they fit a query."
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "text": ("query", "question", *TEXT),
        "other": ("candidate", "passage", *OTHER),
        "relevance": ("relevance", "label", "relevant", "target"),
    }
    targets: ClassVar[Sequence[str]] = ("relevance",)
    texts: ClassVar[Sequence[str]] = ("other",)  # the query shows which rows belong together
    optional: ClassVar[Sequence[str]] = ()
    main: ClassVar[str] = "mrr"
    pair: bool | None = True

    @property
    def num_outputs(self) -> int:
        return 1

    def rows_from_texts(self, texts: Sequence[str]) -> list[Values]:
        """A query and its candidates."""
        if len(texts) < 2:
            return super().rows_from_texts(texts)
        return [{"text": texts[0], "other": candidate} for candidate in texts[1:]]

    def arrange(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[Answer]:
        """The best candidate first, those that cannot be scored last."""
        found = [{**answer, "candidate": text} for text, answer in zip(texts[1:], answers, strict=True)]
        return sorted(found, key=lambda answer: -answer.get("score", -math.inf))

    def labels_in(self, values: Values) -> Collection[str]:
        return [_relevance(is_relevant(values.get("relevance")))]

    def with_labels(self, found: Collection[str]) -> Self:
        at_least_two(sorted_labels(found), "relevance")
        return self

    def gold(self, values: Values) -> tuple[str, int] | None:
        """The query, which groups the rows, and whether the candidate is relevant."""
        if "relevance" not in values:
            return None
        return text_of(values, "text").strip(), int(is_relevant(values["relevance"]))

    def target(self, gold: tuple[str, int]) -> np.ndarray:
        return np.asarray(gold[1], np.float32)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits = self.logits(owned, encoder, batch).squeeze(-1)
        losses = F.binary_cross_entropy_with_logits(logits, batch.tensor("label"), reduction="none")
        return LossReport({"rank": Figure.over(losses)})

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [log_probs_of_two(self.logits(owned, encoder, batch))]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"rank": len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        """Candidates of one query are ranked by `score`; `probability` is that of this one being relevant."""
        return {"score": float(outputs[0][0]), "probability": rounded(sigmoid(outputs[0])[0])}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        queries, relevance = [query for query, _ in gold], [relevant for _, relevant in gold]
        return ranking_scores(queries, [answer["score"] for answer in answers], relevance)

    def error_severity(self, answer: Answer, gold: tuple[str, int]) -> float:
        """How far off the probability is, where it is on the wrong side."""
        return 0.0 if (answer["score"] > 0) == gold[1] else abs(gold[1] - answer["probability"])

    def label_pairs(self, answers: Sequence[Answer], gold: Sequence[Any]) -> LabelPairs:
        pairs = zip(gold, answers, strict=True)
        return {"candidate": [(_relevance(one[1]), _relevance(answer["score"] > 0)) for one, answer in pairs]}

    def labels_of(self, gold: tuple[str, int]) -> list[str]:
        return [_relevance(gold[1])]

    def describe(self, answer: Answer, gold: tuple[str, int]) -> tuple[str, str]:
        return _relevance(gold[1]), f"score {answer['score']:.4g}"

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        """Whole queries are drawn."""
        queries, relevance = zip(*gold, strict=True)
        found = group_scores(queries, [answer["score"] for answer in answers], relevance)
        columns = {"mrr": found.reciprocal_ranks, "accuracy_at_1": found.first_right, "map": found.average_precisions}

        def score(numbers: np.ndarray) -> dict[str, float]:
            return {name: float(column[numbers].mean()) for name, column in columns.items()}

        return Resampling(len(found.reciprocal_ranks), score, "queries")

    def hf_head(self) -> HFHead | None:
        return HFHead(ROWS, ("relevant",), MANY_LABELS)


YES, NO = {"true", "yes", "relevant"}, {"false", "no", "irrelevant", "not relevant"}


def is_relevant(cell: Any) -> bool:
    """Yes or no in words, or a grade that is above 0."""
    word = label_of(cell, "relevance").lower()
    if word in YES | NO:
        return word in YES
    if not is_number(word):
        raise InputError(f"the relevance {word!r} is neither yes, no nor a number")
    return float(word) > 0


def _relevance(relevant: bool | int) -> str:
    return "relevant" if relevant else "not relevant"
