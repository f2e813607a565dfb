"""Writes blocks of tokenized documents to Arrow IPC files, one row a document, and reads them as views of the mapped
file.

Axes: T tokens, S sentences and D documents of a block; n tokens and s sentences of one document.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bertie.data.manifest import ShardEntry
from bertie.disk import atomic_file, sha256_of
from bertie.errors import FolderError

SHORT_IDS = 1 << 16  # a vocabulary up to this size has ids of two bytes


@dataclass(frozen=True)
class CorpusDocument:
    """One document. `ids` is a view of the file and cannot be written to."""

    ids: np.ndarray  # [n] uint16 or uint32
    sentences: np.ndarray  # [s] uint32, the first token of each sentence
    words: np.ndarray  # [n] bool, True where a token begins a word
    name: str

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def word_numbers(self) -> np.ndarray:
        """[n] int64: tokens of one word have one number, from 0."""
        return np.cumsum(self.words, dtype=np.int64) - 1


@dataclass(frozen=True)
class Block:
    """Documents one after another: what the file holds as one record batch."""

    ids: np.ndarray  # [T]
    words: np.ndarray  # [T] bool
    lengths: np.ndarray  # [D] tokens of each document
    sentences: np.ndarray  # [S] first token of each sentence, counted within its document
    num_sentences: np.ndarray  # [D] sentences of each document
    names: list[str]  # [D]

    @staticmethod
    def of(documents: Iterable[CorpusDocument]) -> "Block":
        rows = list(documents)
        empty = np.zeros(0, np.uint32)
        return Block(
            ids=np.concatenate([row.ids for row in rows]) if rows else empty,
            words=np.concatenate([row.words for row in rows]) if rows else empty.astype(bool),
            lengths=np.array([len(row.ids) for row in rows], dtype=np.int64),
            sentences=np.concatenate([row.sentences for row in rows]) if rows else empty,
            num_sentences=np.array([len(row.sentences) for row in rows], dtype=np.int64),
            names=[row.name for row in rows],
        )


def id_type(vocabulary_size: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if vocabulary_size <= SHORT_IDS else np.uint32)


def shard_schema(vocabulary_size: int) -> pa.Schema:
    numbers = pa.from_numpy_dtype(id_type(vocabulary_size))
    return pa.schema(
        [
            pa.field("ids", pa.large_list(pa.field("item", numbers, nullable=False)), nullable=False),
            pa.field("sentences", pa.large_list(pa.field("item", pa.uint32(), nullable=False)), nullable=False),
            pa.field("words", pa.large_list(pa.field("item", pa.bool_(), nullable=False)), nullable=False),
            pa.field("name", pa.string(), nullable=False),
        ]
    )


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """[D + 1] where each row begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def record_batch(block: Block, schema: pa.Schema) -> pa.RecordBatch:
    ids = block.ids.astype(schema.field("ids").type.value_type.to_pandas_dtype(), copy=False)
    values = (ids, block.sentences.astype(np.uint32, copy=False), block.words)
    offsets = [offsets_of(lengths) for lengths in (block.lengths, block.num_sentences, block.lengths)]
    columns = [
        pa.LargeListArray.from_arrays(_numbers(begins), _numbers(numbers), type=field.type)
        for begins, numbers, field in zip(offsets, values, schema, strict=False)
    ]
    return pa.RecordBatch.from_arrays([*columns, _strings(block.names)], schema=schema)


# From buffers, since `pa.array` imports pandas where it is installed: a quarter second and 55 MB in every worker.


def _numbers(values: np.ndarray) -> pa.Array:
    kind = pa.from_numpy_dtype(values.dtype)
    plain = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(plain)])


def _strings(texts: Sequence[str]) -> pa.Array:
    encoded = [text.encode() for text in texts]
    begins = np.cumsum([0, *(len(text) for text in encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(begins), pa.py_buffer(b"".join(encoded)))


def write_shard(path: Path, blocks: Iterable[Block], vocabulary_size: int) -> ShardEntry:
    """The same blocks give the same bytes. The file is there whole or not at all."""
    schema = shard_schema(vocabulary_size)
    documents = sentences = words = tokens = 0
    with atomic_file(path) as file, pa.ipc.new_file(pa.PythonFile(file, "w"), schema) as writer:
        for block in blocks:
            writer.write_batch(record_batch(block, schema))
            documents += len(block.lengths)
            sentences += len(block.sentences)
            words += int(block.words.sum())
            tokens += len(block.ids)
    return ShardEntry(
        name=path.name,
        num_bytes=path.stat().st_size,
        sha256=sha256_of(path),
        num_documents=documents,
        num_sentences=sentences,
        num_words=words,
        num_tokens=tokens,
    )


class _Batch:
    """One record batch as numpy views."""

    def __init__(self, batch: pa.RecordBatch):
        self.ids_at, self.ids = self._list(batch.column(0))
        self.sentences_at, self.sentences = self._list(batch.column(1))
        words = batch.column(2)
        self.bits_at = words.values.offset
        self.bits = np.frombuffer(words.values.buffers()[1] or b"", np.uint8)
        self.names = batch.column(3)

    @staticmethod
    def _list(column: Any) -> tuple[np.ndarray, np.ndarray]:
        return column.offsets.to_numpy(), column.values.to_numpy()

    def document(self, row: int) -> CorpusDocument:
        start, end = int(self.ids_at[row]), int(self.ids_at[row + 1])
        first, last = int(self.sentences_at[row]), int(self.sentences_at[row + 1])
        bit = self.bits_at + start
        bits = np.unpackbits(self.bits[bit // 8 : (self.bits_at + end + 7) // 8], bitorder="little")
        words = bits[bit % 8 : bit % 8 + end - start].view(bool)
        return CorpusDocument(self.ids[start:end], self.sentences[first:last], words, self.names[row].as_py())


class Shard:
    """One file, mapped: a document costs what is read of it."""

    def __init__(self, path: Path):
        try:
            self._file = pa.ipc.open_file(pa.memory_map(str(path)))
            batches = [self._file.get_batch(number) for number in range(self._file.num_record_batches)]
            self._batches = [_Batch(batch) for batch in batches]
        except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
            hint = "bertie corpus verify shows what else is broken; build the corpus again"
            raise FolderError(f"the shard cannot be read ({error})", where=str(path), hint=hint) from None
        self._begins = offsets_of(np.array([batch.num_rows for batch in batches], dtype=np.int64))

    @property
    def num_documents(self) -> int:
        return int(self._begins[-1])

    @property
    def lengths(self) -> np.ndarray:
        """[documents] int64, tokens of each."""
        rows = [np.diff(batch.ids_at) for batch in self._batches]
        return np.concatenate(rows) if rows else np.zeros(0, np.int64)

    @property
    def sentence_counts(self) -> np.ndarray:
        """[documents] int64, sentences of each."""
        rows = [np.diff(batch.sentences_at) for batch in self._batches]
        return np.concatenate(rows) if rows else np.zeros(0, np.int64)

    def document(self, row: int) -> CorpusDocument:
        number = int(np.searchsorted(self._begins, row, side="right")) - 1
        return self._batches[number].document(row - int(self._begins[number]))

    def __iter__(self) -> Iterator[CorpusDocument]:
        return (self.document(row) for row in range(self.num_documents))

    def faults(self, vocabulary_size: int) -> list[str]:
        """What is wrong with the structure, as sentences; [] where all is well."""
        found = []
        for row, document in enumerate(self):
            starts = document.sentences
            if len(document) == 0 or len(starts) == 0:
                found.append(f"document {row} is empty")
            elif int(document.ids.max()) >= vocabulary_size:
                found.append(f"document {row} has the id {int(document.ids.max())}, the vocabulary {vocabulary_size}")
            elif starts[0] != 0 or bool(np.any(np.diff(starts.astype(np.int64)) <= 0)) or starts[-1] >= len(document):
                found.append(f"document {row} has sentences that do not follow each other")
            elif not document.words[starts].all():
                found.append(f"document {row} has a sentence that begins within a word")
        return found
