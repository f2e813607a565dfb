"""How alike texts are. Enters: paragraphs. Leaves: exact hashes, and MinHash signatures of one byte a value whose share
of equal bytes estimates the Jaccard similarity of the texts' shingles (Broder 1997; b-bit: Li and König 2010).

A shingle is three words in a row, or four characters of a script without spaces; a mixed text has both.
Axes: C characters of a block, U units (words, or such characters), P paragraphs, N texts, K values of a signature.
"""

import hashlib
import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import rensa

NUM_VALUES = 256  # K; the estimate's standard deviation at a similarity of 0.67 is 0.03
BAND = 6  # values that must agree in some band before two texts are compared at all
NUM_BANDS = NUM_VALUES // BAND
# 5% of the words changed leave about 0.75 of the shingles, 10% leave 0.57.
THRESHOLD = 0.67
MIN_UNITS = 20  # in a shorter text one honest change of a word looks like a copy
WORDS_IN_SHINGLE = 3
CHARACTERS_IN_SHINGLE = 4
SEED = 20

_MIX = np.uint64(0xBF58476D1CE4E5B9)
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
# Ranges of characters that stand without spaces: kana, Han, Thai to Myanmar, Khmer.
_UNSPACED = (
    *((0x0E00, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF)),
    *((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
)


def exact_hash(text: str) -> int:
    """64 bits: among a thousand million paragraphs one false pair is to be feared in 40 corpora."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=4)
def power_table(base: int, size: int) -> np.ndarray:
    table = np.full(size, base, np.uint64)
    table[:1] = 1
    return np.multiply.accumulate(table)


def powers(base: int, count: int) -> np.ndarray:
    """[count] uint64: 1, base, base ** 2, ... modulo 2 ** 64."""
    return power_table(base, 1 << max(16, (count - 1).bit_length()))[:count]


def shingles(paragraphs: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hashes of all shingles [S] uint64, how many each paragraph has [P], and how many units [P].

    One polynomial hash runs over the whole block; the hash of a span is a difference of two of its values, so that
    no word is touched by Python. Shingles do not cross paragraphs; one of too few units is a shingle as a whole.
    """
    text = "\n".join(paragraph.lower().replace("\n", " ") for paragraph in paragraphs) + "\n"
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)  # [C]
    is_space = codes <= 32
    unspaced = np.zeros(len(codes), bool)
    if codes.max() >= _UNSPACED[0][0]:
        for first, last in _UNSPACED:
            unspaced |= (codes >= first) & (codes <= last)
    begins = ~is_space
    begins[1:] &= is_space[:-1] | unspaced[1:] | unspaced[:-1]
    ends = ~is_space
    ends[:-1] &= is_space[1:] | unspaced[:-1] | unspaced[1:]
    starts, stops = np.flatnonzero(begins), np.flatnonzero(ends) + 1  # [U]
    owner = np.searchsorted(np.flatnonzero(codes == 10), starts)  # [U] the unit's paragraph
    num_units = np.bincount(owner, minlength=len(paragraphs))
    if not len(starts):
        return np.zeros(0, np.uint64), np.zeros(len(paragraphs), np.int64), num_units

    ordinal = np.arange(len(starts))
    first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(num_units)])
    wanted = np.where(unspaced[starts], CHARACTERS_IN_SHINGLE, WORDS_IN_SHINGLE)
    final = ordinal + wanted - 1
    end_of_paragraph = first_of[owner + 1] - 1
    kept = (final <= end_of_paragraph) | (ordinal == first_of[owner])
    final = np.minimum(final, end_of_paragraph)[kept]
    starts, owner = starts[kept], owner[kept]

    running = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(codes * powers(_BASE, len(codes)), out=running[1:])
    hashes = (running[stops[final]] - running[starts]) * powers(_INVERSE, len(codes))[starts]
    hashes ^= hashes >> np.uint64(29)
    hashes *= _MIX
    hashes ^= hashes >> np.uint64(32)
    return hashes, np.bincount(owner, minlength=len(paragraphs)), num_units


def signatures(hashes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[N, K] uint8 for texts with `counts` [N] of the shingles each."""
    if not len(counts):
        return np.zeros((0, NUM_VALUES), np.uint8)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.uint64)
    matrix = rensa.RMinHash.digest_matrix_from_flat_token_hashes(hashes, ends, num_perm=NUM_VALUES, seed=SEED)
    rows = matrix.to_rows()
    values = np.fromiter(itertools.chain.from_iterable(rows), np.uint32, len(rows) * NUM_VALUES)
    return (values >> np.uint32(8)).astype(np.uint8).reshape(-1, NUM_VALUES)


def similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[n] estimates from signatures [n, K]; one value of 256 agrees by chance, which is taken off."""
    return ((first == second).mean(axis=1) - 1 / 256) / (1 - 1 / 256)


def band_keys(values: np.ndarray) -> np.ndarray:
    """[n] uint64 keys of one band's values [n, BAND]: equal where all of them are."""
    wide = np.zeros((len(values), 8), np.uint8)
    wide[:, :BAND] = values
    return wide.view("<u8").reshape(-1)


def candidate_pairs(keys: np.ndarray, items: np.ndarray, reach: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (earlier, later) of items with an equal key: each with the first `reach` of its bucket and the `reach`
    before it, so that the number of pairs grows with the items and not with their square."""
    order = np.lexsort((items, keys))
    keys, items = keys[order], items[order]
    new = np.ones(len(keys), bool)
    new[1:] = keys[1:] != keys[:-1]
    starts = np.flatnonzero(new)
    begin = starts[np.cumsum(new) - 1] if len(keys) else starts  # [n] where the item's bucket begins
    place = np.arange(len(keys))
    earlier, later = [], []
    for step in range(1, reach + 1):
        at = place[place - begin >= step]
        earlier.append(items[at - step])
        later.append(items[at])
        at = place[place - begin >= step + reach]  # nearer ones are among the pairs above
        earlier.append(items[begin[at] + step - 1])
        later.append(items[at])
    return np.concatenate(earlier), np.concatenate(later)
