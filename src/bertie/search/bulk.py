"""Turns a file of texts into a file of vectors (row i is text i), in memory that does not grow with them. A run that
was killed continues where it was, and its file has the same bytes as an undisturbed run's."""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from bertie.errors import InputError, UserError
from bertie.reporting.busy import BusyMachine
from bertie.reporting.events import OnEvent, ignore, message, progress, warning
from bertie.search.spool import Journal, Setting, Spool
from bertie.search.vector_files import VectorFile
from bertie.text.reading.files import TextReader, TextRecord, TextSource

# Enough texts for an encoder to sort by length; few enough that a kill costs little.
CHUNK_TEXTS = 2048
CHUNK_CHARACTERS = 100_000


class Encoding(Protocol):
    """What an encoder returns for a list of texts: `vectors` [n, width], and counts that are sums over the list."""

    @property
    def vectors(self) -> np.ndarray: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def num_truncated(self) -> int: ...
    @property
    def num_cut(self) -> int: ...
    @property
    def num_empty(self) -> int: ...
    @property
    def num_replaced(self) -> int: ...


Encode = Callable[[list[str]], Encoding]


@dataclass(frozen=True)
class EmbedReport:
    """What was done. `num_resumed` texts are from earlier runs, whose seconds are counted too."""

    target: str
    num_texts: int
    width: int
    num_tokens: int
    num_truncated: int
    num_cut: int
    num_empty: int
    num_replaced: int  # words that the model's table corrected
    num_resumed: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        return self.num_tokens / self.seconds if self.seconds else 0.0


class EmbedInterrupted(KeyboardInterrupt):
    """Ctrl-C. The chunks before are safe; the message explains how to continue."""


def embed_file(
    encode: Encode,
    source: str | Path | TextSource,
    target: str | Path | VectorFile,
    *,
    settings: Mapping[str, Setting],
    restart: bool = False,
    overwrite: bool = False,
    on_event: OnEvent = ignore,
) -> EmbedReport:
    """Embeds every text of `source`. `settings` name what decides the vectors ("model": its digest, "pooling", ...).
    An unfinished run is continued only under equal settings, and only when the texts that it did are still the same."""
    source = source if isinstance(source, TextSource) else TextSource(source)
    target = target if isinstance(target, VectorFile) else VectorFile(Path(target))
    run = _Run(encode, source, target, settings, on_event)
    with source.read() as reader:
        target.check(source)
        if run.was_finished():
            return run.report()
        run.refuse_existing(overwrite)
        with run.spool:
            run.start(restart)
            try:
                run.embed(reader)
                run.finish()
            except BaseException as error:
                run.tidy()
                if isinstance(error, KeyboardInterrupt):
                    raise EmbedInterrupted(run.interrupt_message()) from None
                raise
            return run.report()


class _Run:
    """One run. `journal` is the last that was written, or an empty one."""

    def __init__(
        self,
        encode: Encode,
        source: TextSource,
        target: VectorFile,
        settings: Mapping[str, Setting],
        on_event: OnEvent,
    ):
        self.encode, self.source, self.target = encode, source, target
        self.on_event = on_event
        self.spool = Spool(target.path, target.dtype)
        # The chunks are among the settings: they decide which texts share a batch, and so a vector's last bits.
        chunk = f"{CHUNK_TEXTS} texts or {CHUNK_CHARACTERS} characters"
        files: dict[str, Setting] = {"column": source.column, "dtype": target.dtype, "with_text": target.with_text}
        self.journal = Journal(source=source.name, settings={**settings, **files, "chunk": chunk})
        self.num_resumed, self.tokens_resumed = 0, 0

    def was_finished(self) -> bool:
        """Only a run that was killed after its last rename leaves a "finishing" journal without a part file."""
        left = self.spool.read_journal() if self.target.path.exists() and not self.spool.part.exists() else None
        if left is None or left.state != "finishing" or left.settings != self.journal.settings:
            return False
        self.journal, self.num_resumed = left, left.num_texts
        self.spool.remove()
        return True

    def refuse_existing(self, overwrite: bool) -> None:
        if overwrite or not self.target.path.exists():
            return
        left = self.spool.read_journal()
        if left is None or left.state != "finishing":
            raise UserError(
                "the file exists already", where=str(self.target.path), hint="give `overwrite` to replace it"
            )

    def start(self, restart: bool) -> None:
        """Continues what an earlier run left, or starts with nothing."""
        if restart:
            self.spool.journal_path.unlink(missing_ok=True)
        left = self.spool.read_journal()
        if left is not None and left.num_texts:
            self._refuse(left, left.differences(self.journal.settings))
            self.journal = left
        self.num_resumed, self.tokens_resumed = self.journal.num_texts, self.journal.num_tokens
        self.spool.rewind(self.journal)

    def embed(self, reader: TextReader) -> None:
        digest, busy = _TextDigest(), BusyMachine(torch.get_num_threads())
        self._skip(reader, digest)
        begin = mark = time.perf_counter()
        self._report_progress(reader, 0.0)
        for records in _chunks(reader):
            texts = [record.text for record in records]
            encoding = self._encode(texts, records[0].line, records[-1].line)
            now = time.perf_counter()
            digest.add(texts)
            self._append(encoding, len(texts), digest.text, now - mark)
            if notice := busy.add_step(now - mark, int(encoding.num_tokens)):
                self.on_event(warning(notice))
            mark = now
            self._report_progress(reader, now - begin)
        for notice in reader.notices:
            self.on_event(message(notice))
        if self.journal.width is None:
            # A file without texts still gives an array with the right width.
            width = self.encode([""]).vectors.shape[1]
            self._save(np.empty((0, width), self.target.dtype), {"width": width, "texts_digest": digest.text})

    def finish(self) -> None:
        finishing = self.journal.model_copy(update={"state": "finishing"})
        with self.spool.guard(finishing.num_texts):
            self.spool.write_journal(finishing)
        self.journal = finishing
        if not self.target.with_text:
            self.target.finish(self.spool, self.journal, None)
            return
        with self.source.read() as reader:
            self.target.finish(self.spool, self.journal, self._same_texts(reader))

    def interrupt_message(self) -> str:
        # From the disk: an interrupt may come between the write and our own note of it.
        safe = self.spool.read_journal() or Journal(source="", settings={})
        again = "with the same input " if self.source.is_stdin else ""
        return f"stopped; {safe.num_texts:,} texts are safe, and the same command {again}continues there"

    def tidy(self) -> None:
        """A run that got nowhere leaves no files. The journal comes with the first safe chunk."""
        if not self.spool.journal_path.exists():
            self.spool.remove()

    def report(self) -> EmbedReport:
        journal = self.journal
        assert journal.width is not None
        return EmbedReport(
            target=str(self.target.path),
            num_texts=journal.num_texts,
            width=journal.width,
            num_tokens=journal.num_tokens,
            num_truncated=journal.num_truncated,
            num_cut=journal.num_cut,
            num_empty=journal.num_empty,
            num_replaced=journal.num_replaced,
            num_resumed=self.num_resumed,
            seconds=journal.seconds,
        )

    def _skip(self, reader: TextReader, digest: "_TextDigest") -> None:
        """Passes the texts whose vectors are safe, and makes sure that they are the same texts."""
        count = 0
        while count < self.journal.num_texts and (record := next(reader, None)) is not None:
            digest.add([record.text])
            count += 1
        if self.journal.num_texts and digest.text != self.journal.texts_digest:
            earlier = "" if self.journal.source == self.source.name else f", which was {self.journal.source}"
            self._refuse(
                self.journal, [f"its first {self.journal.num_texts:,} texts are not those of the input{earlier}"]
            )

    def _encode(self, texts: list[str], first: int, last: int) -> Encoding:
        try:
            encoding = self.encode(texts)
        except InputError as error:
            # The encoder counts in its own list; only here is it known where that stands in the file.
            where = f"{self.source.name}, in lines {first} to {last} (text 0 to {len(texts) - 1})"
            raise InputError(error.what, where=where, hint=error.hint) from error
        if len(encoding.vectors) != len(texts):
            raise ValueError(f"the encoder gave {len(encoding.vectors)} vectors for {len(texts)} texts")
        return encoding

    def _append(self, encoding: Encoding, num_texts: int, digest: str, seconds: float) -> None:
        vectors, done = self.target.convert(encoding.vectors), self.journal
        if done.width not in (None, vectors.shape[1]):
            raise ValueError(f"the encoder gave vectors of width {vectors.shape[1]} after {done.width}")
        counted = {
            "width": vectors.shape[1],
            "texts_digest": digest,
            "num_texts": done.num_texts + num_texts,
            "num_tokens": done.num_tokens + int(encoding.num_tokens),
            "num_truncated": done.num_truncated + int(encoding.num_truncated),
            "num_cut": done.num_cut + int(encoding.num_cut),
            "num_empty": done.num_empty + int(encoding.num_empty),
            "num_replaced": done.num_replaced + int(encoding.num_replaced),
            "seconds": done.seconds + seconds,
        }
        self._save(vectors, counted)

    def _save(self, vectors: np.ndarray, counted: Mapping[str, object]) -> None:
        after = self.journal.model_copy(update=counted)
        self.journal = self.spool.append(vectors, self.journal, after)

    def _same_texts(self, reader: TextReader) -> Iterator[str]:
        """The texts a second time, for the table. They may have changed in between: then it must not be written."""
        digest = _TextDigest()
        for number, record in enumerate(reader, 1):
            digest.add([record.text])
            if number == self.journal.num_texts and digest.text != self.journal.texts_digest:
                break
            yield record.text
            if number == self.journal.num_texts:
                return
        what = "the texts have changed since they were embedded"
        raise InputError(what, where=self.source.name, hint="give `restart` to start over")

    def _refuse(self, left: Journal, reasons: list[str]) -> None:
        if reasons:
            what = f"an unfinished run of {left.num_texts:,} texts does not fit: {'; '.join(reasons)}"
            hint = "give `restart` to start over, or the settings it was started with"
            raise UserError(what, where=str(self.target.path), hint=hint)

    def _report_progress(self, reader: TextReader, seconds: float) -> None:
        tokens = self.journal.num_tokens - self.tokens_resumed
        rate = tokens / seconds if seconds else 0.0
        done, fraction = self.journal.num_texts, reader.fraction
        self.on_event(progress("embedding", done, None, "texts", fraction=fraction, tokens_per_second=rate))


class _TextDigest:
    def __init__(self) -> None:
        self._state = hashlib.blake2b(digest_size=16)

    def add(self, texts: list[str]) -> None:
        for text in texts:
            data = text.encode("utf-8")
            self._state.update(len(data).to_bytes(8, "little"))  # so that "ab","c" and "a","bc" differ
            self._state.update(data)

    @property
    def text(self) -> str:
        return self._state.hexdigest()


def _chunks(reader: TextReader) -> Iterator[list[TextRecord]]:
    records: list[TextRecord] = []
    num_characters = 0
    for record in reader:
        records.append(record)
        num_characters += len(record.text)
        if len(records) >= CHUNK_TEXTS or num_characters >= CHUNK_CHARACTERS:
            yield records
            records, num_characters = [], 0
    if records:
        yield records
