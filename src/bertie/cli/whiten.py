"""`bertie whiten`: a model folder and a file of texts enter, a folder leaves whose vectors can be compared."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from bertie.cli.task_request import say
from bertie.errors import FolderError, InputError
from bertie.models.pretrained import Pretrained, load
from bertie.models.whitening import whitened
from bertie.text.files import TextSource


def whiten(
    folder: str = typer.Argument(help="A model folder."),
    data: str = typer.Option(help="Texts like those to be compared: .txt, .jsonl, .csv, .tsv, .parquet; - is stdin."),
    out: Path = typer.Option(help="The folder to write: the same model, with one layer more."),
    size: int | None = typer.Option(None, min=1, help="Numbers of a vector; as many as texts differ in by default."),
    max_length: int | None = typer.Option(None, min=1, help="Tokens of a text; by default as many as the folder says."),
    field: str | None = typer.Option(None, help="The JSON field or the column of the texts; 'text' when not given."),
    format: str | None = typer.Option(None, help="txt, jsonl, csv, tsv or parquet, whatever the file's ending."),
) -> None:
    """Spread a model's vectors evenly in all directions, so that their cosines tell something. Nothing is trained.

    Some thousand texts are enough. The folder opens in sentence-transformers, too.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError("there is something already", where=str(out), hint="name a new folder for --out")
    model = load(folder)
    num_empty = 0

    def texts() -> Iterator[str]:
        nonlocal num_empty
        for record in reader:
            if record.text.strip():
                yield record.text
            else:
                num_empty += 1

    with TextSource(data, field, format).read() as reader:
        made = whitened(model, texts(), size, max_length)
        for notice in reader.notices:
            say(notice)
    if num_empty:
        say(f"{num_empty:,} empty texts are left out")
    if made.num_replaced:
        say(f"{made.num_replaced:,} words are put right by the table")
    if made.num_truncated:
        say(f"{made.num_truncated:,} of {made.num_texts:,} texts were too long and were cut")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is told here
        notes = save_whole(made.model, out.resolve())
    for note in notes:
        say(note)
    assert made.model.settings is not None and made.model.settings.projection is not None
    width = len(made.model.settings.projection.weight)
    typer.echo(f"{out}: vectors of {width:,} numbers, whitened by {made.num_texts:,} texts")


def save_whole(model: Pretrained, out: Path) -> list[str]:
    """All of the folder or nothing. An empty one that is there stays the same folder: a shell may stand in it."""
    try:
        if out.exists():
            return model.save(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as made:
            notes = model.save(Path(made) / out.name)
            (Path(made) / out.name).rename(out)
    except OSError as error:
        raise FolderError(f"cannot be written ({error.strerror})", where=str(out)) from None
    return notes
