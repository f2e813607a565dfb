"""The job `whiten`: a model and texts to a model whose vectors can be compared."""

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from bertie.devices import HELP as DEVICE_HELP
from bertie.devices import DeviceName
from bertie.errors import FolderError, InputError
from bertie.jobs.job import Job, option
from bertie.jobs.options.model_device import open_model
from bertie.jobs.options.text_sources import FolderOrObject, Sources, TextOptions, open_texts
from bertie.jobs.result import Result, Temporary, place_for
from bertie.models.pretrained import Pretrained
from bertie.models.whitening import Whitened, whitened
from bertie.reporting.events import OnEvent, ignore, message, warn


class WhitenJob(Job):
    """Spread a model's vectors evenly in all directions, so that their cosines can be compared.

    Nothing is trained; some thousand texts are enough. The folder opens in sentence-transformers, too.
    """

    verb: ClassVar[str] = "whiten"
    example: ClassVar[str] = "bertie whiten my-model texts.txt --out my-encoder"
    model: FolderOrObject = option(help="A model folder.", argument=True)
    texts: Sources = option(
        help="Texts like those to be compared: .txt, .jsonl, .csv, .tsv or .parquet; - is stdin.",
        argument=True,
        paths=True,
    )
    out: Path | None = option(
        None, "Folder to write: the same model with one more layer.", needed=True, metavar="FOLDER"
    )
    size: int | None = option(None, "Numbers per vector; as many as the texts allow by default.", common=True, ge=1)
    max_length: int | None = option(None, "Tokens per text; as the model says by default.", common=True, ge=1)
    device: DeviceName = option("auto", DEVICE_HELP, common=True)
    reading: TextOptions = TextOptions()

    def run(self, on_event: OnEvent = ignore) -> "WhitenedModel":
        out, temporary = place_for(self.out, "model")
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError("the output folder is not empty", where=str(out), hint="give a new folder as `out`")
        model = open_model(self.model, self)
        num_empty = 0

        def texts() -> Iterator[str]:
            nonlocal num_empty
            for record in reader:
                if record.text.strip():
                    yield record.text
                else:
                    num_empty += 1

        with open_texts(self.texts, self.reading) as source, source.read() as reader:
            made = whitened(model, texts(), self.size, self.max_length)
            notices = [*reader.notices]
        if num_empty:
            notices.append(f"{num_empty:,} empty texts are left out")
        if made.num_replaced:
            notices.append(f"{made.num_replaced:,} words were corrected")
        if made.num_truncated:
            notices.append(f"{made.num_truncated:,} of {made.num_texts:,} texts were too long and were cut")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is among the notes
            notices += _save_whole(made.model, out.resolve())
        for notice in notices:
            on_event(message(notice))
        return WhitenedModel(made, out, temporary)


def _save_whole(model: Pretrained, out: Path) -> list[str]:
    """All of the folder or nothing. An empty folder that exists stays the same folder: a shell may be in it."""
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


class WhitenedModel(Result):
    """The `model`, and the `folder` it is in."""

    def __init__(self, made: Whitened, folder: Path, temporary: Temporary | None = None):
        self.made, self.model, self.folder, self._temporary = made, made.model, folder, temporary

    @property
    def width(self) -> int:
        assert self.model.settings is not None and self.model.settings.projection is not None
        return len(self.model.settings.projection.weight)

    def to_json(self) -> Any:
        made = self.made
        counts = {"num_texts": made.num_texts, "num_truncated": made.num_truncated, "num_replaced": made.num_replaced}
        return {"folder": str(self.folder), "width": self.width, **counts}

    def parts(self) -> Iterable[str]:
        yield f"{self.folder}: vectors of {self.width:,} numbers, whitened with {self.made.num_texts:,} texts"


def whiten(
    model: Any,
    texts: Any,
    *,
    out: str | Path | None = None,
    size: int | None = None,
    max_length: int | None = None,
    column: str | None = None,
    format: str | None = None,
    device: DeviceName | None = None,
    on_event: OnEvent = warn,
) -> WhitenedModel:
    """Spreads a model's vectors evenly in all directions, by a file of texts or an iterable of texts.

    `model` is a folder or a loaded model.

    >>> texts = [f"text {number} of {40 - number}" for number in range(40)]
    >>> bertie.whiten("my-model", texts, size=3).model.encode("one text").shape
    (3,)
    """
    job = WhitenJob.of(
        model=model,
        texts=texts,
        out=out,
        size=size,
        max_length=max_length,
        column=column,
        format=format,
        device=device,
    )
    return job.run(on_event)
