"""Splits a sentence into consecutive chunks: words that a segmenter found, and runs of other text.

Only words written with ideographs come from the segmenter. Everything else (Latin, kana, hangul, numbers, single
ideographs) stays in runs whose words follow from the tokenizer's pieces. A boundary is only next to an ideograph,
or at white space or plain punctuation next to such a word, and never before a combining mark. A tokenizer that isolates
ideographs therefore gives the same tokens for the chunks, one after another, as for the whole sentence;
`keeps_chunks` checks whether it does, and `word_tokens` finds the words of those that do not.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from bertie.text.segmenters import IDEOGRAPHS, Segmenter
from bertie.text.tokenizers.tokenizer import Tokenizer

_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_LATIN = re.compile("[A-Za-z0-9]")
_UNIT = re.compile(f"[{IDEOGRAPHS}A-Za-z0-9]+")
# Next to these a word may also begin or end with a Latin letter or a digit: every tokenizer that isolates ideographs
# cuts there too. Form feeds and their like are not among them: to a tokenizer they are control characters.
_PUNCTUATION = r"!-/:-@\[-`{-~\u2010-\u2027\u3001-\u3003\u3008-\u3011\u3014-\u301f"
_PUNCTUATION += r"\uff01-\uff03\uff05-\uff0a\uff0c-\uff0f\uff1a\uff1b\uff1f\uff20"
_EDGE = re.compile(rf"[ \t\n\r\u3000{IDEOGRAPHS}{_PUNCTUATION}]")
_MARKED = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))  # the planes that have combining marks
# The first bytes in UTF-8 that an ideograph can have: looking for bytes is many times faster than matching a class.
_FIRST_BYTES = tuple(bytes([byte]) for byte in (*range(0xE3, 0xEA), 0xEF, 0xF0))

_OTHER, _PURE, _MIXED = 0, 1, 2  # left to the pieces; ideographs alone; with Latin letters or digits: "IC卡"
_scripts: dict[str, int] = {}
MOST_KEPT = 200_000


class Chunk(NamedTuple):
    """A part of a sentence. The tokens of a word (`is_word`) belong together; in a run, words follow from the pieces,
    and every ideograph is a word of its own."""

    text: str
    is_word: bool


@dataclass(frozen=True)
class Chunks:
    """The chunks of many sentences, one after another."""

    texts: list[str]  # [C]
    is_word: np.ndarray  # [C] bool
    counts: np.ndarray  # [S] int64, chunks of each sentence; 0 for an empty sentence


def chunk(sentence: str, segmenter: Segmenter | None) -> list[Chunk]:
    """The sentence as consecutive chunks, none of them empty."""
    chunks = chunk_all([sentence], segmenter)
    return [Chunk(text, is_word) for text, is_word in zip(chunks.texts, chunks.is_word.tolist(), strict=True)]


def chunk_all(sentences: Iterable[str], segmenter: Segmenter | None) -> Chunks:
    """`chunk` for bulk work: the texts can be given to `Tokenizer.encode_pieces` as they are."""
    texts: list[str] = []
    flags = bytearray()
    counts: list[int] = []
    for sentence in sentences:
        before = len(texts)
        if segmenter is not None and not sentence.isascii() and has_ideographs(sentence):
            _add_chunks(sentence, segmenter.cut(sentence), texts, flags)
        elif sentence:
            texts.append(sentence)
            flags.append(0)
        counts.append(len(texts) - before)
    return Chunks(texts, np.frombuffer(bytes(flags), dtype=np.bool_), np.array(counts, dtype=np.int64))


def has_ideographs(sentence: str) -> bool:
    encoded = sentence.encode("utf-8", "surrogatepass")
    return any(byte in encoded for byte in _FIRST_BYTES) and _IDEOGRAPH.search(sentence) is not None


@cache
def _marks() -> frozenset[str]:
    return frozenset(mark for mark in map(chr, _MARKED) if unicodedata.category(mark).startswith("M"))


def keeps_chunks(tokenizer: Tokenizer) -> bool:
    """Whether chunks have the tokens of the whole: where ideographs are isolated. Pieces of other kinds join across
    any boundary, or carry the space before them."""
    if tokenizer.kind not in ("wordpiece", "characters"):
        return False
    parts = [["a", "语言", "b"], ["使用", "模型", " x y"], ["t恤", "，", "预测"], ["が", "日本", "ガ"]]
    wholes = tokenizer.encode_pieces(["".join(chunks) for chunks in parts])
    pieces = tokenizer.encode_pieces([text for chunks in parts for text in chunks])
    return bool(np.array_equal(wholes.ids, pieces.ids))


def _add_chunks(sentence: str, words: list[str], texts: list[str], flags: bytearray) -> None:
    """Append the chunks of a sentence that the segmenter cut into `words`.

    A word of one ideograph stays in the run: its token begins a word and ends it without help.
    """
    marked = not _marks().isdisjoint(sentence)
    run = place = 0  # where the open run began, and where the next word begins
    for word in words:
        start, place = place, place + len(word)
        script = _scripts[word] if word in _scripts else _script(word)
        if script and ((script is _PURE and not marked) or _stands_alone(sentence, start, place)):
            if run < start:
                texts.append(sentence[run:start])
                flags.append(0)
            texts.append(word)
            flags.append(1)
            run = place
    if run < place:
        texts.append(sentence[run:])
        flags.append(0)


def _script(word: str) -> int:
    """How a word is written, kept for the next time: most words come often."""
    if len(_scripts) >= MOST_KEPT:
        _scripts.clear()
    if len(word) < 2 or not _UNIT.fullmatch(word) or not _IDEOGRAPH.search(word):
        script = _OTHER
    else:
        script = _MIXED if _LATIN.search(word) else _PURE
    _scripts[word] = script
    return script


def _stands_alone(sentence: str, start: int, end: int) -> bool:
    """Whether a tokenizer that isolates ideographs gives sentence[start:end] the same tokens alone as in its place."""
    if start and _LATIN.match(sentence[start]) and not _EDGE.match(sentence[start - 1]):
        return False
    if end == len(sentence):
        return True
    if _LATIN.match(sentence[end - 1]) and not _EDGE.match(sentence[end]):
        return False
    return sentence[end] not in _marks()
