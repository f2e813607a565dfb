"""Finding by meaning beside finding by words: a question enters; the best entries leave, one of each group."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bertie.models.embedding import Encoding
from bertie.models.pretrained import Pretrained
from bertie.quickstart.entry import Entry
from bertie.quickstart.learning_rows import LENGTH, named, searched
from bertie.quickstart.questions import Question
from bertie.search.bm25 import BM25Index

TOP = 10  # groups that are looked at


@dataclass(frozen=True)
class Found:
    entry: Entry
    score: float


@dataclass(frozen=True)
class Outcome:
    """What was found for a question, and where in it the first accepted group stands, from 1. Meaning and words are
    looked up in the same texts; `in_whole` are words looked up in the whole ones."""

    question: Question
    by_meaning: list[Found]
    by_words: list[Found]
    in_whole: list[Found]

    @property
    def meaning_place(self) -> int | None:
        return place_of(self.by_meaning, self.question.accepted)

    @property
    def words_place(self) -> int | None:
        return place_of(self.by_words, self.question.accepted)

    @property
    def whole_place(self) -> int | None:
        return place_of(self.in_whole, self.question.accepted)


class Finder:
    """A collection, the vectors of its entries, and the encoder that made them."""

    def __init__(self, model: Pretrained, entries: Sequence[Entry], vectors: np.ndarray):
        self.model, self.entries = model, entries
        self.vectors = unit(vectors)
        # Files of a user's are few: what is sought in them is a text.
        self.keys = [number if entry.is_own else entry.group for number, entry in enumerate(entries)]

    def by_meaning(self, question: str, top: int = TOP) -> list[Found]:
        return self._best(self.vectors @ unit(self._read(question).vectors)[0], top)

    def num_cut(self, question: str) -> int:
        """Tokens of it that are not read by meaning."""
        return self._read(question).num_cut

    def by_words(self, question: str, top: int = TOP) -> list[Found]:
        return self._sharing_words(self._words, question, top)

    def in_whole(self, question: str, top: int = TOP) -> list[Found]:
        """By words, in all that an entry says: an encoder reads only its first tokens."""
        return self._sharing_words(self._whole, question, top)

    def outcome(self, question: Question) -> Outcome:
        asked = question.question
        return Outcome(question, self.by_meaning(asked), self.by_words(asked), self.in_whole(asked))

    def _read(self, question: str) -> Encoding:
        return self.model.encode_report([question], max_length=LENGTH, progress=False)

    @cached_property
    def _words(self) -> BM25Index:
        return BM25Index([searched(entry) for entry in self.entries])

    @cached_property
    def _whole(self) -> BM25Index:
        return BM25Index([named(entry) for entry in self.entries])

    def _sharing_words(self, index: BM25Index, question: str, top: int) -> list[Found]:
        return [found for found in self._best(index.scores(question), top) if found.score > 0]

    def _best(self, scores: np.ndarray, top: int) -> list[Found]:
        best: dict[int | str, Found] = {}
        for number in np.argsort(-scores, kind="stable"):
            best.setdefault(self.keys[number], Found(self.entries[number], float(scores[number])))
            if len(best) == top:
                break
        return list(best.values())


def place_of(found: Sequence[Found], accepted: Sequence[str]) -> int | None:
    return next((place for place, one in enumerate(found, 1) if one.entry.group in accepted), None)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def recall(scores: np.ndarray, top: int = TOP) -> float:
    """Scores [queries, answers]: the share of queries whose own answer, of the same number, is among the first."""
    own = scores.diagonal()[:, None]
    # Whoever has the same score as its own answer has not found it.
    return float(((scores >= own).sum(1) <= top).mean())
