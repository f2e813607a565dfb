"""Measures how well a vocabulary covers held-out text, by its word counts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bertie.text.tokenizers.pipeline import PipelineTokenizer

NUM_MOST_SPLIT = 20


@dataclass(frozen=True)
class SplitWord:
    """A word that is not in the vocabulary, ranked by the pieces that this costs: count x (pieces - 1)."""

    word: str
    count: int
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """Words are what the tokenizer's first cut gives; for pieces per word they must have a letter or digit."""

    num_words: int
    num_pieces: int  # of all words, punctuation too
    num_unknown: int
    unknown_rate: float  # of all pieces
    pieces_per_word: float
    most_split: tuple[SplitWord, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(tokenizer: PipelineTokenizer, counts: Mapping[str, int]) -> Coverage:
    """`counts` are of words as the tokenizer's own normalizer and pre-tokenizer give them."""
    model, unknown = tokenizer.pipeline.model, tokenizer.special.unk
    num_pieces = num_unknown = num_words = word_pieces = 0
    cost: Counter[str] = Counter()
    for word, count in sorted(counts.items()):
        ids = [token.id for token in model.tokenize(word)]
        num_pieces += count * len(ids)
        num_unknown += count * ids.count(unknown)
        if any(letter.isalnum() for letter in word):
            num_words += count
            word_pieces += count * len(ids)
            cost[word] = count * (len(ids) - 1)
    worst = sorted((item for item in cost.items() if item[1] > 0), key=lambda item: (-item[1], item[0]))
    return Coverage(
        num_words=num_words,
        num_pieces=num_pieces,
        num_unknown=num_unknown,
        unknown_rate=num_unknown / max(num_pieces, 1),
        pieces_per_word=word_pieces / max(num_words, 1),
        most_split=tuple(
            SplitWord(word, counts[word], tuple(token.value for token in model.tokenize(word)))
            for word, _ in worst[:NUM_MOST_SPLIT]
        ),
    )
