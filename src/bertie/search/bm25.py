"""Scores documents for a query by BM25, the measure of word overlap that search engines start with.

Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

K1, B = 1.2, 0.75
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")  # without spaces between words, an ideograph is one


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


class BM25:
    """How rare a word is, and how long a document usually is, are learned from a collection."""

    def __init__(self, documents: Iterable[str]):
        found: Counter[str] = Counter()
        self.num_documents = num_words = 0
        for document in documents:
            words = words_of(document)
            found.update(set(words))
            self.num_documents, num_words = self.num_documents + 1, num_words + len(words)
        self.num_with, self.mean_length = found, num_words / max(self.num_documents, 1)

    def rarity(self, word: str) -> float:
        num_with = self.num_with[word]
        return math.log(1 + (self.num_documents - num_with + 0.5) / (num_with + 0.5))

    def score(self, query: str, document: str) -> float:
        words = words_of(document)
        counts, longer = Counter(words), len(words) / max(self.mean_length, 1.0)
        return sum(
            self.rarity(word) * counts[word] * (K1 + 1) / (counts[word] + K1 * (1 - B + B * longer))
            for word in words_of(query)
            if counts[word]
        )


class BM25Index:
    """A collection to search in: of each word, the documents that have it, and how often."""

    def __init__(self, documents: Sequence[str]):
        self.measure = BM25(documents)
        self.lengths = np.zeros(len(documents))
        held: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, document in enumerate(documents):
            words = words_of(document)
            self.lengths[number] = len(words)
            for word, count in Counter(words).items():
                held[word].append((number, count))
        self.postings = {word: np.array(pairs) for word, pairs in held.items()}  # [documents, 2]: number, count

    def scores(self, query: str) -> np.ndarray:
        """[documents], 0 where no word is shared."""
        total = np.zeros(len(self.lengths))
        longer = self.lengths / max(self.measure.mean_length, 1.0)
        for word in words_of(query):
            if word in self.postings:
                numbers, counts = self.postings[word].T
                penalty = K1 * (1 - B + B * longer[numbers])
                total[numbers] += self.measure.rarity(word) * counts * (K1 + 1) / (counts + penalty)
        return total
