"""Texts as an option: files, folders and globs, or texts in memory."""

import glob
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from bertie.data.rows.memory_rows import rows_of
from bertie.errors import InputError, SpecError
from bertie.jobs.job import Group, option
from bertie.text.reading.documents import Boundary, DocumentOptions, Format, Texts
from bertie.text.reading.encodings import UTF_8, known_encoding
from bertie.text.reading.files import TextSource
from bertie.text.reading.lines import MAX_LINE_BYTES

# Tables of pandas, polars, pyarrow and datasets, which are never imported here.
TABLES = ("DataFrame", "LazyFrame", "Series", "Table", "RecordBatch", "Dataset", "IterableDataset")
ENDINGS = (".txt", ".text", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".tab", ".parquet", ".pq", ".gz", ".zst")


def as_sources(given: Any) -> Any:
    """Paths as a tuple; texts as they are.

    A single string is a path. A list of strings is paths where files, folders or globs of these names exist, else
    texts; a string that ends like a file's name but names none is refused.
    """
    if isinstance(given, str | Path):
        return (Path(given),)
    if not isinstance(given, Iterable) and type(given).__name__ not in TABLES:
        raise ValueError("paths, texts or a table were expected")
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, str | Path) for one in given):
        return given
    found = [isinstance(one, Path) or _is_source(one) for one in given]
    if all(found):
        return tuple(map(Path, given))
    for name in (name for name, is_source in zip(given, found, strict=True) if not is_source):
        if name.lower().endswith(ENDINGS) and not any(map(str.isspace, name)):
            raise InputError("there is no such file", where=name, hint="check the path")
    return [str(one) for one in given]


def _is_source(name: str) -> bool:
    try:
        if not name:
            return False
        return name == "-" or Path(name).exists() or (glob.has_magic(name) and bool(glob.glob(name, recursive=True)))  # noqa: PTH207
    except (OSError, ValueError):  # too long for a path, or with a null byte
        return False


def are_paths(sources: Any) -> bool:
    return isinstance(sources, tuple) and all(isinstance(one, Path) for one in sources)


def _plain(sources: Any) -> list[str]:
    if not isinstance(sources, list | tuple):
        raise InputError("texts of an iterator can be read only once", hint="give a list of texts, or a file")
    return [str(one) for one in sources]


def _name(given: Any) -> str:
    if not isinstance(given, str | Path):
        raise SpecError(f"a {type(given).__name__} in memory has no name", hint="give the path of its folder")
    return str(given)


# A folder's path, or what was loaded from it.
FolderOrObject = Annotated[Any, PlainSerializer(_name, when_used="json")]
Encoding = Annotated[str, AfterValidator(known_encoding)]
ENCODING_HELP = "Encoding of the files, like gb18030, latin-1 or utf-16; utf-8 by default."
Sources = Annotated[Any, BeforeValidator(as_sources), PlainSerializer(_plain, when_used="json")]


class TextOptions(Group):
    """How texts are found in files."""

    title: ClassVar[str] = "Reading"
    column: str | None = option(None, "Column or JSON field of the texts; text by default.", common=True)
    format: Format | None = option(
        None, "txt, jsonl, csv, tsv, parquet or wikiextractor, whatever the file's ending.", metavar="FORMAT"
    )
    max_line_bytes: int = option(MAX_LINE_BYTES, "A longer line is an error.", ge=1)
    null_as_empty: bool = option(False, "A null counts as an empty text.")
    encoding: Encoding = option(UTF_8, ENCODING_HELP)


class ReadingOptions(TextOptions):
    """How documents are found in files."""

    document: Boundary = option(
        "blank-line", "What ends a document in a txt file: blank-line, line or file.", metavar="END"
    )

    def documents(self) -> DocumentOptions:
        return DocumentOptions(
            column=self.column,
            format=self.format,
            boundary=self.document,
            max_line_bytes=self.max_line_bytes,
            null_as_empty=self.null_as_empty,
            encoding=self.encoding,
        )


def to_read(sources: Any, column: str | None = None) -> tuple[str, ...] | Texts:
    """Sources as readers of documents take them. `column` holds the texts of a table."""
    return tuple(map(str, sources)) if are_paths(sources) else Texts(_texts(sources, column))


def _texts(sources: Any, column: str | None) -> Iterable[str]:
    """Texts in memory: as they are, or from a column of a table or of a list of dicts."""
    is_dicts = isinstance(sources, list | tuple) and bool(sources) and isinstance(sources[0], Mapping)
    if not is_dicts and not isinstance(sources, Mapping) and type(sources).__name__ not in TABLES:
        texts: Iterable[str] = sources
        return texts
    rows = rows_of(sources, "texts")
    wanted = column or (rows.columns[0] if len(rows.columns) == 1 else "text")
    if wanted not in rows.columns:
        hint = f"its columns are {', '.join(map(str, rows.columns[:20]))}; choose one with `column`"
        raise InputError(f"the table has no column {wanted!r}", hint=hint)
    return (rows.row(number).values.get(wanted) or "" for number in range(rows.num_rows))


@contextmanager
def as_files(sources: Any, column: str | None = None) -> Iterator[tuple[str, ...]]:
    """The names of files. Texts in memory are written to a temporary one."""
    if are_paths(sources):
        yield tuple(map(str, sources))
        return
    with TemporaryDirectory(prefix="bertie-") as folder:
        yield (str(Texts(_texts(sources, column)).write(Path(folder))),)


@contextmanager
def open_texts(texts: Any, reading: TextOptions) -> Iterator[TextSource]:
    """One file of texts, or texts in memory."""
    with as_files(texts, reading.column) as names:
        if len(names) != 1:
            raise InputError(f"one file of texts was expected, not {len(names)}", hint="join them, or give the texts")
        if are_paths(texts):
            limits = (reading.max_line_bytes, reading.null_as_empty)
            yield TextSource(names[0], reading.column, reading.format, *limits, reading.encoding)
        else:
            yield TextSource(names[0])
