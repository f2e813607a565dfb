"""Reads words in columns: one word a line, one cell for each column, a blank line after each sentence. A row is a
sentence, with a list of cells for each column."""

from itertools import dropwhile

import numpy as np

from bertie.data.rows.file_bytes import FileBytes
from bertie.data.rows.records import SPACES, Records
from bertie.data.rows.rows import Row, RowError, Rows

MARK = "-DOCSTART-"  # begins a document; its line holds no word


class ConllRows(Rows):
    """The first column is called "words", the last "tags", any other by its number."""

    def __init__(self, source: FileBytes):
        self.name, self.notices = source.name, []
        self._records = Records(source, paragraphs=True)
        self.num_marks = 0
        self._sentences = self._find_sentences(source)
        first = self._words(self._sentences[0])[0][1] if len(self._sentences) else ""
        self._separator = "\t" if "\t" in first else " "
        self.columns = column_names(len(self._split(first)) if first else 0)
        if self.num_marks:
            self.notices.append(f"{self.name}: {self.num_marks:,} {MARK} lines are left out")
        if len(self.columns) > 1:
            named = f"of {len(self.columns)} columns the first is called 'words', the last 'tags'"
            self.notices.append(f"{self.name}: {named}")
        self.num_rows = len(self._sentences)

    def _read(self, number: int) -> Row:
        lines = self._words(self._sentences[number])
        words = []
        for line, text in lines:
            cells = self._split(text)
            if len(cells) != len(self.columns):
                what = f"the line has {len(cells)} columns, not {len(self.columns)}"
                hint = "every word has the columns of the first one; a blank line ends a sentence"
                where = f"{self.name}:{line}"
                raise RowError(what, where=where, kind="wrong number of columns", hint=hint)
            words.append(cells)
        columns = [list(column) for column in zip(*words, strict=True)]
        return Row(dict(zip(self.columns, columns, strict=True)), f"{self.name}:{lines[0][0]}")

    def _find_sentences(self, source: FileBytes) -> np.ndarray:
        """[N] records that hold words. A mark may be a record of its own, or stand directly above a sentence."""
        has_words = np.ones(len(self._records), bool)
        for record in range(len(self._records)):
            start = self._records.start(record)
            if source.read(start, min(start + len(MARK), source.size)) == MARK.encode():
                lines, words = self._lines(record), self._words(record)
                self.num_marks += len(lines) - len(words)
                has_words[record] = bool(words)
        return np.flatnonzero(has_words)

    def _words(self, record: int) -> list[tuple[int, str]]:
        return list(dropwhile(lambda line: line[1].startswith(MARK), self._lines(record)))

    def _lines(self, record: int) -> list[tuple[int, str]]:
        """The lines of a record with their numbers, without the blank ones after it."""
        lines = enumerate(self._records.text(record).split("\n"), self._records.line(record))
        return [(line, text.removesuffix("\r")) for line, text in lines if text.strip(SPACES.decode())]

    def _split(self, line: str) -> list[str]:
        if self._separator == "\t":
            return line.split("\t")
        return [cell for cell in line.split(" ") if cell]


def column_names(num_columns: int) -> tuple[str, ...]:
    names = ["words", *(f"column{number}" for number in range(2, num_columns + 1))][:num_columns]
    if num_columns > 1:
        names[-1] = "tags"
    return tuple(names)
