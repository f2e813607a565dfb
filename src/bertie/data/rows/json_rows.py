"""Reads JSON objects as rows: one object a line, or one list of objects.

Lines are indexed, and parsed when they are read. A list is held in memory as text.
"""

import json
import re
from array import array
from typing import Any, NoReturn

import numpy as np

from bertie.data.rows.file_bytes import FileBytes
from bertie.data.rows.records import Records
from bertie.data.rows.rows import Row, RowError, Rows, spread_numbers
from bertie.errors import InputError
from bertie.text.reading.encodings import wrong_byte
from bertie.text.reading.files import blank_notice

SAMPLE = 100  # rows whose fields are the columns
HALF_PAIR = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
BETWEEN = re.compile(r"[ \t\r\n]*")
LARGE_LIST = 100_000_000  # bytes


class JsonLines(Rows):
    """One object on each line; blank lines are left out. A field that a row does not have is not in its values."""

    def __init__(self, source: FileBytes):
        self.name, self.notices = source.name, []
        self._records = Records(source)
        if self._records.num_blank:
            self.notices.append(blank_notice(self.name, self._records.num_blank))
        self.num_rows = len(self._records)
        self.columns = _fields(self)

    def _read(self, number: int) -> Row:
        where, text = self._records.where(number), self._records.first_line(number)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            what, hint = f"not valid JSON ({json_reason(error)})", "each line must be one JSON object"
            raise RowError(what, where=where, kind="not valid JSON", hint=hint) from None
        return Row(_object(value, text, where), where)


class JsonList(Rows):
    """One list of objects, on as many lines as it likes."""

    def __init__(self, source: FileBytes):
        self.name, self.notices = source.name, []
        self._text = decode_whole(source)
        self._decoder = json.JSONDecoder()
        self._starts, self._lines = self._find_items()
        if source.size > LARGE_LIST:
            self.notices.append(f"{self.name}: the list is held in memory; JSON lines would not be (jq -c '.[]')")
        self.num_rows = len(self._starts)
        self.columns = _fields(self)

    def _read(self, number: int) -> Row:
        where = f"{self.name}:{self._lines[number]}"
        start = int(self._starts[number])
        value, stop = self._decoder.raw_decode(self._text, start)
        return Row(_object(value, self._text[start:stop], where), where)

    def _find_items(self) -> tuple[np.ndarray, np.ndarray]:
        """[N] first character and [N] line of each item."""
        text, starts, lines = self._text, array("q"), array("q")
        place, line = self._after_space(0), 1
        opening, counted = "[", 0
        while text[place : place + 1] == opening:
            place = self._after_space(place + 1)
            if opening == "[" and text[place : place + 1] == "]":
                break
            line += text.count("\n", counted, place)
            counted = place
            starts.append(place)
            lines.append(line)
            try:
                _, place = self._decoder.raw_decode(text, place)
            except (ValueError, RecursionError) as error:
                self._refuse(f"not valid JSON ({json_reason(error)})", place)
            place, opening = self._after_space(place), ","
        if text[place : place + 1] != "]":
            self._refuse("this is not how a list of objects starts, continues or ends", place)
        if rest := text[place + 1 :].strip():
            self._refuse(f"there is something after the list: {rest[:20]!r}", place)
        return np.frombuffer(starts, np.int64), np.frombuffer(lines, np.int64)

    def _after_space(self, place: int) -> int:
        found = BETWEEN.match(self._text, place)
        return found.end() if found else place

    def _refuse(self, what: str, place: int) -> NoReturn:
        line = self._text.count("\n", 0, place) + 1
        raise InputError(what, where=f"{self.name}:{line}", hint="the file must be one list of JSON objects") from None


def decode_whole(source: FileBytes) -> str:
    raw = source.whole()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what, hint = wrong_byte(raw, error)
        raise InputError(what, where=f"{source.name}:{line}", hint=hint) from None


def json_reason(error: Exception) -> str:
    return f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)


def _object(value: Any, text: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        hint = 'each row must be an object: {"text": ..., "label": ...}'
        raise RowError(
            f"the row is {type(value).__name__}, not an object", where=where, kind="not an object", hint=hint
        )
    if HALF_PAIR.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            what = "the row has half a surrogate pair (\\ud800 to \\udfff)"
            raise RowError(what, where=where, kind="half a surrogate pair", hint="fix or remove it") from None
    return value


def _fields(rows: Rows) -> tuple[str, ...]:
    """The fields of a sample in the order of their first mention. Where no row is good, the file is of another kind."""
    fields: dict[str, None] = {}
    first_error: RowError | None = None
    for number in spread_numbers(rows.num_rows, SAMPLE):
        try:
            fields.update(dict.fromkeys(rows.row(number).values))
        except RowError as error:
            first_error = first_error or error
    if first_error is not None and not fields:
        raise first_error
    return tuple(fields)
