"""Slices of documents in, how often each word occurs out: exact while it fits the memory, else without the rarest.

Counting has two steps, because the second is slow and most words come often. First text is cut at white space and equal
chunks are counted; then the pipeline's own normaliser and pre-tokenizer cut each distinct chunk into words. Each slice
is counted by itself and slices are added in their order, so that the counts do not depend on who counted what.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from typing import Protocol

from tokenizers import Tokenizer

BASE_BYTES = 250_000_000  # the process before it counts, torch included
WORD_BYTES = 220  # a word and its count in a dict, measured
CHUNK_TEXT = 8_000_000  # characters of text whose chunks are counted before they are cut into words
HELD_OUT_WORDS = 200_000  # distinct words are enough to measure on

WHITE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# As byte-level pre-tokenizers see it: a word takes one space before it along, other white space stands alone.
WITH_SPACES = re.compile(rf" ?[^{WHITE}]+|[{WHITE}]+(?![^{WHITE}])|[{WHITE}]+")


class HasText(Protocol):
    @property
    def text(self) -> str: ...


class Readable(Protocol):
    """A slice of the input."""

    def read(self) -> Iterable[HasText]: ...


@dataclass(frozen=True)
class Counting:
    """How words are found, and with how much memory."""

    splitter: Tokenizer  # its normaliser and pre-tokenizer are used
    keeps_spaces: bool  # whether white space is part of words
    ram: int = 1_000_000_000
    held_out: int = 0  # one document in so many is counted apart; 0: none
    workers: int = 1

    @property
    def max_words(self) -> int:
        """Distinct words of all slices together; half the memory, and never by the number of workers."""
        return max(10_000, (self.ram - BASE_BYTES) // (WORD_BYTES * 2))

    def cut(self, text: str) -> list[str]:
        return WITH_SPACES.findall(text) if self.keeps_spaces else cut_at_spaces(text)

    def cut_chunks(self, chunks: Counter[str]) -> Counter[str]:
        words: Counter[str] = Counter()
        normalizer, pre_tokenizer = self.splitter.normalizer, self.splitter.pre_tokenizer
        for chunk, count in chunks.items():
            if not chunk:
                continue
            text = normalizer.normalize_str(chunk) if normalizer is not None else chunk
            for word, _ in pre_tokenizer.pre_tokenize_str(text):
                words[word] += count
        return words


@dataclass
class WordCounts:
    """How often each word occurs, and what was left out on the way."""

    words: Counter[str] = field(default_factory=Counter)
    held_out: Counter[str] = field(default_factory=Counter)
    num_documents: int = 0
    num_held_out: int = 0  # documents
    num_characters: int = 0
    num_pruned: int = 0  # occurrences of rare words that did not fit the memory; those dropped early are counted so far
    num_not_measured: int = 0  # occurrences of held-out words past the limit

    def add(self, other: "WordCounts", max_words: int) -> None:
        self.words.update(other.words)
        self.hold_out(other.held_out)
        self.num_documents += other.num_documents
        self.num_held_out += other.num_held_out
        self.num_characters += other.num_characters
        self.num_pruned += other.num_pruned
        self.num_not_measured += other.num_not_measured
        self.prune(max_words)

    def hold_out(self, words: Counter[str]) -> None:
        if len(self.held_out) < HELD_OUT_WORDS:
            self.held_out.update(words)
        else:
            self.num_not_measured += words.total()

    def prune(self, max_words: int) -> None:
        """Drop the rarest words until there is room again; words of equal count stay or go together."""
        if len(self.words) <= max_words:
            return
        of_count = Counter(self.words.values())
        left, least = len(self.words), 0
        for count in sorted(of_count):
            if left <= max_words * 3 // 4:
                break
            left, least = left - of_count[count], count
        self.num_pruned += sum(count for count in self.words.values() if count <= least)
        self.words = Counter({word: count for word, count in self.words.items() if count > least})


def count_words(
    slices: Sequence[Readable], counting: Counting, advance: Callable[[int], None] = lambda count: None
) -> WordCounts:
    """The counts of all slices; `advance` hears of each finished slice."""
    total = WordCounts()
    for part in _count_slices(slices, counting):
        total.add(part, counting.max_words)
        advance(1)
    return total


def _count_slices(slices: Sequence[Readable], counting: Counting) -> Iterator[WordCounts]:
    if counting.workers == 1 or len(slices) < 2:
        yield from (count_slice(one, counting) for one in slices)
        return
    # Not forked: the parent's native threads would not live in the child.
    with ProcessPoolExecutor(counting.workers, mp_context=get_context("spawn")) as pool:
        waiting = iter(slices)
        running = [pool.submit(count_slice, one, counting) for one in islice(waiting, counting.workers)]
        while running:
            yield running.pop(0).result()
            running += [pool.submit(count_slice, one, counting) for one in islice(waiting, 1)]


def count_slice(one: Readable, counting: Counting) -> WordCounts:
    counts, limit = WordCounts(), counting.max_words // 2
    chunks: Counter[str] = Counter()
    waiting = 0
    for document in one.read():
        counts.num_documents += 1
        counts.num_characters += len(document.text)
        if is_held_out(document.text, counting.held_out):
            counts.num_held_out += 1
            counts.hold_out(counting.cut_chunks(Counter(counting.cut(document.text))))
            continue
        chunks.update(counting.cut(document.text))
        waiting += len(document.text)
        if waiting >= CHUNK_TEXT:
            counts.words.update(counting.cut_chunks(chunks))
            counts.prune(limit)
            chunks, waiting = Counter(), 0
    counts.words.update(counting.cut_chunks(chunks))
    counts.prune(limit)
    return counts


def is_held_out(text: str, one_in: int) -> bool:
    """By the text itself: copies of a document stand on the same side, and the order of documents does not matter."""
    return one_in > 0 and zlib.crc32(text.encode("utf-8", "replace")) % one_in == 0


def cut_at_spaces(text: str) -> list[str]:
    # Only these: other white space is the normaliser's business.
    return text.replace("\n", " ").replace("\t", " ").replace("\r", " ").split(" ")
