"""The job `embed`: texts to vectors, in a file or in memory."""

import dataclasses
import re
from collections.abc import Iterable
from functools import cached_property, reduce
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow.parquet as pq
from pydantic import BeforeValidator, Field

from bertie.devices import HELP as DEVICE_HELP
from bertie.devices import DeviceName
from bertie.jobs.job import Group, Job, option
from bertie.jobs.options.model_device import open_model
from bertie.jobs.options.text_sources import FolderOrObject, Sources, TextOptions, open_texts
from bertie.jobs.result import Result, Temporary, place_for
from bertie.models.embedding import BATCH_TOKENS, RAW_VECTORS, Encoding
from bertie.nn.products.choice import describe
from bertie.reporting.events import OnEvent, ignore, message, warn, warning
from bertie.search.bulk import EmbedReport, embed_file
from bertie.search.vector_files import VectorFile
from bertie.text.tokenizers.tokens import UnknownCount


def _layers(given: Any) -> Any:
    """ "-2" is a layer's number."""
    return int(given) if isinstance(given, str) and re.fullmatch(r"-?\d{1,9}", given, re.ASCII) else given


class VectorOptions(Group):
    title: ClassVar[str] = "Vectors"
    pooling: Literal["first", "mean", "max"] | None = option(
        None, "first, mean or max; the model's own by default.", common=True, metavar="KIND"
    )
    layers: Annotated[Annotated[int, Field(ge=-1000, le=1000)] | str | None, BeforeValidator(_layers)] = option(
        None, "last, sum4, concat4 or a layer's number; the model's own by default.", metavar="LAYERS"
    )
    normalize: bool | None = option(
        None, "Scale vectors to length 1; as the model says by default.", common=True, flag="--normalize/--no-normalize"
    )
    size: int | None = option(None, "Keep the first N numbers of a vector; all by default.", common=True, ge=1)
    max_length: int | None = option(None, "Tokens per text; the rest is cut and counted.", common=True, ge=1)
    batch_tokens: int | None = option(None, f"Tokens computed at once; {BATCH_TOKENS} by default.", ge=1)
    dtype: Literal["float32", "float16"] = option("float32", "float32 or float16.", metavar="TYPE")
    precision: Literal["float32", "bfloat16"] | None = option(
        None, "Of matrix products; bfloat16 is used where it is faster here, and rounds. float32 by default."
    )


class EmbedJob(Job):
    """Turn every text of a file into a vector.

    Memory does not grow with the file. When it is stopped, or the machine fails, the same command continues.
    """

    verb: ClassVar[str] = "embed"
    example: ClassVar[str] = "bertie embed my-model texts.jsonl --out vectors.npy"
    model: FolderOrObject = option(help="A model folder, a run folder, or a name on the hub.", argument=True)
    texts: Sources = option(
        help="Texts: .txt, .jsonl, .csv, .tsv or .parquet, also .gz or .zst; - is stdin.", argument=True, paths=True
    )
    out: Path | None = option(None, "File to write, .npy or .parquet; row i is text i.", needed=True, metavar="FILE")
    with_text: bool = option(False, "Keep the texts in the .parquet file too.")
    restart: bool = option(False, "Discard an unfinished run instead of continuing it.")
    overwrite: bool = option(False, "Replace a finished file.", common=True)
    device: DeviceName = option("auto", DEVICE_HELP, common=True)
    vectors: VectorOptions = VectorOptions()
    reading: TextOptions = TextOptions()

    def run(self, on_event: OnEvent = ignore) -> "Vectors":
        model = open_model(self.model, self)
        given = self.vectors.model_dump(exclude={"dtype"}, exclude_none=True)
        if model.makes_raw_vectors:
            on_event(warning(RAW_VECTORS))
        if self.vectors.precision == "bfloat16":
            on_event(message(f"products in bfloat16 where they are faster: {describe('bfloat16')}"))
        file, temporary = place_for(self.out, "vectors.npy")
        unknown: list[UnknownCount] = []  # of each part of the texts

        def encode(texts: Iterable[str]) -> Encoding:
            encoding = model.encode_report(texts, progress=False, **given)
            unknown.append(encoding.unknown)
            return encoding

        with open_texts(self.texts, self.reading) as source:
            report = embed_file(
                encode,
                source,
                VectorFile(file, self.vectors.dtype, self.with_text),
                settings={"model": model.digest, **given},
                restart=self.restart,
                overwrite=self.overwrite,
                on_event=on_event,
            )
        if (what := reduce(UnknownCount.plus, unknown, UnknownCount()).warning()) is not None:
            on_event(warning(what))
        return Vectors(report, temporary)


class Vectors(Result):
    """Vectors of texts: `vectors` [texts, width], the `file` they are in, and a `report` on what was done."""

    def __init__(self, report: EmbedReport, temporary: Temporary | None = None):
        self.report, self.file, self._temporary = report, Path(report.target), temporary

    @cached_property
    def vectors(self) -> np.ndarray:
        if self.file.suffix == ".npy":
            found: np.ndarray = np.load(self.file)
            return found
        column = pq.read_table(self.file, columns=["vector"]).column(0).combine_chunks()
        flat: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(-1, self.report.width)

    def to_json(self) -> Any:
        return dataclasses.asdict(self.report)

    def parts(self) -> Iterable[str]:
        report = self.report
        name = "" if self._temporary else f"{report.target}: "
        resumed = f" ({report.num_resumed:,} of them by earlier runs)" if report.num_resumed else ""
        replaced = f", {report.num_replaced:,} words corrected" if report.num_replaced else ""
        yield (
            f"{name}{report.num_texts:,} texts{resumed} as vectors of {report.width}; "
            f"{report.num_tokens:,} tokens in {report.seconds:.1f} s, {report.tokens_per_second:,.0f} tokens/s; "
            f"{report.num_truncated:,} texts truncated ({report.num_cut:,} tokens cut), {report.num_empty:,} empty"
            f"{replaced}"
        )


def embed(
    model: Any,
    texts: Any,
    *,
    out: str | Path | None = None,
    pooling: Literal["first", "mean", "max"] | None = None,
    layers: int | str | None = None,
    normalize: bool | None = None,
    size: int | None = None,
    max_length: int | None = None,
    batch_tokens: int | None = None,
    dtype: Literal["float32", "float16"] = "float32",
    with_text: bool = False,
    column: str | None = None,
    format: str | None = None,
    max_line_bytes: int | None = None,
    null_as_empty: bool | None = None,
    encoding: str | None = None,
    restart: bool = False,
    overwrite: bool = False,
    device: DeviceName | None = None,
    on_event: OnEvent = warn,
) -> Vectors:
    """Turns texts into vectors: a file of texts, or an iterable of texts. `model` is a folder or a loaded model.

    With `out` (.npy or .parquet) the vectors are also kept in a file, and work that was stopped continues there.

    >>> found = bertie.embed("my-model", ["one text", "another"])
    >>> len(found.vectors)
    2
    """
    job = EmbedJob.of(
        model=model,
        texts=texts,
        out=out,
        pooling=pooling,
        layers=layers,
        normalize=normalize,
        size=size,
        max_length=max_length,
        batch_tokens=batch_tokens,
        dtype=dtype,
        with_text=with_text,
        column=column,
        format=format,
        max_line_bytes=max_line_bytes,
        null_as_empty=null_as_empty,
        encoding=encoding,
        restart=restart,
        overwrite=overwrite,
        device=device,
    )
    return job.run(on_event)
