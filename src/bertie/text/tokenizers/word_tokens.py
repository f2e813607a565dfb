"""Turns sentences into tokens and finds which of them start words, for every kind of tokenizer.

Where ideographs are isolated, the chunks of `words` are tokenised one by one. Pieces of other kinds join characters
across any boundary, so there a sentence is tokenised as a whole and the offsets of its tokens are laid beside the
boundaries of its chunks. A boundary inside a token cannot be kept: the words on its two sides are one, and it is
counted.

Axes: S sentences, C chunks, T tokens, N characters, L of them that are not white space.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertie.text.segmenters import IDEOGRAPH_RANGES, Segmenter
from bertie.text.tokenizers.continuation import forms_words
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.words import chunk_all, has_ideographs, keeps_chunks


@dataclass(frozen=True)
class WordTokens:
    """The tokens of many sentences, one after another."""

    ids: np.ndarray  # [T] int64
    lengths: np.ndarray  # [S] int64, tokens of each sentence
    begins: np.ndarray  # [T] bool, True where a token begins a word
    num_joined: int = 0  # boundaries of words that lie inside a token


class WordTokenizer:
    def __init__(self, tokenizer: Tokenizer, segmenter: Segmenter | None):
        self.tokenizer, self.segmenter = tokenizer, segmenter
        self.continues = tokenizer.continues.copy()
        if tokenizer.kind in ("unigram", "bpe") and tokenizer.special.unk is not None:
            # Where pieces mark words by the space before them, the space before an unknown one is a piece of its own.
            self.continues[tokenizer.special.unk] = self.continues.any()
        self.keeps_chunks = keeps_chunks(tokenizer)

    def __call__(self, sentences: Sequence[str]) -> WordTokens:
        if self.keeps_chunks:
            return self._by_chunks(sentences)
        found = [
            (self._by_offsets if in_ideographs else self._by_pieces)(list(group))
            for in_ideographs, group in itertools.groupby(sentences, key=has_ideographs)
        ]
        return joined(found)

    def _by_chunks(self, sentences: Sequence[str]) -> WordTokens:
        chunks = chunk_all(sentences, self.segmenter)
        pieces = self.tokenizer.encode_pieces(chunks.texts)
        continues = self._continues(chunks.texts, pieces.ids, pieces.lengths)
        begins = chunk_begins(pieces.lengths, chunks.is_word, continues)
        token_ends = np.concatenate([[0], np.cumsum(pieces.lengths)])  # [C + 1]
        sentence_ends = token_ends[np.concatenate([[0], np.cumsum(chunks.counts)])]  # [S + 1]
        return WordTokens(pieces.ids, np.diff(sentence_ends), begins)

    def _by_pieces(self, sentences: Sequence[str]) -> WordTokens:
        pieces = self.tokenizer.encode_pieces(sentences)
        no_word = np.zeros(len(sentences), bool)
        begins = chunk_begins(pieces.lengths, no_word, self._continues(sentences, pieces.ids, pieces.lengths))
        return WordTokens(pieces.ids, pieces.lengths, begins)

    def _continues(self, texts: Sequence[str], ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """[T] bool: the token continues the word of the one before it."""
        continues = self.continues[ids]
        if self.tokenizer.kind != "characters":
            return continues
        # An unknown token does not show which character it is: its place in the text does.
        ends = np.cumsum(lengths)
        unknown = np.flatnonzero(ids == self.tokenizer.special.unk)
        for number in np.unique(np.searchsorted(ends, unknown, side="right")).tolist():
            text, tokens = texts[number], self.tokenizer.encode(texts[number])
            formed = [forms_words(text[start:end]) for start, end in tokens.offsets[~tokens.special].tolist()]
            continues[ends[number] - len(formed) : ends[number]] = formed
        continues[1:] &= continues[:-1].copy()
        return continues

    def _by_offsets(self, sentences: Sequence[str]) -> WordTokens:
        encoded = [self.tokenizer.encode(sentence) for sentence in sentences]
        kept = [~tokens.special for tokens in encoded]
        ids = np.concatenate([tokens.ids[keep] for tokens, keep in zip(encoded, kept, strict=True)])
        offsets = np.concatenate([tokens.offsets[keep] for tokens, keep in zip(encoded, kept, strict=True)])
        lengths = np.array([keep.sum() for keep in kept], dtype=np.int64)
        widths = np.array(list(map(len, sentences)))  # [S] characters
        offsets += np.repeat(np.cumsum(widths) - widths, lengths)[:, None]

        places = Boundaries.of(sentences, self.segmenter)
        starts, ends = places.letters_before[offsets].T
        # Several tokens may be parts of one character, all with its offsets: only the first can begin a word.
        starts = np.maximum.accumulate(starts)
        open_boundaries = places.boundaries & ~covered(starts, ends, len(places.boundaries))
        begins = np.diff(np.cumsum(open_boundaries)[starts], prepend=0) > 0
        begins |= ~self._continues(sentences, ids, lengths) & ~places.in_words[starts]
        begins[first_tokens(lengths)] = True
        return WordTokens(ids, lengths, begins, int((places.boundaries & ~open_boundaries).sum()))


@dataclass(frozen=True)
class Boundaries:
    """Where words begin in running text that has ideographs. White space does not count as a place: a piece may carry
    the space before it."""

    letters_before: np.ndarray  # [N + 1] the place of each character
    boundaries: np.ndarray  # [L + 1] bool: a word begins, or text that is left to the pieces
    in_words: np.ndarray  # [L + 1] bool: an ideograph, or within a word that the segmenter found

    @classmethod
    def of(cls, sentences: Sequence[str], segmenter: Segmenter | None) -> "Boundaries":
        chunks = chunk_all(sentences, segmenter)
        codes = np.frombuffer("".join(chunks.texts).encode("utf-32-le", "surrogatepass"), np.uint32)  # [N]
        is_space = (codes <= 32) | (codes == 0xA0) | (codes == 0x3000)
        letters_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(~is_space)])
        widths = np.fromiter(map(len, chunks.texts), np.int64, len(chunks.texts))  # [C]
        in_chunk_word = np.repeat(chunks.is_word, widths)  # [N]
        is_ideograph = np.logical_or.reduce([(codes >= first) & (codes <= last) for first, last in IDEOGRAPH_RANGES])

        boundaries = np.zeros(letters_before[-1] + 1, bool)
        boundaries[letters_before[np.cumsum(widths) - widths]] = True
        alone = letters_before[:-1][is_ideograph & ~in_chunk_word]  # each is a word
        boundaries[alone] = True
        boundaries[alone + 1] = True
        in_words = np.append((is_ideograph | in_chunk_word)[~is_space], False)
        return cls(letters_before, boundaries, in_words)


def covered(starts: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
    """[size] bool: places that lie within a token, not at its edge."""
    wide = ends - starts > 1
    change = np.bincount(starts[wide] + 1, minlength=size) - np.bincount(ends[wide], minlength=size)
    return np.cumsum(change) > 0


def chunk_begins(lengths: np.ndarray, is_word: np.ndarray, continues: np.ndarray) -> np.ndarray:
    """[T] bool: True where a token begins a word. All tokens of a word's chunk are one word."""
    begins = ~continues
    begins[np.repeat(is_word, lengths)] = False
    begins[first_tokens(lengths)] = True
    return begins


def first_tokens(lengths: np.ndarray) -> np.ndarray:
    """The places of the first tokens of all that have one."""
    return (np.cumsum(lengths) - lengths)[lengths > 0]


def joined(parts: Sequence[WordTokens]) -> WordTokens:
    if not parts:
        empty = np.zeros(0, np.int64)
        return WordTokens(empty, empty, empty.astype(bool))
    return WordTokens(
        ids=np.concatenate([part.ids for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        begins=np.concatenate([part.begins for part in parts]),
        num_joined=sum(part.num_joined for part in parts),
    )
