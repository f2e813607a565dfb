"""Writes and reads the log of a run, one JSON object a line. A line that a kill cut short is skipped."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bertie.errors import FolderError

FILE = "log.jsonl"
BEGINNINGS = ("start", "resume")  # the first events of a process; their step is where it starts


@dataclass
class Log:
    """Appends records; each is in the file at once."""

    folder: Path

    def __enter__(self) -> Self:
        self._file = (self.folder / FILE).open("a+b", buffering=0)
        if self._file.tell():
            self._file.seek(-1, 2)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def write(self, record: Mapping[str, Any]) -> None:
        try:
            self._file.write((json.dumps(record) + "\n").encode())
        except OSError as error:
            hint = "fix that and run it again: it continues from the newest checkpoint"
            raise FolderError(
                f"cannot be written ({error.strerror})", where=str(self.folder / FILE), hint=hint
            ) from None


def read_log(folder: Path) -> Iterator[dict[str, Any]]:
    """All records in the order of writing: steps that were repeated after a kill are there twice."""
    try:
        lines = (folder / FILE).read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def standing_records(folder: Path) -> list[dict[str, Any]]:
    """The records that still hold: what was undone by going back to a checkpoint is left out."""
    standing: list[dict[str, Any]] = []
    for record in read_log(folder):
        if not isinstance(record.get("step"), int):
            continue
        if record.get("event") in BEGINNINGS:
            standing = [one for one in standing if one["step"] <= record["step"]]
        standing.append(record)
    return standing
