"""Turns files, folders, globs, standard input and texts in memory into slices of documents.

A `Slice` is a plain value: about 12 MB of text from one file or from several small ones, cut at document boundaries.
Slices in their order cover the input exactly once and do not depend on who reads them, so any number of workers, on
any machine that sees the files, can each read some.
"""

import glob
import hashlib
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertie.disk import atomic_file
from bertie.errors import InputError
from bertie.reporting.events import OnEvent, ignore, message
from bertie.spec import Spec
from bertie.text.reading.document_parts import Boundary, Document, DocumentOptions, Format, Part
from bertie.text.reading.lines import STANDARD_INPUT
from bertie.text.reading.slicing import is_known, parts_of

__all__ = [
    "Boundary",
    "Document",
    "DocumentOptions",
    "Format",
    "Part",
    "Slice",
    "Sources",
    "Texts",
    "list_files",
    "slices",
]


@dataclass(frozen=True)
class Texts:
    """Texts in memory in place of files; each is a document. An iterator is read once."""

    texts: Iterable[str]
    name: str = "texts"  # what messages call them

    def write(self, folder: Path) -> Path:
        """One JSON object a line, so that any number of workers can read them."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "texts.jsonl"
        with atomic_file(path) as file:
            for number, text in enumerate(self.texts, 1):
                if not isinstance(text, str):
                    where = f"{self.name}: text {number}"
                    raise InputError(f"this is {type(text).__name__}, not a text", where=where, hint="give strings")
                file.write(json.dumps({"text": text}).encode() + b"\n")
        return path


Sources = Sequence[str | Path] | Texts


class Slice(Spec):
    """A piece of the input that can be read on its own."""

    parts: tuple[Part, ...]
    options: DocumentOptions

    def read(self) -> Iterator[Document]:
        for part in self.parts:
            yield from part.read(self.options)

    @property
    def size(self) -> int:
        """Bytes of text, roughly."""
        return sum(part.size for part in self.parts)

    @property
    def digest(self) -> str:
        """sha256 over the content, where it stands and how it is read."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def where(self) -> str:
        first, last = self.parts[0], self.parts[-1]
        return f"{first.shown}:{first.first_line}" + (f" to {last.shown}" if last.shown != first.shown else "")


def slices(
    sources: Sources,
    options: DocumentOptions | None = None,
    *,
    spool: Path | None = None,
    on_event: OnEvent = ignore,
) -> list[Slice]:
    """The slices of all sources, in the order of the sources and of the sorted files in them.

    Every file is read once, so that lines can be numbered, broken files are found before any work, and a digest shows
    whether a file has changed since. Standard input ("-") and texts in memory are written into the folder `spool`
    first. Messages name what was guessed or left out.
    """
    options = options or DocumentOptions()
    if isinstance(sources, Texts):
        options = options.replace(column="text", format="jsonl")
    notices: list[str] = []
    found: list[Slice] = []
    gathered: list[Part] = []
    size = 0
    for path, shown in _files(sources, spool, notices):
        for part in parts_of(path, shown, options, notices):
            size += part.size
            if gathered and size > options.slice_bytes:
                found.append(Slice(parts=tuple(gathered), options=options))
                gathered, size = [], part.size
            gathered.append(part)
    if gathered:
        found.append(Slice(parts=tuple(gathered), options=options))
    for notice in notices:
        on_event(message(notice))
    return found


def list_files(sources: Sequence[str | Path], notices: list[str] | None = None) -> list[Path]:
    """The files that the sources name: files, folders (all files below with a known ending), globs."""
    found: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            found.extend(_files_below(path, notices if notices is not None else []))
        elif path.exists() or not glob.has_magic(str(source)):
            found.append(path)
        else:
            matched = [Path(match) for match in sorted(glob.glob(str(source), recursive=True))]  # noqa: PTH207
            if not matched:
                raise InputError("no file matches", where=str(source), hint="check the pattern")
            found.extend(list_files(matched, notices))
    return found


def _files(sources: Sources, spool: Path | None, notices: list[str]) -> Iterable[tuple[Path, str]]:
    if isinstance(sources, Texts):
        assert spool is not None, "texts in memory need a folder to be written to"
        yield sources.write(spool), sources.name
        return
    if not sources:
        raise InputError("there is no source to read", hint='give files, folders or globs, or "-" for standard input')
    seen: dict[Path, str] = {}
    for source in sources:
        if str(source) == "-":
            if Path("-") in seen:
                raise InputError("it is given twice", where=STANDARD_INPUT, hint='give "-" once')
            seen[Path("-")] = STANDARD_INPUT
            yield _spooled(spool), STANDARD_INPUT
            continue
        for path in list_files([source], notices):
            if (real := path.resolve()) in seen:
                raise InputError(f"the file is given twice, also as {seen[real]}", where=str(path), hint="give it once")
            seen[real] = str(path)
            yield path, str(path)


def _files_below(folder: Path, notices: list[str]) -> list[Path]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    visible = [path for path in files if not any(step.startswith(".") for step in path.relative_to(folder).parts)]
    known: list[Path] = []
    others: list[Path] = []
    for path in visible:
        (known if is_known(path) else others).append(path)
    if not known:
        raise InputError("the folder has no file that can be read", where=str(folder), hint="name the files themselves")
    if others:
        listed = ", ".join(str(path.relative_to(folder)) for path in others[:3]) + (", ..." if len(others) > 3 else "")
        notices.append(f"{folder}: {len(others)} files of unknown format are left out ({listed})")
    return known


def _spooled(spool: Path | None) -> Path:
    if spool is None:
        raise InputError("standard input cannot be read in slices", hint="save it to a file, and give that")
    spool.mkdir(parents=True, exist_ok=True)
    path = spool / "standard-input"
    # What is piped is copied again: it may not be the text of an unfinished build, and its digest then shows that. At a
    # terminal nothing is piped, and the copy of the unfinished build is what counts.
    if not path.exists() or not sys.stdin.buffer.isatty():
        with atomic_file(path) as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
    return path
