"""Entries enter; what the stages learn from and search in leaves, as rows of JSON.

Of what a classifier or an encoder is to learn from, one entry in `HELD_OUT` is kept to measure it on.
"""

import json
import random
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from bertie.data.manifest import whole_file
from bertie.quickstart.entry import Entry

Row = dict[str, str]
T = TypeVar("T")

HELD_OUT, FEWEST_HELD_OUT = 20, 10  # one entry in so many; at least so many, but never more than a quarter
MOST_LABELS, FEWEST_ROWS = 16, 20  # groups to tell apart; entries that a group must have for it
SHORTEST = 40  # characters of a text that can be told by its words
LENGTH = 64  # tokens of a text that are read; what is cut is counted by the commands
MOST_IN_GROUP = 300  # entries to search in, the names with the fewest parts first
SHORTEST_HALVES = 4  # words, or signs where there are no spaces, of a text that has two halves


def documents(entries: Iterable[Entry]) -> Iterator[Row]:
    """One for each module, so that an encoder may learn what stands beside what; of a user's texts each is one."""
    for name, members in groupby(entries, key=lambda entry: entry.name if entry.is_own else entry.source):
        yield {"name": name, "text": "\n".join(named(entry) for entry in members)}


def named(entry: Entry) -> str:
    """The whole text, after the words of its name."""
    return f"{entry.words}: {entry.text}" if entry.words else entry.text


def labelled(entries: Iterable[Entry], num_rows: int) -> tuple[list[Row], list[Row]]:
    """Rows to learn from and to be measured on: which group is a text from? As many of each of the largest groups.

    Empty where there are no two groups."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if len(entry.text) >= SHORTEST and entry.kind != "topic":
            groups[entry.group].append(entry)
    largest = sorted(groups, key=lambda name: (-len(groups[name]), name))[:MOST_LABELS]
    chosen = [name for name in largest if len(groups[name]) >= FEWEST_ROWS]
    if len(chosen) < 2:
        return [], []
    smallest = min(len(learned(groups[name])) for name in chosen)
    count = max(1, min(num_rows // len(chosen), smallest))
    rows = {
        part: [
            {"text": entry.text, "label": name}
            for name in chosen
            for entry in shuffled(choose(groups[name]), name)[: count if part == "train" else max(1, count // 4)]
        ]
        for part, choose in (("train", learned), ("dev", held_out))
    }
    return shuffled(rows["train"], "train"), shuffled(rows["dev"], "dev")


def pairs(entries: Iterable[Entry]) -> list[Row]:
    return [pair for entry in entries if (pair := pair_of(entry)) is not None]


def pair_of(entry: Entry) -> Row | None:
    """What is told in short, and what belongs to it: the summary and the rest under its name, else the name alone; of a
    single sentence the two halves."""
    body = f"{entry.words}: {entry.rest}" if entry.words and entry.rest else entry.words or entry.rest
    summary, body = (entry.summary, body) if body else halves(entry.summary)
    return {"text": summary, "other": body} if summary and body else None


def halves(text: str) -> tuple[str, str]:
    """The second one is empty where there is hardly anything."""
    words, between = (text.split(), " ") if " " in text else (list(text), "")
    if len(words) < SHORTEST_HALVES or (text.isascii() and not between):
        return text, ""
    middle = len(words) // 2
    return between.join(words[:middle]), between.join(words[middle:])


@dataclass(frozen=True)
class Collection:
    """What is searched in, and what is not."""

    entries: list[Entry]
    left_out: dict[str, int]


def collection(entries: Iterable[Entry]) -> Collection:
    """Public names, without the topics of the language."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    for entry in entries:
        if entry.is_own or (entry.kind != "topic" and entry.is_public):
            groups[entry.group].append(entry)
        else:
            left_out["topics of the language" if entry.kind == "topic" else "under private names"] += 1
    found = []
    for members in groups.values():
        shown = members if members[0].is_own else sorted(members, key=num_parts)[:MOST_IN_GROUP]
        left_out[f"beyond the first {MOST_IN_GROUP} of a package"] += len(members) - len(shown)
        found += shown
    return Collection(found, {what: count for what, count in left_out.items() if count})


def searched(entry: Entry) -> str:
    """The text under which an entry is found, by meaning as by words."""
    if entry.is_own:
        return named(entry)
    return f"{entry.words}: {entry.summary}" if entry.words else entry.text


def num_parts(entry: Entry) -> int:
    return entry.name.count(".")


def learned(entries: Sequence[Entry]) -> list[Entry]:
    kept = numbers_held_out(entries)
    return [entry for number, entry in enumerate(entries) if number not in kept]


def held_out(entries: Sequence[Entry]) -> list[Entry]:
    kept = numbers_held_out(entries)
    return [entry for number, entry in enumerate(entries) if number in kept]


def numbers_held_out(entries: Sequence[Entry]) -> set[int]:
    """By their names, in no order that means anything."""
    count = max(len(entries) // HELD_OUT, min(FEWEST_HELD_OUT, len(entries) // 4))
    drawn = sorted(range(len(entries)), key=lambda number: zlib.crc32(entries[number].name.encode()))
    return set(drawn[:count])


def shuffled(items: Sequence[T], seed: str) -> list[T]:
    return random.Random(seed).sample(items, len(items))


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    with whole_file(path) as file:
        for row in rows:
            file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
