"""Keeps what a build has finished: a file of lines, a checksum and JSON, one after each finished work, that survives a
kill at any moment, and the lock that keeps a second build out of the folder."""

import json
import os
import shutil
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from bertie.data.manifest import BUILD_FOLDER as FOLDER
from bertie.data.manifest import JOURNAL as FILE
from bertie.disk import lock_file, write_file
from bertie.errors import FolderError, UserError

LOCK = "lock"
INPUT = "input"  # standard input, copied
VERSION = 3
WRONG = ("input", "wrong")  # stage and part of the note that the user was asked to fix the input
SHOWN = 5  # differences


class Journal:
    """Notes by stage and part. The first line holds the settings and the input: a build under other ones must not
    continue this."""

    def __init__(self, corpus: Path):
        self.corpus, self.folder = corpus, corpus / FOLDER
        self.notes: dict[tuple[str, str], dict[str, Any]] = {}
        self._made_corpus = False
        self._lock: BinaryIO | None = None
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        if self.corpus.is_file():
            raise UserError("this is a file, not a folder", where=str(self.corpus), hint="name another folder")
        self._made_corpus = not self.corpus.exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = (self.folder / LOCK).open("ab")
        try:
            lock_file(self._lock, self.corpus)
        except FolderError:
            self._lock.close()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        if self.folder.is_dir() and not (self.folder / FILE).exists():
            self.remove()
            if self._made_corpus and not any(self.corpus.iterdir()):
                self.corpus.rmdir()

    def start(
        self,
        settings: Mapping[str, Any],
        input: Mapping[str, Any],
        stands: Callable[[str, str, Mapping[str, Any]], bool],
    ) -> None:
        """Reads what was done. Settings and input that changed since are refused, with what differs.

        Only an input that was found wrong may be another one now, since the user was asked to fix it: then the notes
        (stage, part, facts) that are no longer valid are forgotten, and the build continues with the others.
        """
        path = self.folder / FILE
        now = json.loads(json.dumps({"version": VERSION, "settings": settings, "input": input}))
        kept = self._read(path)
        if kept is None:
            self.clear(keep=INPUT)
        else:
            self._refuse_other(kept["settings"], now["settings"])
            if self.done(*WRONG) is None:
                self._refuse_other(kept["input"], now["input"])
        if kept != now:
            self.notes = {key: facts for key, facts in self.notes.items() if stands(*key, facts)}
            notes = (_noted(stage, part, facts) for (stage, part), facts in self.notes.items())
            write_file(path, b"".join(map(_line, (now, *notes))))
        self._file = path.open("ab", buffering=0)

    @property
    def is_open(self) -> bool:
        """Whether what was done was read: only then can more be noted."""
        return self._file is not None

    def exists(self) -> bool:
        return (self.folder / FILE).exists()

    def done(self, stage: str, part: str) -> dict[str, Any] | None:
        return self.notes.get((stage, part))

    def finished(self, stage: str) -> list[tuple[str, dict[str, Any]]]:
        """The notes of a stage in the order of the parts."""
        return sorted((part, note) for (of, part), note in self.notes.items() if of == stage)

    def note(self, stage: str, part: str, facts: Mapping[str, Any]) -> None:
        self._write(_line(_noted(stage, part, facts)))
        self.notes[stage, part] = dict(facts)

    def check_files(self) -> None:
        """Refuses to continue from files that are not as the notes say."""
        for facts in self.notes.values():
            for name, checksum in facts.get("checksums", {}).items():
                path = self.folder / name
                try:
                    intact = checksum_of(path) == checksum
                except OSError:
                    intact = False
                if not intact:
                    hint = "give `restart` to start over"
                    raise UserError("a file of the unfinished build is damaged", where=str(path), hint=hint)

    def clear(self, keep: str | None = None) -> None:
        """Forgets everything but the lock and the folder `keep`."""
        (self.folder / FILE).unlink(missing_ok=True)
        self.notes.clear()
        for path in self.folder.iterdir():
            if path.is_dir() and path.name != keep:
                shutil.rmtree(path)
            elif path.is_file() and path.name != LOCK:
                path.unlink()

    def remove(self) -> None:
        """The build is over. The journal is removed after the files it names, so that a kill leaves no file without a
        note."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
        (self.folder / FILE).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self, path: Path) -> dict[str, Any] | None:
        """The first line and, into `notes`, what was done. A last line that was cut by a kill never happened."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) != len(content):
            os.truncate(path, len(whole))
        if not whole or whole.startswith(b"{"):  # of an earlier version
            return None
        lines = []
        for number, line in enumerate(whole.split(b"\n")[:-1], 1):
            checksum, _, content = line.partition(b" ")
            if checksum != _checksum(content):
                hint = "give `restart` to start over"
                raise UserError("the journal of the unfinished build is damaged", where=f"{path}:{number}", hint=hint)
            lines.append(json.loads(content))
        if lines[0]["version"] != VERSION:
            return None
        for line in lines[1:]:
            self.notes[line["stage"], line["part"]] = line["facts"]
        first: dict[str, Any] = lines[0]
        return first

    def _write(self, content: bytes) -> None:
        assert self._file is not None, "start comes first"
        end = self._file.seek(0, os.SEEK_END)
        try:
            if self._file.write(content) != len(content):
                raise OSError(28, os.strerror(28))
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(end)  # half a line would be glued to the next one
            raise

    def _refuse_other(self, kept: dict[str, Any], now: dict[str, Any]) -> None:
        names = [name for name in dict.fromkeys([*kept, *now]) if kept.get(name) != now.get(name)]
        if names:
            changes = "; ".join(
                f"{name} was {shown(kept.get(name))} and is now {shown(now.get(name))}" for name in names[:SHOWN]
            )
            changes += f"; and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
            hint = "use the settings it was started with, or give `restart` to start over"
            what = f"the unfinished build here was started with other settings: {changes}"
            raise UserError(what, where=str(self.corpus), hint=hint)


def checksum_of(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            total = zlib.crc32(piece, total)
    return total


def _noted(stage: str, part: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"stage": stage, "part": part, "facts": facts}


def _line(content: Mapping[str, Any]) -> bytes:
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return _checksum(written) + b" " + written + b"\n"


def _checksum(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
