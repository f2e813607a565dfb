"""Stored features: a frozen encoder and labelled rows enter, a file of features leaves, and examples that have theirs.

The encoder runs once over all rows. What the top needs of each is appended to one file of float32 numbers, in the order
of the rows, which is mapped into memory when it is whole. Its name has a digest of all that decides the numbers: every
run over the same rows finds it. Until it is whole it has another name, and its length says how far it got.

Axes: N rows, S samples, V vectors that are kept of them, F numbers of a vector.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import torch

from bertie.batch import Batch, Places, Ragged, Sample, collate
from bertie.data.batching import batches_by_length
from bertie.data.manifest import sync_folder, write_whole
from bertie.errors import FolderError, InputError, SpecError
from bertie.models.filling import kept_tensors
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.nn.encoder import Encoder
from bertie.nn.feature_top import FEATURES, FeatureTopSpec
from bertie.nn.heads import SequenceHeadSpec
from bertie.nn.pooling import mean_token
from bertie.objectives.objective import FIRST, places_in
from bertie.progress import progress_line
from bertie.tasks.task import Example, Task
from bertie.train.finetuning import Job, task_model
from bertie.train.task_data import Examples

FOLDER = "features"  # of the store, where no other is named
VERSION = 1
FLOAT_BYTES = 4
BATCH_TOKENS = 4096
WINDOW_BYTES, WINDOW_ROWS = 1 << 26, 1024  # written at once: rows that are sorted by length together, lost by a kill
OTHER_DISK = "name a folder on another disk with --feature-store"

Tell = Callable[[str], None]


def store_features(folder: Path, pretrained: Pretrained, jobs: Sequence[Job], top: FeatureTopSpec, tell: Tell) -> None:
    """From now on the examples of all jobs have their features, as a model with this top asks for them."""
    model = task_model(pretrained, [job.task for job in jobs], seed=0, top=top).eval()
    tasks = {task.kind: task for task in model.recipe.objectives if isinstance(task, Task)}
    for job in jobs:
        check_reads_samples(model, tasks[job.task.kind], job.train)
    store = FeatureStore(folder, model, tell)
    for job in jobs:
        for examples in (job.train, job.dev):
            if examples is not None:
                store.attach(tasks[job.task.kind], examples)


class FeatureStore:
    """A folder of such files."""

    def __init__(self, folder: Path, model: Model, tell: Tell):
        assert model.recipe.encoder.top is not None
        self.folder, self.model, self.tell = folder, model, tell
        spec, self.top = model.recipe.encoder, model.recipe.encoder.top
        self.width = self.top.feature_width(spec.width, spec.stack.depth)  # F

    def attach(self, task: Task, examples: Examples) -> None:
        """Computes the features of all rows, unless they are there."""
        keeper = Keeper.of(self.model, task)
        index = Index.of(examples, keeper, f"{VERSION} {self.encoder_digest} {self.top.layers}".encode())
        name = examples.data.rows.name
        if not index.num_vectors:
            raise InputError("no row can be used", where=name)
        path = self.folder / f"{self.top.layers}-{index.digest[:16]}.f32"
        size = index.num_vectors * self.width * FLOAT_BYTES
        told = f"features of {index.num_rows:,} rows ({index.num_tokens:,} tokens) of {name}"
        if has_size(path, size):
            self.tell(f"{told} are there already: {path}")
        else:
            self.tell(f"{told} take {size / 1e6:,.1f} MB: {path}")
            try:
                self._write(path, size, index, keeper, examples)
            except OSError as error:
                reason = error.strerror or str(error)
                what = f"features cannot be stored ({reason})"
                raise FolderError(what, where=str(self.folder), hint=OTHER_DISK) from None
        # Private pages: torch wants arrays that could be written to. Nobody does.
        mapped = np.asarray(np.memmap(path, np.float32, "c", shape=(index.num_vectors, self.width)))

        def complete(number: int, example: Example) -> Example:
            return replace(example, samples=index.with_features(number, example.samples, mapped))

        examples.completed_by(complete)

    @cached_property
    def encoder_digest(self) -> str:
        """Of what lies below the top."""
        spec = self.model.recipe.encoder
        total = hashlib.sha256(f"{spec.width} {spec.embeddings.to_json()} {spec.stack.to_json()}".encode())
        below = tuple(f"encoder.{begin}" for begin in self.model.encoder.frozen)
        for name, tensor in kept_tensors(self.model).items():
            if name.startswith(below):
                total.update(name.encode())
                total.update(tensor.detach().contiguous().cpu().numpy().data)
        return total.hexdigest()

    def _write(self, path: Path, size: int, index: "Index", keeper: "Keeper", examples: Examples) -> None:
        """Goes on where a kill cut it short. Where another process is at it, its file is waited for."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part, begun = path.with_suffix(".part"), time.monotonic()
        self._check_room(size - (part.stat().st_size if part.exists() else 0))
        with part.open("ab") as file:
            self._lock(file)
            if has_size(path, size):
                if os.fstat(file.fileno()).st_size == 0:  # the other one's has its own name by now
                    part.unlink(missing_ok=True)
                return
            self._append(file, index, keeper, examples)
            os.fsync(file.fileno())
            part.replace(path)
        sync_folder(self.folder)
        facts = {
            "of": examples.data.rows.name,
            "features": self.top.layers,
            "rows": index.num_rows,
            "tokens": index.num_tokens,
            "vectors": [index.num_vectors, self.width],
            "bytes": size,
            "seconds": round(time.monotonic() - begun, 3),
        }
        write_whole(path.with_suffix(".json"), (json.dumps(facts, indent=1) + "\n").encode())

    def _lock(self, file: BinaryIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.tell("another run is computing these features: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)

    def _check_room(self, needed: int) -> None:
        if needed > (free := shutil.disk_usage(self.folder).free):
            raise FolderError(
                f"the features take {needed / 1e9:.2f} GB, the disk has {free / 1e9:.2f} GB",
                where=str(self.folder),
                hint=f"{OTHER_DISK}, or choose fewer layers or a shorter --length",
            )

    def _append(self, file: BinaryIO, index: "Index", keeper: "Keeper", examples: Examples) -> None:
        ends = index.begins[index.rows] * self.width * FLOAT_BYTES  # [N + 1] bytes before each row
        done = os.fstat(file.fileno()).st_size
        first = int(np.searchsorted(ends, done, side="right")) - 1
        file.truncate(int(ends[first]))
        if first:
            self.tell(f"going on after {first:,} rows")
        with progress_line("Computing features", index.num_samples - int(index.rows[first]), "samples") as advance:
            while first < index.num_rows:
                near = int(np.searchsorted(ends, ends[first] + WINDOW_BYTES, side="right")) - 1
                last = min(max(near, first + 1), first + WINDOW_ROWS, index.num_rows)
                read = [examples.example(number) for number in range(first, last)]
                samples = [sample for example in read if example is not None for sample in example.samples]
                for vectors in keeper.kept_of_all(samples, advance):
                    file.write(np.ascontiguousarray(vectors, np.float32).data)
                first = last
            file.flush()


@dataclass(frozen=True)
class Keeper:
    """Which of a sample's features are kept: as few as the top and the head need."""

    encoder: Encoder
    fields: tuple[str, ...]  # of a sample, that the encoder and the keeper read
    looks_at: tuple[str, ...] | None = None  # as a task says it; None: all tokens
    mean: bool = False  # all tokens, as one vector

    @classmethod
    def of(cls, model: Model, task: Task) -> "Keeper":
        assert model.encoder.top is not None
        read = ("tokens", "segments", *model.recipe.encoder.embeddings.fields)  # scores may ask for segments, too
        if model.encoder.top.reads_rows:
            return cls(model.encoder, tuple(dict.fromkeys(read)))
        head = getattr(task, "head", None)
        mean = isinstance(head, SequenceHeadSpec) and head.tokens == "mean"
        looks_at = tuple(name for name in task.looks_at or () if name != FIRST)
        return cls(model.encoder, tuple(dict.fromkeys([*read, *looks_at])), task.looks_at, mean)

    def read_of(self, sample: Sample) -> Sample:
        """What decides the features, and nothing else: a label may be mended."""
        return {name: sample[name] for name in self.fields if name in sample}

    def count(self, sample: Sample) -> int:
        """The vectors of one sample."""
        num_tokens = len(cast(np.ndarray, sample["tokens"]))
        if self.mean or self.looks_at is None:
            return 1 if self.mean else num_tokens
        places = [[0][:num_tokens] if name == FIRST else _positions(sample[name]) for name in self.looks_at]
        return len(np.unique(np.concatenate(places)))

    def kept(self, batch: Batch) -> Ragged:
        """[V, F]"""
        features = self.encoder.features(batch)
        if self.mean:
            return Ragged(mean_token(features), torch.ones_like(features.lengths))
        if self.looks_at is None:
            return features
        places = places_in(self.looks_at, batch)
        counts = torch.bincount(features.row_ids[places], minlength=features.num_rows)
        return Ragged(features.values[places], counts)

    def kept_of_all(self, samples: Sequence[Sample], advance: Callable[[int], None]) -> list[np.ndarray]:
        """[V, F] of each, in their order; `advance` is told how many more are done."""
        found: dict[int, np.ndarray] = {}
        device = next(self.encoder.parameters()).device
        lengths = np.array([len(cast(np.ndarray, sample["tokens"])) for sample in samples])
        with torch.inference_mode():
            for rows in batches_by_length(lengths, BATCH_TOKENS):
                batch = collate([self.read_of(samples[row]) for row in rows]).to(device)
                found |= zip(rows.tolist(), (one.cpu().numpy() for one in self.kept(batch).rows()), strict=True)
                advance(len(rows))
        return [found[number] for number in range(len(samples))]


@dataclass(frozen=True)
class Index:
    """Where in the file the features of every sample are."""

    digest: str  # of all that decides them
    rows: np.ndarray  # [N + 1] samples before each row
    begins: np.ndarray  # [S + 1] vectors before each sample
    num_tokens: int

    @classmethod
    def of(cls, examples: Examples, keeper: Keeper, key: bytes) -> "Index":
        """`key` is what decides them beside the rows."""
        total = hashlib.sha256(key + f" {keeper.fields} {keeper.looks_at} {keeper.mean}".encode())
        rows, counts, num_tokens = [0], [0], 0
        with progress_line("Reading rows", examples.num_samples, "rows") as advance:
            for number in range(examples.num_samples):
                example = examples.example(number)
                samples = example.samples if example is not None else ()
                for sample in samples:
                    for name, value in keeper.read_of(sample).items():
                        numbers = np.ascontiguousarray(_positions(value), np.int64)
                        total.update(f"{name} {len(numbers)} ".encode())
                        total.update(numbers.data)
                    counts.append(keeper.count(sample))
                    num_tokens += len(cast(np.ndarray, sample["tokens"]))
                rows.append(len(counts) - 1)
                total.update(f"row {len(samples)} ".encode())
                advance(1)
        return cls(total.hexdigest(), np.array(rows), np.cumsum(counts), num_tokens)

    @property
    def num_rows(self) -> int:
        return len(self.rows) - 1

    @property
    def num_samples(self) -> int:
        return len(self.begins) - 1

    @property
    def num_vectors(self) -> int:
        return int(self.begins[-1])

    def with_features(self, number: int, samples: Sequence[Sample], mapped: np.ndarray) -> tuple[Sample, ...]:
        """The samples of a row; `mapped` is the file [V, F]."""
        first = int(self.rows[number])
        bounds = self.begins[first : first + len(samples) + 1].tolist()
        found = zip(samples, bounds, bounds[1:], strict=False)
        return tuple({**sample, FEATURES: mapped[begin:end]} for sample, begin, end in found)


def check_reads_samples(model: Model, task: Task, examples: Examples) -> None:
    """Features belong to a sample: a task that makes other rows of it would not find them."""
    read = (examples.example(number) for number in range(examples.num_samples))
    example = next((one for one in read if one is not None), None)
    if example is None:
        return
    batch, asked = collate(example.samples), list[Batch]()
    watching = model.encoder.register_forward_pre_hook(lambda encoder, inputs: asked.append(inputs[0]))
    with torch.inference_mode():
        task.outputs(model.heads[task.kind], model.encoder, batch)
    watching.remove()
    if any(one is not batch for one in asked):
        what = f"{task.kind} reads the texts of a row apart, so that their features cannot be stored"
        raise SpecError(what, hint="leave out --features")


def has_size(path: Path, size: int) -> bool:
    """Else it is not there, or somebody cut it short."""
    return path.exists() and path.stat().st_size == size


def _positions(value: np.ndarray | Places) -> np.ndarray:
    return value.positions if isinstance(value, Places) else np.asarray(value)
