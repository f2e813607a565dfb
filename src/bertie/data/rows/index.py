"""Finds where the records of a text file start: an `Index` has eight bytes a record.

A newline ends a record where the number of quotes before it is even (RFC 4180), or, without quoting, always.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bertie.data.rows.file_bytes import FileBytes

NEWLINE, QUOTE = ord("\n"), ord('"')
LONGEST_BLANK = 1000  # a line of more white space than this is no slip: let it be read and refused


@dataclass(frozen=True)
class Index:
    starts: np.ndarray  # [N + 1] int64, the first byte of each record; then the file's size
    # Lines before a record that begin no record, where their number changes: [J] record, [J] lines.
    jumps: np.ndarray
    surplus: np.ndarray
    num_blank: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    def line(self, number: int) -> int:
        """The line where a record begins, from 1."""
        jump = int(self.jumps.searchsorted(number, side="right")) - 1
        return number + 1 + (int(self.surplus[jump]) if jump >= 0 else 0)


def build_index(
    source: FileBytes, *, quoted: bool, spaces: bytes, paragraphs: bool = False, keep_blank: bool = False
) -> Index:
    """Lines of nothing but `spaces` are blank: they are left out, unless they are kept. With `paragraphs` only they
    end a record."""
    starts, jumps, surplus = array("q"), array("q"), array("q")
    num_blank, last_line, last_surplus = 0, -1, 0
    for block in record_blocks(source, quoted, None if keep_blank else spaces):
        num_blank += block.num_blank
        if len(block.lines) == 0:
            continue
        begins: np.ndarray | slice = np.diff(block.lines, prepend=last_line) > 1 if paragraphs else slice(None)
        last_line = int(block.lines[-1])
        lines = block.lines[begins]
        found = lines - 1 - np.arange(len(starts), len(starts) + len(lines))
        changes = np.flatnonzero(np.diff(found, prepend=last_surplus))
        jumps.frombytes((changes + len(starts)).tobytes())
        surplus.frombytes(found[changes].tobytes())
        starts.frombytes(block.starts[begins].tobytes())
        last_surplus = int(found[-1]) if len(found) else last_surplus
    starts.append(source.size)
    places, changed, lines_before = (np.frombuffer(values, np.int64) for values in (starts, jumps, surplus))
    return Index(places, changed, lines_before, num_blank)


class Block(NamedTuple):
    """Records that ended in one block."""

    starts: np.ndarray  # [n] int64
    lines: np.ndarray  # [n] int64, from 1
    num_blank: int


def record_blocks(source: FileBytes, quoted: bool, spaces: bytes | None) -> Iterator[Block]:
    """`spaces` make a line blank; None: no line is."""
    is_space = np.zeros(256, bool)
    is_space[list(spaces or b"")] = True
    start, line = source.begin, 1  # of the record that is still open
    num_newlines = num_quotes = 0
    for base, content in source.blocks():
        block = np.frombuffer(content, np.uint8)
        newlines = np.flatnonzero(block == NEWLINE)
        ending = np.arange(len(newlines))  # which newlines end a record
        if quoted:
            quotes = np.flatnonzero(block == QUOTE)
            ending = np.flatnonzero((num_quotes + np.searchsorted(quotes, newlines)) % 2 == 0)
            num_quotes += len(quotes)
        if len(ending):
            ends = base + newlines[ending]
            starts = np.concatenate([[start], ends[:-1] + 1])
            lines = np.concatenate([[line], num_newlines + ending[:-1] + 2])
            is_suspect = is_space[block[np.maximum(starts - base, 0)]] | (starts < base)
            is_kept = ~_blank(source, starts, ends, is_suspect, spaces)
            start, line = int(ends[-1]) + 1, num_newlines + int(ending[-1]) + 2
            yield Block(starts[is_kept], lines[is_kept], len(ends) - int(is_kept.sum()))
        num_newlines += len(newlines)
    if start < source.size:  # the last line has no newline, or a quote is not closed
        starts, ends = np.array([start]), np.array([source.size])
        is_kept = ~_blank(source, starts, ends, np.array([True]), spaces)
        yield Block(starts[is_kept], np.array([line])[is_kept], 1 - int(is_kept.sum()))


def _blank(
    source: FileBytes, starts: np.ndarray, ends: np.ndarray, is_suspect: np.ndarray, spaces: bytes | None
) -> np.ndarray:
    """[n] bool. Few lines begin with a space, so that those can be read one by one."""
    if spaces is None:
        return np.zeros(len(starts), np.bool_)
    blank: np.ndarray = starts == ends
    for number in np.flatnonzero(is_suspect & ~blank & (ends - starts <= LONGEST_BLANK)):
        blank[number] = not source.read(int(starts[number]), int(ends[number])).strip(spaces)
    return blank
