"""Measures how many lines and n-grams of an evaluation's texts occur in a corpus.

The n-grams of the texts are hashed into a table, and the corpus is read once against it: memory grows with the
evaluation, never with the corpus. Texts are cleaned, split and tokenised as the corpus was: else the same words would
have other tokens.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bertie.data.build.build_options import BuildOptions
from bertie.data.build.tokenising import Tools
from bertie.data.build.tools import with_copy
from bertie.data.corpus import Corpus
from bertie.data.samples.sample_protocols import Documents
from bertie.text.reading.cleaning import Cleaner
from bertie.text.segmenters import load_segmenter
from bertie.text.tokenizers.tokenizer import Tokenizer

GRAM = 13  # tokens
SHORTEST = 5  # shorter lines occur everywhere by chance
SHOWN = 3  # lines that are shown
BLOCK = 1 << 20  # tokens of the corpus that are hashed at once
FILTER_BITS = 20
FACTOR = np.uint64(0x9E3779B97F4A7C15)
BORDER = np.uint64(0xFFFFFFFF)  # between documents; no token has this id


@dataclass(frozen=True)
class Leakage:
    num_lines: int
    num_short: int  # lines too short to compare
    num_found_lines: int  # every n-gram of the line occurs
    num_grams: int  # different ones
    num_found_grams: int
    found_lines: tuple[int, ...]  # the numbers of the first lines found, from 0

    @property
    def line_share(self) -> float:
        return self.num_found_lines / max(1, self.num_lines - self.num_short)

    @property
    def gram_share(self) -> float:
        return self.num_found_grams / max(1, self.num_grams)


class GramTable:
    """The hashes of n-grams of one size, and which of them were met."""

    def __init__(self, size: int, hashes: np.ndarray):
        self.size = size
        self.hashes = np.unique(hashes)
        self.found = np.zeros(len(self.hashes), bool)
        # Most of the corpus is turned away by a table of bits that fits in the cache.
        self.likely = np.zeros(1 << FILTER_BITS, bool)
        self.likely[self._bits(self.hashes)] = True

    @staticmethod
    def _bits(hashes: np.ndarray) -> np.ndarray:
        return (hashes >> np.uint64(64 - FILTER_BITS)).astype(np.int64)

    def meet(self, ids: np.ndarray) -> None:
        hashes = hash_grams(ids, self.size)
        hashes = hashes[self.likely[self._bits(hashes)]]
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        self.found[places[self.hashes[places] == hashes]] = True

    def were_found(self, hashes: np.ndarray) -> np.ndarray:
        """[hashes] bool, for hashes that are in the table."""
        return self.found[np.searchsorted(self.hashes, hashes)]


def read_as_corpus(texts: Iterable[str], corpus: Corpus, tokenizer: Tokenizer) -> Iterator[list[np.ndarray]]:
    """The ids that each text has in the corpus if it is there: one reading, or two where pieces carry the space before
    them, since a text may begin a paragraph of the corpus or stand inside it."""
    layers = corpus.manifest.layers
    options = with_copy(BuildOptions.parse(layers[0].options if layers else {}), corpus.folder)
    segmenter = load_segmenter(options.segmenter, options.dictionary)
    tools = Tools(tokenizer, segmenter, None if options.language == "auto" else options.language)
    clean = Cleaner(options.cleaning.replace(min_characters=0))
    for text in texts:
        paragraphs = [line for line in clean(text).split("\n") if line]
        if options.sentences:
            sentences = [sentence for paragraph in paragraphs for sentence in tools.sentences(paragraph)]
        else:
            sentences = paragraphs
        readings = [sentences]
        if tools.moves_spaces and sentences:
            readings.append([f" {sentences[0]}", *sentences[1:]])
        yield [tools.encode(reading).ids for reading in readings]


def measure_leakage(lines: Iterable[Sequence[np.ndarray]], documents: Documents) -> Leakage:
    """`lines` are the texts of the evaluation, each in its readings, of which the one that occurs most counts. A line
    of less than 13 tokens is found where it occurs as a whole."""
    rows = [[hash_line(ids) for ids in readings if len(ids) >= SHORTEST] for readings in lines]
    by_size: dict[int, list[np.ndarray]] = {}
    for size, hashes in itertools.chain(*rows):
        by_size.setdefault(size, []).append(hashes)
    tables = {size: GramTable(size, np.concatenate(hashes)) for size, hashes in by_size.items()}
    for block in read_blocks(documents):
        for table in tables.values():
            table.meet(block)
    found_lines: list[int] = []
    longest: list[np.ndarray] = [np.zeros(0, np.uint64)]
    for number, row in enumerate(rows):
        if not row:
            continue
        share, size, hashes = max(
            ((float(tables[size].were_found(hashes).mean()), size, hashes) for size, hashes in row),
            key=lambda reading: reading[0],
        )
        if share == 1:
            found_lines.append(number)
        if size == GRAM:
            longest.append(hashes)
    grams = np.unique(np.concatenate(longest))
    return Leakage(
        num_lines=len(rows),
        num_short=sum(not row for row in rows),
        num_found_lines=len(found_lines),
        num_grams=len(grams),
        num_found_grams=int(tables[GRAM].were_found(grams).sum()) if len(grams) else 0,
        found_lines=tuple(found_lines[:SHOWN]),
    )


def hash_line(ids: np.ndarray) -> tuple[int, np.ndarray]:
    """The size of its n-grams, and their hashes."""
    size = min(GRAM, len(ids))
    return size, hash_grams(ids, size)


def hash_grams(ids: np.ndarray, size: int) -> np.ndarray:
    """[n - size + 1] a number of 64 bits for each run of `size` ids."""
    count = max(0, len(ids) - size + 1)
    values = ids.astype(np.uint64) + np.uint64(1)
    hashes = np.zeros(count, np.uint64)
    for offset in range(size):
        hashes = hashes * FACTOR + values[offset : offset + count]
    # The low bits of a product know only the low bits of its factors.
    hashes ^= hashes >> np.uint64(32)
    return hashes * FACTOR


def read_blocks(documents: Documents) -> Iterator[np.ndarray]:
    """The ids of all documents with borders between them, about `BLOCK` at a time."""
    border = np.array([BORDER])
    waiting: list[np.ndarray] = []
    size = 0
    for number in range(documents.num_documents):
        ids = documents.document(number).ids
        waiting += [ids.astype(np.uint64), border]
        size += len(ids)
        if size >= BLOCK:
            yield np.concatenate(waiting)
            waiting, size = [], 0
    if waiting:
        yield np.concatenate(waiting)
