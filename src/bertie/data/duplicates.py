"""Measures how alike texts are: by exact hashes, and by MinHash signatures of one byte a value, whose share of equal
bytes estimates the Jaccard similarity of the texts' shingles (Broder 1997; b-bit: Li and König 2010).

A shingle is three units in a row, however they are spaced and broken into lines. A unit is a word, or a character of a
script without spaces; where such characters are many, all others are units of their own, too: in Chinese text one
changed digit is then as small a change as one changed ideograph.
Axes: C characters of a block, L of them that are not white space, U units, N texts, K values of a signature.
"""

import hashlib
import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import rensa

NUM_VALUES = 256  # K; the estimate's standard deviation at a similarity of 0.68 is 0.03
BAND = 6  # values that must agree in some band before two texts are compared at all
NUM_BANDS = NUM_VALUES // BAND
# 5% of the units changed leave a similarity of about 0.75, 10% one of 0.57.
THRESHOLD = 0.68
MIN_UNITS = 20  # in a shorter text one honest change of a word looks like a copy
UNITS_IN_SHINGLE = 3
MANY_UNSPACED = 0.25  # of a text's characters; Wikipedia's Chinese articles have at least 0.3, its English ones 0.05
SEED = 20
# Signatures can be compared only with those made in the same way: another way needs another name.
SIGNATURES = f"minhash of {NUM_VALUES} values, {UNITS_IN_SHINGLE} units a shingle, seed {SEED}"

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


def shingles(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hashes of all shingles [S] uint64, how many each text has [N], and how many units [N].

    One polynomial hash runs over the whole block; the hash of a span is a difference of two of its values, so that
    no word is touched by Python. Shingles do not cross texts; a text of too few units is a shingle as a whole.
    """
    block = "\n".join(text.lower().replace("\n", " ") for text in texts) + "\n"
    codes = np.frombuffer(block.encode("utf-32-le", "surrogatepass"), np.uint32)  # [C]
    text_ends = np.flatnonzero(codes == 10)  # [N]
    is_letter = codes > 32
    begins = is_letter.copy()
    begins[1:] &= ~is_letter[:-1]
    if codes.max() >= _UNSPACED[0][0]:
        alone = is_letter & unspaced(codes, text_ends)
        begins |= alone
        begins[1:] |= alone[:-1] & is_letter[1:]
    before = np.searchsorted(np.flatnonzero(begins), text_ends)
    first_of = np.append(0, before)[: len(texts) + 1]  # [N + 1] number of a text's first unit
    num_units = np.diff(first_of)
    if not num_units.any():
        return np.zeros(0, np.uint64), np.zeros(len(texts), np.int64), num_units

    letters = codes[is_letter]  # [L]
    starts = np.append(np.flatnonzero(begins[is_letter]), len(letters))  # [U + 1]
    letters[starts[:-1]] |= np.uint32(1 << 21)  # above the bits of a character: else "a bc" would be "ab c"
    ordinal = np.arange(len(starts) - 1)  # [U]
    end_of_text = np.repeat(first_of[1:], num_units)
    kept = ordinal + UNITS_IN_SHINGLE <= end_of_text
    kept[first_of[:-1][num_units > 0]] = True
    stops = starts[np.minimum(ordinal + UNITS_IN_SHINGLE, end_of_text)[kept]]
    starts = starts[:-1][kept]

    running = np.zeros(len(letters) + 1, np.uint64)
    np.cumsum(letters * powers(_BASE, len(letters)), out=running[1:])
    hashes = (running[stops] - running[starts]) * powers(_INVERSE, len(letters))[starts]
    hashes ^= hashes >> np.uint64(29)
    hashes *= _MIX
    hashes ^= hashes >> np.uint64(32)
    return hashes, np.where(num_units, np.maximum(num_units - UNITS_IN_SHINGLE + 1, 1), 0), num_units


def unspaced(codes: np.ndarray, text_ends: np.ndarray) -> np.ndarray:
    """[C] bool: characters of scripts without spaces, and all of a text in which these are many."""
    places = np.flatnonzero(codes >= _UNSPACED[0][0])  # in English few, so that the rest costs little
    high = codes[places]
    places = places[np.logical_or.reduce([(high >= first) & (high <= last) for first, last in _UNSPACED])]
    found = np.zeros(len(codes), bool)
    found[places] = True
    num_found = np.diff(np.searchsorted(places, text_ends), prepend=0)  # [N]
    lengths = np.diff(text_ends, prepend=-1)
    found |= np.repeat(num_found >= MANY_UNSPACED * lengths, lengths)
    return found


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
