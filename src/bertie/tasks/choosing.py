"""One of several: a text and its candidates enter, which of them belongs to it leaves. Also the order of candidates.

BERT, section 4.4: every candidate is read with the text, and gets one number.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.data.rows.header import is_number
from bertie.errors import InputError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import SequenceHead, SequenceHeadSpec
from bertie.objectives.objective import Vocabulary
from bertie.objectives.report import Figure, LossReport
from bertie.tasks.classification import OTHER, TEXT, Labelling, log_shares_of_two
from bertie.tasks.label_sets import at_least_two, label_of, sorted_labels
from bertie.tasks.metrics.labels import accuracy
from bertie.tasks.metrics.ranking import ranking_scores
from bertie.tasks.probabilities import rounded, sigmoid, softmax
from bertie.tasks.task import Answer, Example, Task, Values, encoded, looked_at_by, text_of
from bertie.text.tokenizer import Tokenizer


class Choice(Task):
    """All candidates of a row are one sample, one after another; `candidates` holds their lengths."""

    kind: Literal["choice"] = "choice"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "text": ("text", "context", "ctx", "startphrase", *TEXT),
        "candidates": ("candidates", "choices", "endings", "options", "answers"),
        "label": ("label", "answer", "target", "correct", "answerKey", "gold"),
    }
    targets: ClassVar[Sequence[str]] = ("label",)
    texts: ClassVar[Sequence[str]] = ("text",)  # a label may be one of the candidates, word by word
    main: ClassVar[str] = "accuracy"
    numbered_from: int = Field(default=0, ge=0, le=1)  # the first candidate, in labels and answers
    by_number: bool = False  # every label of the training rows could be a number, so that is what they are
    head: SequenceHeadSpec = SequenceHeadSpec()

    @property
    def looks_at(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return looked_at_by(self.head)

    def fitted(self, rows: Iterable[Values]) -> Self:
        """Labels from 1 tell themselves by never being 0, and by being as high as there are candidates."""
        found, named = list[tuple[str, int]](), False  # label, number of candidates
        for values in rows:
            with suppress(InputError):
                candidates, label = Candidates.of(values), label_of(values.get("label"))
                found.append((label, len(candidates.texts)))
                named = named or bool(candidates.names)
        if not found:
            raise InputError("no row has candidates and a label", hint="are the right columns named?")
        numbers = all(label.isdecimal() and int(label) <= count for label, count in found)
        from_zero = any(label == "0" for label, _ in found)
        numbered_from = int(numbers and not from_zero and any(label == str(count) for label, count in found))
        by_number = numbers and not named and all(int(label) - numbered_from < count for label, count in found)
        return self.replace(numbered_from=numbered_from, by_number=by_number)

    def summary(self) -> str:
        return f"candidates are numbered from {self.numbered_from}"

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> SequenceHead:
        return self.head.build(encoder, 1)

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        text, candidates = text_of(values, "text"), Candidates.of(values)
        read = [encoded(tokenizer, length, text, candidate) for candidate in candidates.texts]
        fields = {name: np.concatenate([one[name] for one, _ in read]) for name in ("tokens", "segments")}
        fields["candidates"] = np.array([len(one["tokens"]) for one, _ in read])
        gold = None
        if "label" in values:
            place = candidates.place_of(label_of(values["label"]), self.numbered_from, self.by_number)
            gold, fields["label"] = place + self.numbered_from, np.asarray(place)
        return Example((fields,), gold, {"candidates": candidates.texts}, sum(num_cut for _, num_cut in read))

    def _logits(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> Ragged:
        """One number a candidate, rows of candidates."""
        lengths = batch.ragged("candidates")
        apart = {name: Ragged(batch.tensor(name), lengths.values) for name in ("tokens", "segments")}
        return lengths.with_values(owned(encoder, self.last_states(encoder, Batch(apart))).squeeze(-1))

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
        return [row.float().cpu().numpy() for row in self._logits(owned, encoder, batch).rows()]

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        shares = softmax(outputs[0])
        best = int(shares.argmax())
        return {
            "choice": best + self.numbered_from,
            "candidate": example.told["candidates"][best],
            "probabilities": [rounded(share) for share in shares],
        }

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return {"accuracy": accuracy(gold, [answer["choice"] for answer in answers])}

    def wrongness(self, answer: Answer, gold: int) -> float:
        """How little was thought of the right candidate, where another was chosen."""
        return 0.0 if answer["choice"] == gold else 1 - answer["probabilities"][gold - self.numbered_from]

    def labels_of(self, gold: int) -> list[str]:
        """Its number: a set where one place is right more often than others can be learned without reading."""
        return [str(gold)]


class Candidates:
    def __init__(self, texts: list[str], names: list[str]):
        self.texts, self.names = texts, names

    @classmethod
    def of(cls, values: Values) -> "Candidates":
        """A list of texts, or lists of `text` and of their names, `label`, as data sets have them."""
        texts, names = values.get("candidates"), list[str]()
        if isinstance(texts, Mapping):
            names = [label_of(name, "name") for name in texts.get("label") or ()]
            texts = texts.get("text")
        if not isinstance(texts, list | tuple) or len(texts) < 2:
            raise InputError("there is no list of two candidates or more")
        return cls(
            [one if isinstance(one, str) and one.strip() else label_of(one, "candidate") for one in texts], names
        )

    def place_of(self, label: str, numbered_from: int, by_number: bool = False) -> int:
        """From 0, by name, by text, by number or by letter; `by_number`, where texts are numbers too, without texts."""
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
    """A query and one candidate a row; candidates of the same query are put in order, wherever their rows stand.
    Learned as relevant or not."""

    kind: Literal["rank"] = "rank"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "text": ("query", "question", *TEXT),
        "other": ("candidate", "passage", *OTHER),
        "relevance": ("relevance", "label", "relevant", "target"),
    }
    targets: ClassVar[Sequence[str]] = ("relevance",)
    texts: ClassVar[Sequence[str]] = ("other",)  # by their query rows belong together
    optional: ClassVar[Sequence[str]] = ()
    main: ClassVar[str] = "mrr"
    pair: bool | None = True

    @property
    def num_outputs(self) -> int:
        return 1

    def told_by(self, values: Values) -> Collection[str]:
        return [_relevance(is_relevant(values.get("relevance")))]

    def taught(self, found: Collection[str]) -> Self:
        at_least_two(sorted_labels(found), "relevance")
        return self

    def gold(self, values: Values) -> tuple[str, int] | None:
        """The query, by which rows belong together, and whether its candidate is relevant."""
        if "relevance" not in values:
            return None
        return text_of(values, "text").strip(), int(is_relevant(values["relevance"]))

    def target(self, gold: tuple[str, int]) -> np.ndarray:
        return np.asarray(gold[1], np.float32)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits = self.logits(owned, encoder, batch).squeeze(-1)
        losses = F.binary_cross_entropy_with_logits(logits, batch.tensor("label"), reduction="none")
        return LossReport({"rank": Figure.over(losses)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [log_shares_of_two(self.logits(owned, encoder, batch))]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"rank": len(batch.tensor("label"))}

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        """By the score candidates of one query are put in order; the probability is that this one is relevant."""
        return {"score": float(outputs[0][0]), "probability": rounded(sigmoid(outputs[0])[0])}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        queries, relevance = [query for query, _ in gold], [relevant for _, relevant in gold]
        return ranking_scores(queries, [answer["score"] for answer in answers], relevance)

    def wrongness(self, answer: Answer, gold: tuple[str, int]) -> float:
        """How far off the probability is, where it is on the wrong side."""
        return 0.0 if (answer["score"] > 0) == gold[1] else abs(gold[1] - answer["probability"])

    def labels_told(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
        pairs = zip(gold, answers, strict=True)
        return {"candidate": [(_relevance(one[1]), _relevance(answer["score"] > 0)) for one, answer in pairs]}

    def labels_of(self, gold: tuple[str, int]) -> list[str]:
        return [_relevance(gold[1])]


YES, NO = {"true", "yes", "relevant"}, {"false", "no", "irrelevant", "not relevant"}


def is_relevant(cell: Any) -> bool:
    """Yes or no in words, or a grade that is above 0."""
    word = label_of(cell, "relevance").lower()
    if word in YES | NO:
        return word in YES
    if not is_number(word):
        raise InputError(f"the relevance {word!r} is neither yes or no nor a number")
    return float(word) > 0


def _relevance(relevant: bool | int) -> str:
    return "relevant" if relevant else "not relevant"
