"""Counts how often each word of the documents occurs: exactly while it fits the memory, else without the rarest.

Counting has two steps, because the second is slow and most words come often. First text is cut at white space and equal
chunks are counted; then the pipeline's own normalizer and pre-tokenizer cut each distinct chunk into words. Each slice
is counted by itself and slices are added in their order, so that the counts do not depend on who counted what.
"""

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from typing import Protocol

from tokenizers import Tokenizer

from bertie.reporting.events import OnEvent, ignore, progress

BASE_BYTES = 150_000_000  # the process before it counts, and a long document while it is read
ENTRY_BYTES = 180  # a word and its count in a dict without the word's characters, measured
# Shares of the memory beyond that. What counting leaves free is the trainer's; see `training.trainer_room`.
WORDS_SHARE = 4  # the words of all slices
SLICE_SHARE = 8  # those of the slice that is being counted
CHUNKS_SHARE = 16  # chunks that wait to be cut into words
HELD_OUT_SHARE = 16
HELD_OUT_BYTES = 50_000_000  # enough words to measure on
CHUNK_TEXT = 8_000_000  # bytes of text whose chunks are counted before they are cut into words
CUT_AT_ONCE = 100_000  # characters of a document
LONGEST_CHUNK = 10_000  # characters; longer ones are cut anywhere, since pre-tokenizers hold 500 bytes for each

WHITE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# As byte-level pre-tokenizers see it: a word takes one space before it along, other white space stands alone.
WITH_SPACES = re.compile(rf" ?[^{WHITE}]+|[{WHITE}]+(?![^{WHITE}])|[{WHITE}]+")
WORD_ENDS = re.compile(rf"(?<=[^{WHITE}])[ \t\n\r]")


class HasText(Protocol):
    @property
    def text(self) -> str: ...


class Readable(Protocol):
    """A slice of the input."""

    def read(self) -> Iterable[HasText]: ...


@dataclass(frozen=True)
class Counting:
    """How words are found, and with how much memory."""

    splitter: Tokenizer  # its normalizer and pre-tokenizer are used
    keeps_spaces: bool  # whether white space is part of words
    ram: int = 1_000_000_000
    held_out: int = 0  # one document in so many is counted apart; 0: none
    workers: int = 1

    @property
    def room(self) -> int:
        """Bytes for everything that grows with the text; never by the number of workers, since that decides nothing."""
        return max(self.ram - BASE_BYTES, 0)

    def cut(self, text: str) -> list[str]:
        return WITH_SPACES.findall(text) if self.keeps_spaces else cut_at_spaces(text)

    def words_of(self, chunk: str) -> list[str]:
        normalizer, pre_tokenizer = self.splitter.normalizer, self.splitter.pre_tokenizer
        text = normalizer.normalize_str(chunk) if normalizer is not None else chunk
        return [word for word, _ in pre_tokenizer.pre_tokenize_str(text)]

    def cut_chunks(self, chunks: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """The words of distinct chunks, with the chunks' counts."""
        for chunk, count in chunks.items():
            for start in range(0, len(chunk), LONGEST_CHUNK):
                for word in self.words_of(chunk[start : start + LONGEST_CHUNK]):
                    yield word, count


class Tally(dict[str, int]):
    """Counts of words that know how many bytes they take."""

    def __init__(self, counts: Iterable[tuple[str, int]] = ()):
        super().__init__()
        self.num_bytes = 0
        self.add(counts)

    def total(self) -> int:
        return sum(self.values())

    def add(self, counts: Iterable[tuple[str, int]]) -> None:
        for word, count in counts:
            if word in self:
                self[word] += count
            else:
                self[word] = count
                self.num_bytes += entry_bytes(word)

    def prune(self, room: int) -> int:
        """When there are more bytes than that, drop the rarest words until a quarter is free again, and return their
        occurrences. Of equally frequent ones some stay, always the same: in text without spaces most words occur once.
        """
        if self.num_bytes <= room:
            return 0
        of_count: Counter[int] = Counter()
        for word, count in self.items():
            of_count[count] += entry_bytes(word)
        excess, limit = self.num_bytes - room * 3 // 4, 0
        for limit in sorted(of_count):
            if of_count[limit] > excess:
                break
            excess -= of_count[limit]
        before = self.total()
        for word in [word for word, count in self.items() if count < limit]:
            self._drop(word)
        for word in sorted((word for word, count in self.items() if count == limit), key=place_of, reverse=True):
            if self.num_bytes <= room * 3 // 4:
                break
            self._drop(word)
        return before - self.total()

    def _drop(self, word: str) -> None:
        del self[word]
        self.num_bytes -= entry_bytes(word)


@dataclass
class WordCounts:
    """How often each word occurs, and what was left out on the way."""

    words: Tally = field(default_factory=Tally)
    held_out: Tally = field(default_factory=Tally)
    num_documents: int = 0
    num_held_out: int = 0  # documents
    num_characters: int = 0
    num_cut: int = 0  # places where text without white space was cut, since it was long
    num_pruned: int = 0  # occurrences of rare words that did not fit the memory; those dropped early are counted so far
    num_not_measured: int = 0  # occurrences of held-out words past the limit

    def add(self, other: "WordCounts", room: int) -> None:
        self.words.add(other.words.items())
        self.hold_out(other.held_out, room)
        self.num_documents += other.num_documents
        self.num_held_out += other.num_held_out
        self.num_characters += other.num_characters
        self.num_cut += other.num_cut
        self.num_pruned += other.num_pruned + self.words.prune(room // WORDS_SHARE)
        self.num_not_measured += other.num_not_measured

    def hold_out(self, words: Mapping[str, int], room: int) -> None:
        if self.held_out.num_bytes < min(HELD_OUT_BYTES, room // HELD_OUT_SHARE):
            self.held_out.add(words.items())
        else:
            self.num_not_measured += sum(words.values())


def count_words(slices: Sequence[Readable], counting: Counting, on_event: OnEvent = ignore) -> WordCounts:
    """The counts of all slices."""
    total = WordCounts()
    on_event(progress("counting words", 0, len(slices), "slices"))
    for done, counts in enumerate(_count_slices(slices, counting), 1):
        total.add(counts, counting.room)
        on_event(progress("counting words", done, len(slices), "slices"))
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
    counts = WordCounts()
    chunks: Counter[str] = Counter()
    waiting = 0  # bytes of text

    def cut() -> None:
        nonlocal chunks, waiting
        counts.num_cut += sum(count * ((len(chunk) - 1) // LONGEST_CHUNK) for chunk, count in chunks.items() if chunk)
        counts.words.add(counting.cut_chunks(chunks))
        counts.num_pruned += counts.words.prune(counting.room // SLICE_SHARE)
        chunks, waiting = Counter(), 0

    for document in one.read():
        counts.num_documents += 1
        counts.num_characters += len(document.text)
        if is_held_out(document.text, counting.held_out):
            counts.num_held_out += 1
            for text in segments(document.text):
                counts.hold_out(Tally(counting.cut_chunks(Counter(counting.cut(text)))), counting.room)
            continue
        for text in segments(document.text):
            chunks.update(counting.cut(text))
            waiting += text_bytes(text)
            if waiting >= CHUNK_TEXT or 2 * waiting + len(chunks) * ENTRY_BYTES >= counting.room // CHUNKS_SHARE:
                cut()
    cut()
    return counts


def segments(text: str) -> Iterator[str]:
    """A long text in parts, cut where words end, so that the words stay the same."""
    start = 0
    while len(text) - start > CUT_AT_ONCE and (found := WORD_ENDS.search(text, start + CUT_AT_ONCE)):
        yield text[start : found.start()]
        start = found.start()
    yield text[start:]


def is_held_out(text: str, one_in: int) -> bool:
    """By the text itself: copies of a document stand on the same side, and the order of documents does not matter."""
    return one_in > 0 and zlib.crc32(text.encode("utf-8", "replace")) % one_in == 0


def cut_at_spaces(text: str) -> list[str]:
    # Only these: other white space is the normalizer's business.
    return text.replace("\n", " ").replace("\t", " ").replace("\r", " ").split(" ")


def text_bytes(text: str) -> int:
    """As Python holds it; few texts have characters of four bytes."""
    return len(text) if text.isascii() else 2 * len(text)


def entry_bytes(word: str) -> int:
    return ENTRY_BYTES + text_bytes(word)


def place_of(word: str) -> int:
    """A number that is always the same: a sample by it does not prefer any letters."""
    checksum = zlib.crc32(word.encode("utf-8", "surrogatepass"))  # alone it is uneven over words that are much alike
    return checksum * 0x9E3779B97F4A7C15 % (1 << 64)
