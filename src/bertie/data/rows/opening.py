"""Opens files of labelled data as `Rows`, whatever their kind."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bertie.data.rows.arrow_rows import open_arrow, open_dataset, open_parquet
from bertie.data.rows.conll_rows import ConllRows
from bertie.data.rows.file_bytes import HEAD, FileBytes, open_file
from bertie.data.rows.json_rows import JsonLines, JsonList
from bertie.data.rows.label_lines import LabelTextRows, PrefixedLabelRows
from bertie.data.rows.records import LineRows
from bertie.data.rows.rows import JoinedRows, Rows
from bertie.data.rows.separated_rows import CSV, QUOTED_TSV, TSV, Dialect, SeparatedRows, csv_dialect
from bertie.data.rows.sniffing import may_be_conll, sniff_delimiter, sniff_format
from bertie.data.rows.squad_rows import SquadRows
from bertie.errors import InputError
from bertie.reporting.quantities import list_few
from bertie.text.reading.lines import CODECS, open_bytes, refuse_binary
from bertie.text.reading.paths import kind_of_path

TABLES: dict[str, Dialect] = {dialect.name: dialect for dialect in (CSV, TSV, QUOTED_TSV)}
# Formats in which a line is a row, so that a blank line may be one.
LINES: dict[str, type[LineRows]] = {"lines": LineRows, "label-text": LabelTextRows, "label-prefix": PrefixedLabelRows}
TEXTS: dict[str, Callable[[FileBytes], Rows]] = {
    "jsonl": JsonLines,
    "json": JsonList,
    "conll": ConllRows,
    "squad": SquadRows,
}
ARROW: dict[str, Callable[[Path], Rows]] = {"parquet": open_parquet, "arrow": open_arrow}
KINDS = (*TABLES, *TEXTS, *LINES, *ARROW)
# Of other endings (.txt, .json, .tsv) people name several kinds: those files are looked at.
ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".iob2": "conll",
}
TABBED = (".tsv", ".tab")
# Kinds that people give the same endings.
ALIKE = (("csv", "tsv", "quoted-tsv"), ("jsonl", "json", "squad"))


def open_rows(
    paths: str | Path | Sequence[str | Path],
    format: str | None = None,
    *,
    header: bool | None = None,
    encoding: str | None = None,
    every_line: bool = False,
) -> Rows:
    """One or more files of one kind, or a folder that `datasets` saved; "-" is standard input.

    `format` names the kind (one of KINDS) where ending and content do not show it; `header` is whether csv and tsv have
    one, None guesses; `encoding` is that of files of text. With `every_line` a blank line of plain text is a row too.
    """
    given = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    if format is not None and format not in KINDS:
        raise InputError(f"the format {format!r} is not known", hint=f"known: {', '.join(KINDS)}")
    if not given:
        raise InputError("no file is given", hint="name one or more files of rows")
    if repeated := [path for path in given if given.count(path) > 1]:
        raise InputError("the file is given twice", where=str(repeated[0]), hint="name each file once")
    opened = [_open(path, format, header, encoding, every_line) for path in given]
    for rows, path in zip(opened[1:], given[1:], strict=True):
        _check_alike(opened[0], rows, path)
    return opened[0] if len(opened) == 1 else JoinedRows(opened)


def _open(path: Path, format: str | None, header: bool | None, encoding: str | None, every_line: bool) -> Rows:
    if kind_of_path(path) == "folder":
        return open_dataset(path)
    ending = ending_of(path)
    kind = format or ENDINGS.get(ending)
    if kind in ARROW:
        if path.suffix.lower() in CODECS or kind_of_path(path) == "pipe":
            raise InputError(f"{kind} is read from a plain file only", where=str(path), hint="unpack or save it first")
        open_bytes(path).close()  # a missing file has a better message there
        return ARROW[kind](path)
    notices: list[str] = []
    source = open_file(path, notices, encoding)
    head, is_whole = source.head, source.size <= HEAD
    refuse_binary(head, source.name)
    if kind is None:
        kind = _look(source, ending)
        if ending not in TABBED or kind != "tsv":
            notices.append(f"{source.name}: read as {kind}, by its content")
        if kind == "lines" and may_be_conll(head, is_whole):
            notices.append(f"{source.name}: if these are words in columns, give `format=conll`")
    rows: Rows
    if kind in TABLES:
        dialect = TABLES[kind]
        if kind == "csv" and (delimiter := sniff_delimiter(head, is_whole)) != ",":
            dialect = csv_dialect(delimiter)
            notices.append(f"{source.name}: cells are separated by {delimiter!r}")
        rows = SeparatedRows(source, dialect, header)
    else:
        rows = LINES[kind](source, every_line) if kind in LINES else TEXTS[kind](source)
    rows.notices[:0] = notices
    return rows


def _look(source: FileBytes, ending: str) -> str:
    head, is_whole = source.head, source.size <= HEAD
    found = sniff_format(head, is_whole)
    if ending in TABBED:
        # Words with tags are often called so.
        return "conll" if found == "conll" else "tsv"
    if found is None and ending == ".txt":
        return "lines"
    if found is None:
        what = "neither its name nor its content shows which kind of file this is"
        hint = f"give its `format`: {', '.join(KINDS)}"
        if may_be_conll(head, is_whole):
            hint = "if these are words in columns, give `format=conll`, else another `format`"
        raise InputError(what, where=source.name, hint=hint)
    return found


def fits_ending(path: Path, format: str) -> bool:
    """Whether a file of this name may have a format: another kind of file has another ending."""
    named = "tsv" if ending_of(path) in TABBED else ENDINGS.get(ending_of(path))
    alike = next((kinds for kinds in ALIKE if named in kinds), (named,))
    return named is None or format in alike


def ending_of(path: Path) -> str:
    name = Path(path.name.lower())
    return name.with_suffix("").suffix if name.suffix in CODECS else name.suffix


def _check_alike(first: Rows, other: Rows, path: Path) -> None:
    # Objects need not all have the same fields.
    if type(first) is type(other) and (
        isinstance(other, JsonLines | JsonList) or set(first.columns) == set(other.columns)
    ):
        return
    what = f"it has other columns ({list_few(other.columns)}) than {first.name} ({list_few(first.columns)})"
    if type(first) is not type(other):
        what = f"it is of another kind than {first.name}"
    raise InputError(what, where=str(path), hint="files that are read as one must be alike")
