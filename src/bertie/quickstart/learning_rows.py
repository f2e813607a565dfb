"""Entries enter; what the stages learn from and search in leaves, as rows of JSON.

One entry in `HELD_OUT` is learned from by nobody but pre-training: classifier and encoder are measured on these.
"""

import json
import random
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from bertie.data.manifest import whole_file
from bertie.quickstart.entry import Entry

Row = dict[str, str]
T = TypeVar("T")

HELD_OUT = 20
MOST_LABELS, FEWEST_ROWS = 16, 20  # groups to tell apart; entries that a group must have for it
SHORTEST = 40  # characters of a text that can be told by its words
LENGTH = 64  # tokens of a text that are read; what is cut is counted by the commands
MOST_IN_GROUP = 300  # entries to search in, the names with the fewest parts first


def documents(entries: Iterable[Entry]) -> Iterator[Row]:
    """One for each module, so that an encoder may learn what stands beside what; of a user's texts each is one."""
    for name, members in groupby(entries, key=lambda entry: entry.name if entry.kind == "text" else entry.source):
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
    """What is told in short, and what belongs to it: the summary and the rest under its name, else the name alone."""
    found = []
    for entry in entries:
        body = f"{entry.words}: {entry.rest}" if entry.words and entry.rest else entry.words or entry.rest
        if body and entry.summary:
            found.append({"text": entry.summary, "other": body})
    return found


def collection(entries: Iterable[Entry]) -> list[Entry]:
    """What is searched in: public names, without the topics of the language."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.kind == "text" or (entry.kind != "topic" and entry.is_public):
            groups[entry.group].append(entry)
    return [
        entry
        for members in groups.values()
        for entry in (members if members[0].kind == "text" else sorted(members, key=num_parts)[:MOST_IN_GROUP])
    ]


def searched(entry: Entry) -> str:
    """The text under which an entry is found, by meaning as by words."""
    return f"{entry.words}: {entry.summary}" if entry.words else entry.text


def num_parts(entry: Entry) -> int:
    return entry.name.count(".")


def learned(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if not is_held_out(entry)]


def held_out(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if is_held_out(entry)]


def is_held_out(entry: Entry) -> bool:
    return zlib.crc32(entry.name.encode()) % HELD_OUT == 0


def shuffled(items: Sequence[T], seed: str) -> list[T]:
    return random.Random(seed).sample(items, len(items))


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    with whole_file(path) as file:
        for row in rows:
            file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
