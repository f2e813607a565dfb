"""Guesses the kind of a labelled file, and what separates its cells, from its beginning."""

import csv
import json
import re
from collections.abc import Sequence
from itertools import pairwise

from bertie.data.rows.conll_rows import MARK
from bertie.data.rows.label_lines import PREFIX

LONGEST_WORD = 40  # characters of a cell in a file of words
LONGEST_SENTENCE = 200  # words, on average: a table with a stray blank line has longer ones
RARE = 0.01  # share of lines that may be wrong: they are reported when they are read
SPAN_TAG = re.compile(r"O|[BIESMLU](-\S+)?")
# Tags of other kinds: capitals, digits and signs, as NNP, PRP$, NOUN, ``, B_PER; and the small letters of Chinese ones.
CAPITALS = re.compile(r"[A-Z!-/:-@[-`{-~][A-Z0-9!-/:-@[-`{-~]*")
CHINESE_POS = re.compile(r"[abcdmnpqrtuv][dghijlnqrstvxz]?|[efhijklosxyz]|w[ps]?")
MOST_TAGS = 100
TAG_REPEATS = 2  # words for each different tag, at least
TREC_LABEL = re.compile(r"[A-Z]{2,}:[A-Za-z]+")
DELIMITERS = (",", ";", "\t", "|")
SAMPLE_LINES = 200
LABEL_REPEATS = 5  # lines for each different label, at least


def sniff_format(head: bytes, is_whole: bool) -> str | None:
    """`is_whole`: the file is no longer than `head`."""
    text, lines = _lines(head, is_whole)
    start = text.lstrip()
    if start[:1] == "[" and start[1:].lstrip()[:1] in ("{", "]"):
        return "json"
    filled = [line for line in lines if line.strip()]
    first = filled[0] if filled else ""
    if start[:1] == "{":
        return "squad" if '"data"' in text and '"paragraphs"' in text else "jsonl" if _is_object(first) else None
    if first and sum(not line.startswith(PREFIX) for line in filled) <= RARE * len(filled):
        return "label-prefix"
    if (table := _words_in_columns(lines)) and _has_tags(*table):
        return "conll"
    if "\t" in first:
        return "tsv"
    return "label-text" if _starts_with_labels(filled) else None


def may_be_conll(head: bytes, is_whole: bool) -> bool:
    """Whether the lines look like words in columns, whatever the last one holds."""
    return _words_in_columns(_lines(head, is_whole)[1]) is not None


def sniff_delimiter(head: bytes, is_whole: bool) -> str:
    """What separates the cells of a csv file. It is a comma, unless rows have no comma in common but another sign."""
    lines = [line for line in _lines(head, is_whole)[1] if line.strip()][:SAMPLE_LINES]
    widths = {sign: _num_cells(lines, sign) for sign in DELIMITERS}
    comma, *others = DELIMITERS
    best = max(others, key=lambda sign: widths[sign])
    return best if widths[comma] < 2 <= widths[best] else comma


def _num_cells(lines: Sequence[str], delimiter: str) -> int:
    """The cells of the first line, if all other lines have as many; else 0. A line inside a quoted cell has fewer."""
    try:
        widths = [len(cells) for cells in csv.reader(lines, delimiter=delimiter)]
    except csv.Error:
        return 0
    return widths[0] if widths and sum(width != widths[0] for width in widths) <= RARE * len(widths) else 0


def _lines(head: bytes, is_whole: bool) -> tuple[str, list[str]]:
    text = head.decode("utf-8-sig", errors="replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return text, lines if is_whole else lines[:-1]  # the last one may be cut


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _words_in_columns(lines: Sequence[str]) -> tuple[list[list[str]], int] | None:
    """The cells of the words, and the number of sentences. Blank lines end sentences; every line has the same number
    of cells, each one word or tag."""
    numbers = [number for number, line in enumerate(lines) if line.strip() and not line.startswith(MARK)]
    if not numbers:
        return None
    num_sentences = 1 + sum(second > first + 1 for first, second in pairwise(numbers))
    separator = "\t" if "\t" in lines[numbers[0]] else " "
    words = [[cell for cell in lines[number].split(separator) if cell] for number in numbers]
    width = len(words[0])
    fitting = [cells for cells in words if len(cells) == width and max(map(len, cells)) <= LONGEST_WORD]
    fitting = [cells for cells in fitting if not any(" " in cell.strip() for cell in cells)]
    if width < 2 or len(words) - len(fitting) > RARE * len(words) or len(words) > LONGEST_SENTENCE * num_sentences:
        return None
    return fitting, num_sentences


def _has_tags(words: Sequence[Sequence[str]], num_sentences: int) -> bool:
    """Whether the last column holds tags. Those of spans cannot be mistaken; others are few, and repeat."""
    tags = [cells[-1] for cells in words]
    different = set(tags)
    if all(map(SPAN_TAG.fullmatch, different)):
        return num_sentences > 1 or any("-" in tag for tag in different)
    if num_sentences < 2 or len(words) < 2 * num_sentences:  # sentences, one a line
        return False
    few = len(different) <= min(MOST_TAGS, len(tags) // TAG_REPEATS)
    return few and any(all(map(tag.fullmatch, different)) for tag in (CAPITALS, CHINESE_POS))


def _starts_with_labels(lines: Sequence[str]) -> bool:
    """Labels as in TREC, "DESC:manner How did serfdom develop ?". Other labels cannot be distinguished from words."""
    labels = [line.split(maxsplit=1)[0] for line in lines]
    different = set(labels)
    return 1 < len(different) <= len(labels) / LABEL_REPEATS and all(map(TREC_LABEL.fullmatch, different))
