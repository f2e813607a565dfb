"""Turns texts into entries, and entries into rows to learn from and to search in.

An entry is a text with a name and a summary: a docstring, or a document of a user's files. One in `HELD_OUT` is kept
back to measure on.
"""

import json
import os
import random
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from bertie.disk import atomic_file
from bertie.errors import FolderError, InputError
from bertie.text.reading.documents import DocumentOptions, slices
from bertie.text.sentences import split_sentences

Row = dict[str, str]
T = TypeVar("T")

LONGEST_SUMMARY = 300  # characters; of a longer paragraph, the first sentence is the summary
FEWEST = 20  # documents needed to learn anything
FEWEST_WORDS = 4  # that a text needs to be split into halves; characters where there are no spaces
HELD_OUT, FEWEST_HELD_OUT = 20, 10  # one entry in so many; at least so many, but never more than a quarter
MOST_IN_GROUP = 300  # entries to search in, the names with the fewest parts first

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # Dict|Reader, HTTP|Server


@dataclass(frozen=True)
class Entry:
    name: str  # csv.DictReader; of a user's text its title, or its file and line
    group: str  # csv; the file
    source: str  # the module, the file
    kind: str  # module, class, function, topic; of a user's text: titled or text
    summary: str
    rest: str  # what follows, one paragraph per line; may be empty

    @property
    def is_own(self) -> bool:
        """Whether it is a user's text."""
        return self.kind in ("titled", "text")

    @property
    def words(self) -> str:
        """The name as words: "csv.DictReader" -> "csv dict reader". A file and a line have none."""
        if self.is_own:
            return self.name if self.kind == "titled" else ""
        return " ".join(_HUMP.sub(" ", self.name).replace(".", " ").replace("_", " ").lower().split())

    @property
    def text(self) -> str:
        return f"{self.summary}\n{self.rest}" if self.rest else self.summary

    @property
    def named_text(self) -> str:
        """The whole text after the words of its name."""
        return f"{self.words}: {self.text}" if self.words else self.text

    @property
    def search_text(self) -> str:
        """What is searched for this entry, by meaning as by words: name and summary; all of a user's text."""
        if self.is_own:
            return self.named_text
        return f"{self.words}: {self.summary}" if self.words else self.text

    @property
    def is_public(self) -> bool:
        return is_public(self.name)

    @property
    def pair(self) -> Row | None:
        """Two texts that belong together: the summary, and the rest under its name, or else the name alone; of a single
        sentence its two halves. None where there is hardly a word."""
        body = f"{self.words}: {self.rest}" if self.words and self.rest else self.words or self.rest
        summary, body = (self.summary, body) if body else halves(self.summary)
        return {"text": summary, "other": body} if summary and body else None


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def split_summary(paragraphs: list[str]) -> tuple[str, str]:
    """Returns the summary and the rest, one paragraph per line."""
    if not paragraphs:
        return "", ""
    first, *others = paragraphs
    if len(first) > LONGEST_SUMMARY and (end := _SENTENCE_END.search(first)):
        first, others = first[: end.start()], [first[end.end() :], *others]
    return first, "\n".join(others)


def halves(text: str) -> tuple[str, str]:
    """The second half is empty where the text is too short."""
    words, between = (text.split(), " ") if " " in text else (list(text), "")
    if len(words) < FEWEST_WORDS or (text.isascii() and not between):
        return text, ""
    middle = len(words) // 2
    return between.join(words[:middle]), between.join(words[middle:])


def format_characters(entries: Iterable[Entry]) -> str:
    count = sum(len(entry.text) for entry in entries)
    return f"{count / 1e6:.1f} million" if count >= 1e6 else f"{count:,}"


def own_entries(files: Sequence[str], language: str, notices: list[str]) -> list[Entry]:
    """Turns a user's files into entries: paragraphs of txt files, or lines where there are hardly any blank lines."""
    entries = list(_read_own(files, DocumentOptions(), language, notices))
    if len(entries) < FEWEST:
        by_line = list(_read_own(files, DocumentOptions(boundary="line"), language, []))
        if len(by_line) > len(entries):
            notices.append("there are hardly any blank lines, so each line is a document")
            entries = by_line
    num_short = sum(entry.pair is None for entry in entries)
    if (count := len(entries) - num_short) < FEWEST:
        besides = f", and {num_short} of hardly a word" if num_short else ""
        hint = f"give more text: at least {FEWEST} paragraphs or lines"
        raise InputError(f"there are only {count} texts to learn from{besides}", where=", ".join(files), hint=hint)
    if num_short:
        notices.append(f"{num_short:,} texts of hardly a word can be found, but nothing is learned from them")
    return entries


def _read_own(files: Sequence[str], options: DocumentOptions, language: str, notices: list[str]) -> Iterator[Entry]:
    found = slices(files, options, on_event=lambda event: notices.append(event.message))
    documents = [document for one in found for document in one.read()]
    sources = [document.where.rpartition(":")[0] for document in documents]
    above = os.path.commonpath([Path(source).parent for source in sources]) if sources else ""
    for document, source in zip(documents, sources, strict=True):
        paragraphs = [line.strip() for line in document.text.splitlines() if line.strip()]
        titled = document.name != document.where
        if titled and len(paragraphs) > 1 and paragraphs[0] == document.name:
            del paragraphs[0]  # the title again, as in dumps of Wikipedia
        if paragraphs:
            first, *others = split_sentences(paragraphs[0], language)
            rest = "\n".join(part for part in ("".join(others).strip(), *paragraphs[1:]) if part)
            name = document.name if titled else os.path.relpath(document.where, above)
            kind = "titled" if titled else "text"
            yield Entry(name, os.path.relpath(source, above), source, kind, first.strip(), rest)


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    write_rows(path, (asdict(entry) for entry in entries))


def read_entries(path: Path) -> list[Entry]:
    try:
        return [Entry(**row) for row in read_rows(path)]
    except (OSError, ValueError, TypeError) as error:
        raise FolderError(f"cannot be read ({error})", where=str(path), hint="remove it, and run again") from None


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    with atomic_file(path) as file:
        for row in rows:
            file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def documents(entries: Iterable[Entry]) -> Iterator[Row]:
    """One document per module, so that pre-training sees what belongs together; a user's text is one by itself."""
    for name, members in groupby(entries, key=lambda entry: entry.name if entry.is_own else entry.source):
        yield {"name": name, "text": "\n".join(entry.named_text for entry in members)}


def train_pairs(entries: Sequence[Entry]) -> list[Row]:
    """Shuffled, but those of the entries that are searched first: there may be no time for all."""
    usable = [entry for entry in entries if entry.pair is not None]
    kept, searched = _held_out_numbers(usable), {entry.name for entry in collection(entries).entries}
    chosen = shuffled([entry for number, entry in enumerate(usable) if number not in kept])
    return [pair for entry in sorted(chosen, key=lambda entry: entry.name not in searched) if (pair := entry.pair)]


def held_out_pairs(entries: Sequence[Entry]) -> list[Row]:
    usable = [entry for entry in entries if entry.pair is not None]
    return shuffled([pair for number in sorted(_held_out_numbers(usable)) if (pair := usable[number].pair)])


def _held_out_numbers(entries: Sequence[Entry]) -> set[int]:
    """Chosen by a checksum of the name, so that the order of the entries does not matter."""
    count = max(len(entries) // HELD_OUT, min(FEWEST_HELD_OUT, len(entries) // 4))
    drawn = sorted(range(len(entries)), key=lambda number: zlib.crc32(entries[number].name.encode()))
    return set(drawn[:count])


def shuffled(items: Sequence[T], seed: str = "pairs") -> list[T]:
    return random.Random(seed).sample(items, len(items))


@dataclass(frozen=True)
class Collection:
    """The entries to search in, and how many were left out, by reason."""

    entries: list[Entry]
    left_out: dict[str, int]


def collection(entries: Iterable[Entry]) -> Collection:
    """Keeps public names, without the topics of the language."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    for entry in entries:
        if entry.is_own or (entry.kind != "topic" and entry.is_public):
            groups[entry.group].append(entry)
        else:
            left_out["topics of the language" if entry.kind == "topic" else "with private names"] += 1
    found = []
    for members in groups.values():
        own = members[0].is_own
        kept = members if own else sorted(members, key=lambda entry: entry.name.count("."))[:MOST_IN_GROUP]
        left_out[f"beyond the first {MOST_IN_GROUP} of a package"] += len(members) - len(kept)
        found += kept
    return Collection(found, {reason: count for reason, count in left_out.items() if count})
