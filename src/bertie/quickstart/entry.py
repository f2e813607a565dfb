"""Entries: texts with a name and a summary. They are what is learned from, sorted into groups, and found again."""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from bertie.data.manifest import whole_file
from bertie.errors import FolderError

LONGEST_SUMMARY = 300  # characters; of a longer paragraph the first sentence is the summary

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # Dict|Reader, HTTP|Server


@dataclass(frozen=True)
class Entry:
    name: str  # csv.DictReader; of a user's text its title, or its file and line
    group: str  # csv; the file
    source: str  # the module, the file
    kind: str  # module, class, function, topic; of a user's text: titled or text
    summary: str
    rest: str  # what follows, a paragraph a line; may be empty

    @property
    def is_own(self) -> bool:
        """A user's text."""
        return self.kind in ("titled", "text")

    @property
    def words(self) -> str:
        """The name as words; a file and a line say nothing."""
        if self.kind == "titled":
            return self.name
        return "" if self.kind == "text" else words_of(self.name)

    @property
    def text(self) -> str:
        return f"{self.summary}\n{self.rest}" if self.rest else self.summary

    @property
    def is_public(self) -> bool:
        return is_public(self.name)


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def characters_told(entries: Iterable[Entry]) -> str:
    """How much text it is."""
    count = sum(len(entry.text) for entry in entries)
    return f"{count / 1e6:.1f} million" if count >= 1e6 else f"{count:,}"


def words_of(name: str) -> str:
    """ "csv.DictReader" -> "csv dict reader"."""
    return " ".join(_HUMP.sub(" ", name).replace(".", " ").replace("_", " ").lower().split())


def split_summary(paragraphs: list[str]) -> tuple[str, str]:
    """The summary, and the rest: a paragraph a line."""
    if not paragraphs:
        return "", ""
    first, *others = paragraphs
    if len(first) > LONGEST_SUMMARY and (end := _SENTENCE_END.search(first)):
        first, others = first[: end.start()], [first[end.end() :], *others]
    return first, "\n".join(others)


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    with whole_file(path) as file:
        for entry in entries:
            file.write((json.dumps(asdict(entry), ensure_ascii=False) + "\n").encode())


def read_entries(path: Path) -> list[Entry]:
    try:
        with path.open(encoding="utf-8") as lines:
            return [Entry(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError) as error:
        raise FolderError(f"cannot be read ({error})", where=str(path), hint="remove it, and run again") from None
