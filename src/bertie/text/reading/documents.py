"""Turns files, folders, globs, standard input and texts in memory into slices of documents.

A `Slice` is a plain value: about 12 MB of text from one file or from several small ones, cut at document boundaries.
Slices in their order cover the input exactly once and do not depend on who reads them, so any number of workers, on
any machine that sees the files, can each read some.
"""

import glob
import hashlib
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertie.disk import atomic_file
from bertie.errors import InputError
from bertie.reporting.events import OnEvent, ignore, message
from bertie.spec import Spec
from bertie.text.reading.document_parts import Boundary, Document, DocumentOptions, Format, Part
from bertie.text.reading.encodings import UTF_8, marked_encoding
from bertie.text.reading.files import ENDINGS
from bertie.text.reading.lines import CODECS, STANDARD_INPUT, as_utf8, open_bytes, read_or_refuse, unpack
from bertie.text.reading.paths import kind_of_path
from bertie.text.reading.slicing import BLOCK, is_known, parts_of

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
    whether a file has changed since. Standard input ("-"), pipes, texts in memory and files that are not UTF-8 are
    copied into the folder `spool` first. Messages name what was guessed or left out.
    """
    options = options or DocumentOptions()
    if isinstance(sources, Texts):
        options = options.replace(column="text", format="jsonl")
    notices: list[str] = []
    found: list[Slice] = []
    gathered: list[Part] = []
    size = 0
    for path, shown, usual in _files(sources, Spool(spool, options.encoding, notices), notices):
        for part in parts_of(path, shown, options, notices, usual):
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
        kind = kind_of_path(path)
        if kind == "folder":
            found.extend(_files_below(path, notices if notices is not None else []))
        elif kind != "missing" or not glob.has_magic(str(source)):
            found.append(path)
        else:
            matched = [Path(match) for match in sorted(glob.glob(str(source), recursive=True))]  # noqa: PTH207
            if not matched:
                raise InputError("no file matches", where=str(source), hint="check the pattern")
            found.extend(list_files(matched, notices))
    return found


def _files(sources: Sources, spool: "Spool", notices: list[str]) -> Iterable[tuple[Path, str, Format | None]]:
    """Each file, what messages call it, and its format where nothing shows another."""
    if isinstance(sources, Texts):
        assert spool.folder is not None, "texts in memory need a folder to be written to"
        yield sources.write(spool.folder), sources.name, None
        return
    if not sources:
        raise InputError("there is no source to read", hint='give files, folders or globs, or "-" for standard input')
    seen: dict[Path, str] = {}
    for source in sources:
        if str(source) == "-":
            if Path("-") in seen:
                raise InputError("it is given twice", where=STANDARD_INPUT, hint='give "-" once')
            seen[Path("-")] = STANDARD_INPUT
            yield spool.standard_input(), STANDARD_INPUT, "txt"
            continue
        for path in list_files([source], notices):
            if (real := path.resolve()) in seen:
                raise InputError(f"the file is given twice, also as {seen[real]}", where=str(path), hint="give it once")
            seen[real] = str(path)
            if kind_of_path(path) == "pipe":
                yield spool.pipe(path), str(path), "txt"
            else:
                yield spool.utf8(path), str(path), None


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


class Spool:
    """Copies what cannot be cut into slices as it is: what can be read only once, and what is not UTF-8."""

    def __init__(self, folder: Path | None, encoding: str, notices: list[str]):
        self.folder, self._encoding, self._notices = folder, encoding, notices
        self._num_copies = 0

    def standard_input(self) -> Path:
        path = self._place("standard-input", STANDARD_INPUT)
        # What is piped is copied again: it may not be the text of an unfinished build, and its digest then shows that.
        # At a terminal nothing is piped, and the copy of the unfinished build is what counts.
        if not path.exists() or not sys.stdin.buffer.isatty():
            self._copy(unpack(sys.stdin.buffer, None), path, STANDARD_INPUT)
        return path

    def pipe(self, path: Path) -> Path:
        copy = self._place(f"pipe-{self._next()}", str(path))
        with open_bytes(path) as raw:
            self._copy(unpack(raw, CODECS.get(path.suffix.lower())), copy, str(path))
        return copy

    def utf8(self, path: Path) -> Path:
        """The file itself where it is UTF-8 or Parquet, else a copy with the same ending."""
        codec = CODECS.get(path.suffix.lower())
        ending = Path(path.stem).suffix if codec else path.suffix
        if ENDINGS.get(ending.lower()) == "parquet":
            return path
        with open_bytes(path) as raw:
            stream = unpack(raw, codec)
            start = read_or_refuse(lambda: stream.peek(4), str(path), 1)
            if self._encoding == UTF_8 and marked_encoding(start) is None:
                return path
            copy = self._place(f"utf8-{self._next()}{ending}", str(path))
            self._copy(stream, copy, str(path))
        return copy

    def _copy(self, stream: io.BufferedReader, path: Path, name: str) -> None:
        with atomic_file(path) as copy:
            text = as_utf8(stream, name, self._encoding, self._notices)
            while block := read_or_refuse(lambda: text.read(BLOCK), name, 1):
                copy.write(block)

    def _place(self, name: str, shown: str) -> Path:
        if self.folder is None:
            raise InputError("this cannot be read in slices", where=shown, hint="save it to a file of UTF-8 text")
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / name

    def _next(self) -> int:
        self._num_copies += 1
        return self._num_copies
