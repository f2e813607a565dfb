"""Finds the entries that answer a question: by meaning with one or two models, and by words with BM25.

Each method returns the best entry of each group. How high a score is depends on method, model and texts, so it is
compared with that of questions without meaning: a method is unsure where its best score is no higher than the median of
those of as many words, drawn at random from the texts.

The twenty questions of `questions.json`, with the modules that answer them, were written before any model was asked.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files

import numpy as np

from bertie.models.embedding import Encoding
from bertie.models.pretrained import Pretrained
from bertie.quickstart.entries import Entry
from bertie.search.bm25 import BM25Index, words_of

TOP = 10  # groups that are looked at
MEANINGLESS = 100  # questions, for their usual score
MAX_LENGTH = 64  # tokens of a text that are read; the commands count what is cut

# Names of the methods, as they are shown.
TRAINED, REAL, WORDS, WHOLE = "trained here", "all-MiniLM-L6-v2", "BM25", "BM25, whole texts"


@dataclass(frozen=True)
class Question:
    question: str
    accepted: tuple[str, ...]  # groups


def questions() -> list[Question]:
    text = files("bertie.quickstart").joinpath("questions.json").read_text(encoding="utf-8")
    return [Question(row["question"], tuple(row["accepted"])) for row in json.loads(text)]


@dataclass(frozen=True)
class Found:
    entry: Entry
    score: float


@dataclass(frozen=True)
class Outcome:
    """What each method found for a question."""

    question: Question
    found: Mapping[str, list[Found]]
    usual: Mapping[str, float] = field(default_factory=dict)  # by method: the best score of a question without meaning

    def is_unsure(self, method: str) -> bool:
        found = self.found[method]
        return not found or found[0].score <= self.usual.get(method, -np.inf)

    def rank(self, method: str) -> int | None:
        """Rank of the first accepted group, from 1; None where there is none."""
        accepted = self.question.accepted
        ranked = enumerate(self.found[method], 1)
        return next((rank for rank, one in ranked if one.entry.group in accepted), None)


class Finder:
    """Searches entries with models, each given by name with its vectors of the entries, and with BM25."""

    def __init__(self, entries: Sequence[Entry], models: Mapping[str, tuple[Pretrained, np.ndarray]]):
        self.entries, self.models = entries, {name: model for name, (model, _) in models.items()}
        self._vectors = {name: unit(vectors) for name, (_, vectors) in models.items()}
        # A user has few files, so there an answer is a text rather than a file.
        self.usual_score = cache(self._usual_score)
        self._groups = [number if entry.is_own else entry.group for number, entry in enumerate(entries)]

    @property
    def methods(self) -> tuple[str, ...]:
        return (*self.models, WORDS, WHOLE)

    def find(self, method: str, question: str, top: int = TOP) -> list[Found]:
        scores = self._scores(method, question)
        best: dict[int | str, Found] = {}
        for number in np.argsort(-scores, kind="stable"):
            if method not in self.models and scores[number] <= 0:  # no word in common
                break
            best.setdefault(self._groups[number], Found(self.entries[number], float(scores[number])))
            if len(best) == top:
                break
        return list(best.values())

    def outcome(self, question: Question, top: int = TOP) -> Outcome:
        words = max(1, len(words_of(question.question)))
        return Outcome(
            question,
            {method: self.find(method, question.question, top) for method in self.methods},
            {method: self.usual_score(method, words) for method in self.methods},
        )

    def _usual_score(self, method: str, num_words: int) -> float:
        """The median of the best scores of questions of so many words, drawn at random from the entries."""
        random = np.random.default_rng(num_words)
        drawn = random.integers(len(self._drawn_from), size=(MEANINGLESS, num_words))
        texts = [" ".join(self._drawn_from[number] for number in row) for row in drawn]
        if method in self.models:
            best = (unit(encode(self.models[method], texts).vectors) @ self._vectors[method].T).max(1)
        else:
            best = np.array([self._scores(method, text).max() for text in texts])
        return float(np.median(best))

    def num_cut(self, question: str) -> int:
        """Tokens of a question that the first model does not read."""
        return encode(next(iter(self.models.values())), [question]).num_cut

    def _scores(self, method: str, question: str) -> np.ndarray:
        """[entries]: cosines of a model, or BM25."""
        if method in self.models:
            return self._vectors[method] @ unit(encode(self.models[method], [question]).vectors)[0]
        return (self._words if method == WORDS else self._whole).scores(question)

    @cached_property
    def _drawn_from(self) -> list[str]:
        """Every word as often as the entries have it."""
        return [word for entry in self.entries for word in words_of(entry.search_text)] or [""]

    @cached_property
    def _words(self) -> BM25Index:
        return BM25Index([entry.search_text for entry in self.entries])

    @cached_property
    def _whole(self) -> BM25Index:
        """A model reads the first tokens of a text; BM25 can also read all of it."""
        return BM25Index([entry.named_text for entry in self.entries])


def encode(model: Pretrained, texts: Sequence[str]) -> Encoding:
    return model.encode_report(texts, max_length=MAX_LENGTH, progress=False)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def recall(scores: np.ndarray, top: int = TOP) -> float:
    """The share of queries whose own answer, of the same number, is among the first. Scores: [queries, answers]."""
    own = scores.diagonal()[:, None]
    # Another answer with the same score counts as better: equal scores find nothing.
    return float(((scores >= own).sum(1) <= top).mean())
