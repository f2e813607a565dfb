"""`bertie embed`: a model folder and a file of texts enter, a file of vectors leaves. Progress goes to stderr."""

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any, Literal

import typer
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from bertie.cli.app import console
from bertie.models.embedding import RAW_VECTORS
from bertie.search.bulk import EmbedInterrupted, EmbedProgress, EmbedReport, embed_file
from bertie.search.vector_files import VectorFile
from bertie.text.files import TextSource
from bertie.text.lines import MAX_LINE_BYTES

BAR_STEPS = 10_000


def embed(
    folder: str = typer.Argument(help="A model folder."),
    input: str = typer.Argument(help="Texts: .txt, .jsonl, .csv, .tsv, .parquet, also .gz or .zst; - is stdin."),
    out: Path = typer.Option(help="The file to write, .npy or .parquet; row i is text i."),
    pooling: Literal["first", "mean", "max"] | None = typer.Option(None, help="The folder's own when not given."),
    layers: str | None = typer.Option(
        None, help="last, sum4, concat4, or a layer's number; the folder's own if not given."
    ),
    normalize: bool | None = typer.Option(None, help="Vectors of length 1 or not; as the folder says when not given."),
    size: int | None = typer.Option(None, min=1, help="Keep the first so many numbers of a vector; all by default."),
    max_length: int | None = typer.Option(None, min=1, help="Tokens of a text at most; the rest is cut and counted."),
    batch_tokens: int | None = typer.Option(None, min=1, help="Tokens that are computed at once."),
    field: str | None = typer.Option(None, help="The JSON field or the column of the texts; 'text' when not given."),
    format: str | None = typer.Option(None, help="txt, jsonl, csv, tsv or parquet, whatever the file's ending."),
    max_line_bytes: int = typer.Option(MAX_LINE_BYTES, min=1, help="A longer line is an error."),
    null_as_empty: bool = typer.Option(False, "--null-as-empty", help="A null counts as an empty text."),
    dtype: str = typer.Option("float32", help="float32 or float16."),
    with_text: bool = typer.Option(False, "--with-text", help="Keep the texts in the .parquet file too."),
    restart: bool = typer.Option(False, "--restart", help="Forget an unfinished run instead of continuing it."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a finished file."),
    as_json: bool = typer.Option(False, "--json", help="Print the report as one JSON object."),
) -> None:
    """Turn every text of a file into a vector.

    Memory does not grow with the file. When it is stopped, or the machine fails, the same command continues.
    """
    import bertie

    model = bertie.load(folder)
    chosen = {
        "pooling": pooling,
        "layers": int(layers) if layers and layers.removeprefix("-").isdecimal() else layers,
        "normalize": normalize,
        "size": size,
        "max_length": max_length,
        "batch_tokens": batch_tokens,
    }
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if model.makes_raw_vectors:
        console.print(RAW_VECTORS, style="yellow", markup=False, highlight=False, soft_wrap=True)
    bar = EmbedBar()
    try:
        with bar.progress:
            report = embed_file(
                partial(model.encode_report, progress=False, **given),
                TextSource(input, field, format, max_line_bytes, null_as_empty),
                VectorFile(out, dtype, with_text),
                settings={"model": model.digest, **given},
                restart=restart,
                overwrite=overwrite,
                progress=bar.show,
            )
    except EmbedInterrupted as interrupted:
        console.print(str(interrupted), style="yellow", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None
    for notice in report.notices:
        console.print(notice, markup=False, highlight=False, soft_wrap=True)
    typer.echo(json.dumps(dataclasses.asdict(report), indent=2) if as_json else describe(report))


class EmbedBar:
    """A bar with rates; with percent and time left where the input's size is known."""

    def __init__(self) -> None:
        self.progress = Progress(
            TextColumn("{task.fields[texts]}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[rates]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self.task: TaskID | None = None

    def show(self, event: EmbedProgress) -> None:
        texts = f"{event.num_texts:,} texts"
        rates = f"{event.texts_per_second:,.0f} texts/s, {event.tokens_per_second:,.0f} tokens/s"
        total = None if event.fraction is None else BAR_STEPS
        completed = round((event.fraction or 0.0) * BAR_STEPS)
        if self.task is None:
            # What an earlier run did is there from the start and must not count as speed.
            self.task = self.progress.add_task("", total=total, completed=completed, texts=texts, rates=rates)
        else:
            self.progress.update(self.task, total=total, completed=completed, texts=texts, rates=rates)


def describe(report: EmbedReport) -> str:
    resumed = f" ({report.num_resumed:,} of them by earlier runs)" if report.num_resumed else ""
    replaced = f", {report.num_replaced:,} words put right" if report.num_replaced else ""
    return (
        f"{report.target}: {report.num_texts:,} texts{resumed} as vectors of {report.width}; "
        f"{report.num_tokens:,} tokens in {report.seconds:.1f} s, {report.tokens_per_second:,.0f} tokens/s; "
        f"{report.num_truncated:,} texts truncated ({report.num_cut:,} tokens cut), {report.num_empty:,} empty"
        f"{replaced}"
    )
