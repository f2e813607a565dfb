"""Data as an option: paths of files, or rows and texts in memory."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from bertie.data.rows.memory_rows import rows_of
from bertie.data.rows.rows import Rows
from bertie.errors import InputError

ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".conll", ".gz", ".zst")

Paths = tuple[Path, ...]


def as_data(given: Any) -> Any:
    """Paths as a tuple; anything else as it is.

    A single string is a path. A list of strings is paths where files of these names exist, else texts; a string that
    ends like a file's name but names none is refused.
    """
    if isinstance(given, str | Path):
        return (Path(given),)
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, str | Path) for one in given):
        return given
    exist = [isinstance(one, Path) or _exists(one) for one in given]
    if all(exist):
        return tuple(map(Path, given))
    missing = given[exist.index(False)]
    if any(exist) or (missing.lower().endswith(ENDINGS) and not any(map(str.isspace, missing))):
        raise InputError("there is no such file", where=missing, hint="check the path")
    return list(given)


def _exists(text: str) -> bool:
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):  # too long for a path, or with a null byte
        return False


def plain_data(data: Any) -> Any:
    """As JSON: names of files, or the rows themselves."""
    if is_paths(data):
        return [str(path) for path in data]
    return [row.values for row in rows_of(data, "rows")]


def as_folder(given: Any) -> Any:
    """A folder; of what another call returned, its own."""
    return getattr(given, "folder", given)


def as_source(given: Any) -> Any:
    """A model by its folder or name; also one that was loaded or trained."""
    source = getattr(given, "source", None) or getattr(given, "folder", given)
    return str(source) if isinstance(source, Path) else source


ModelSource = Annotated[str, BeforeValidator(as_source)]
Folder = Annotated[Path, BeforeValidator(as_folder)]
Data = Annotated[Any, BeforeValidator(as_data), PlainSerializer(plain_data, when_used="json")]


def is_paths(data: Any) -> bool:
    return isinstance(data, tuple) and all(isinstance(one, Path) for one in data)


def paths_in(data: Any) -> Paths:
    """The files of data; none where it is in memory."""
    return data if is_paths(data) else ()


def rows_or_paths(data: Any, name: str) -> Rows | list[Path]:
    """Paths, or rows in memory; `name` is what messages call those."""
    return list(data) if is_paths(data) else rows_of(data, name)
