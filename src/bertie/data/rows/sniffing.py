"""Guesses the kind of a labelled file from its beginning."""

import json
from itertools import pairwise

from bertie.data.rows.conll_rows import MARK

HEAD = 1 << 16  # bytes
LONGEST_WORD = 40  # characters of a cell in a file of words
LONGEST_SENTENCE = 200  # words, on average: a table with a stray blank line has longer ones


def sniff_format(head: bytes, is_whole: bool) -> str | None:
    """`is_whole`: the file is no longer than `head`."""
    text = head.decode("utf-8-sig", errors="replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if not is_whole:
        lines.pop()  # it may be cut
    start = text.lstrip()
    if start[:1] == "[" and start[1:].lstrip()[:1] in ("{", "]"):
        return "json"
    first = next((line for line in lines if line.strip()), "")
    if start[:1] == "{":
        return "squad" if '"data"' in text and '"paragraphs"' in text else "jsonl" if _is_object(first) else None
    if _is_conll(lines):
        return "conll"
    return "tsv" if "\t" in first else None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _is_conll(lines: list[str]) -> bool:
    """Sentences with blank lines between them; every line has the same number of cells, each one word or tag."""
    numbers = [number for number, line in enumerate(lines) if line.strip() and not line.startswith(MARK)]
    if not numbers:
        return False
    num_sentences = 1 + sum(second > first + 1 for first, second in pairwise(numbers))
    separator = "\t" if "\t" in lines[numbers[0]] else " "
    words = [[cell for cell in lines[number].split(separator) if cell] for number in numbers]
    return (
        num_sentences > 1
        and len(words) <= LONGEST_SENTENCE * num_sentences
        and len(words[0]) > 1
        and all(len(cells) == len(words[0]) for cells in words)
        and all(len(cell) <= LONGEST_WORD and " " not in cell.strip() for cells in words for cell in cells)
    )
