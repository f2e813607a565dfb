"""Stores the features that a frozen encoder computes for labelled rows, and adds them to examples.

The encoder runs once over all rows. What the top needs of each row is appended to one file of float32 numbers, in the
order of the rows, which is mapped into memory when it is complete. Its name contains a digest of all that decides the
numbers, so every run over the same rows finds it. An incomplete file has another name; its length shows how far it got.

Axes: N rows, S samples, V vectors that are kept of them, F numbers of a vector.
"""

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
from bertie.devices import CPU, copied, device_of
from bertie.disk import lock_file, sync_file, sync_folder, write_file
from bertie.errors import FolderError, InputError, SpecError
from bertie.models.filling import kept_tensors
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.nn.encoder import Encoder
from bertie.nn.feature_top import FEATURES, FeatureTopSpec
from bertie.nn.heads import SequenceHeadSpec
from bertie.nn.pooling import mean_token
from bertie.objectives.objective import FIRST, host_positions_in
from bertie.reporting.events import OnEvent, message, progress
from bertie.tasks.examples import Examples
from bertie.tasks.task import Example, Task
from bertie.train.finetuning.finetuning import PreparedTask, task_model

FOLDER = "features"  # of the store, where no other is named
VERSION = 1
FLOAT_BYTES = 4
BATCH_TOKENS = 4096
REPORT_EVERY = 1000  # rows, in events
WINDOW_BYTES, WINDOW_ROWS = 1 << 26, 1024  # written at once: rows that are sorted by length together, lost by a kill
OTHER_DISK = "name a folder on another disk with `feature_store`"


def store_features(
    folder: Path,
    pretrained: Pretrained,
    tasks: Sequence[PreparedTask],
    top: FeatureTopSpec,
    on_event: OnEvent,
    device: torch.device = CPU,
) -> list[PreparedTask]:
    """The tasks with examples that have the features which a model with this top reads, computed on a device."""
    model = task_model(pretrained, [one.task for one in tasks], seed=0, top=top).eval().to(device)
    by_name = {task.name: task for task in model.recipe.objectives if isinstance(task, Task)}
    for one in tasks:
        check_reads_samples(model, by_name[one.task.name], one.train)
    store, stored = FeatureStore(folder, model, on_event), []
    for one in tasks:
        task = by_name[one.task.name]
        train = store.attach(task, one.train)
        stored.append(replace(one, train=train, dev=one.dev and store.attach(task, one.dev)))
    return stored


class FeatureStore:
    """A folder of such files."""

    def __init__(self, folder: Path, model: Model, on_event: OnEvent):
        assert model.recipe.encoder.top is not None
        self.folder, self.model, self.on_event = folder, model, on_event
        spec, self.top = model.recipe.encoder, model.recipe.encoder.top
        self.width = self.top.feature_width(spec.width, spec.stack.depth)  # F

    def attach(self, task: Task, examples: Examples) -> Examples:
        """The examples with their features, which are computed unless they are stored."""
        keeper = Keeper.of(self.model, task)
        index = Index.of(examples, keeper, self.on_event, f"{VERSION} {self.encoder_digest} {self.top.layers}".encode())
        name = examples.data.rows.name
        if not index.num_vectors:
            raise InputError("no row can be used", where=name)
        path = self.folder / f"{self.top.layers}-{index.digest[:16]}.f32"
        size = index.num_vectors * self.width * FLOAT_BYTES
        what = f"features of {index.num_rows:,} rows ({index.num_tokens:,} tokens) of {name}"
        if has_size(path, size):
            self.on_event(message(f"{what} are stored already: {path}"))
        else:
            self.on_event(message(f"{what} take {size / 1e6:,.1f} MB: {path}"))
            try:
                self._write(path, size, index, keeper, examples)
            except OSError as error:
                reason = error.strerror or str(error)
                raise FolderError(
                    f"features cannot be stored ({reason})", where=str(self.folder), hint=OTHER_DISK
                ) from None
        # Private pages: torch wants writable arrays, although nobody writes to them.
        mapped = np.asarray(np.memmap(path, np.float32, "c", shape=(index.num_vectors, self.width)))

        def complete(number: int, example: Example) -> Example:
            return replace(example, samples=index.with_features(number, example.samples, mapped))

        return examples.completed_by(complete)

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
        """Continues an incomplete file. Where another process writes it, waits for that."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part, begun = path.with_suffix(".part"), time.monotonic()
        self._check_room(size - (part.stat().st_size if part.exists() else 0))
        with part.open("ab") as file:
            lock_file(
                file, path, lambda: self.on_event(message("waiting for another run that computes these features"))
            )
            if has_size(path, size):
                if os.fstat(file.fileno()).st_size == 0:  # the other process has renamed its own
                    part.unlink(missing_ok=True)
                return
            self._append(file, index, keeper, examples)
            sync_file(file)
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
        write_file(path.with_suffix(".json"), (json.dumps(facts, indent=1) + "\n").encode())

    def _check_room(self, needed: int) -> None:
        if needed > (free := shutil.disk_usage(self.folder).free):
            raise FolderError(
                f"the features take {needed / 1e9:.2f} GB, the disk has {free / 1e9:.2f} GB",
                where=str(self.folder),
                hint=f"{OTHER_DISK}, or choose fewer layers or a smaller `max_length`",
            )

    def _append(self, file: BinaryIO, index: "Index", keeper: "Keeper", examples: Examples) -> None:
        ends = index.begins[index.rows] * self.width * FLOAT_BYTES  # [N + 1] bytes before each row
        done = os.fstat(file.fileno()).st_size
        first = int(np.searchsorted(ends, done, side="right")) - 1
        file.truncate(int(ends[first]))
        if first:
            self.on_event(message(f"continuing after {first:,} rows"))
        while first < index.num_rows:
            near = int(np.searchsorted(ends, ends[first] + WINDOW_BYTES, side="right")) - 1
            last = min(max(near, first + 1), first + WINDOW_ROWS, index.num_rows)
            read = [examples.example(number) for number in range(first, last)]
            samples = [sample for example in read if example is not None for sample in example.samples]
            before = int(index.rows[first])

            def advance(count: int, before: int = before) -> None:
                self.on_event(progress("computing features", before + count, index.num_samples, "samples"))

            for vectors in keeper.kept_of_all(samples, advance):
                file.write(np.ascontiguousarray(vectors, np.float32).data)
            first = last
        file.flush()


@dataclass(frozen=True)
class Keeper:
    """Which of a sample's features are kept: as few as the top and the head need."""

    encoder: Encoder
    fields: tuple[str, ...]  # of a sample, that the encoder and the keeper read
    read_positions: tuple[str, ...] | None = None  # those of the task; None: all tokens
    mean: bool = False  # all tokens, as one vector

    @classmethod
    def of(cls, model: Model, task: Task) -> "Keeper":
        assert model.encoder.top is not None
        read = ("tokens", "segments", *model.recipe.encoder.embeddings.fields)  # scores may ask for segments, too
        if model.encoder.top.reads_rows:
            return cls(model.encoder, tuple(dict.fromkeys(read)))
        head = getattr(task, "head", None)
        mean = isinstance(head, SequenceHeadSpec) and head.tokens == "mean"
        read_positions = tuple(name for name in task.read_positions or () if name != FIRST)
        return cls(model.encoder, tuple(dict.fromkeys([*read, *read_positions])), task.read_positions, mean)

    def read_of(self, sample: Sample) -> Sample:
        """What decides the features, and nothing else: a label may be corrected."""
        return {name: sample[name] for name in self.fields if name in sample}

    def count(self, sample: Sample) -> int:
        """The vectors of one sample."""
        num_tokens = len(cast(np.ndarray, sample["tokens"]))
        if self.mean or self.read_positions is None:
            return 1 if self.mean else num_tokens
        places = [[0][:num_tokens] if name == FIRST else _positions(sample[name]) for name in self.read_positions]
        return len(np.unique(np.concatenate(places)))

    def kept(self, batch: Batch) -> Ragged:
        """[V, F]"""
        features = self.encoder.features(batch)
        if self.mean:
            return Ragged(mean_token(features), torch.ones_like(features.lengths))
        if self.read_positions is None:
            return features
        places = host_positions_in(self.read_positions, batch)
        counts = torch.bincount(features.layout.row_ids[places], minlength=features.num_rows)
        return Ragged(features.values[copied(places, features.device)], counts)

    def kept_of_all(self, samples: Sequence[Sample], advance: Callable[[int], None]) -> list[np.ndarray]:
        """[V, F] of each, in their order; `advance` gets how many are done."""
        found: dict[int, np.ndarray] = {}
        device = device_of(self.encoder)
        lengths = np.array([len(cast(np.ndarray, sample["tokens"])) for sample in samples])
        with torch.inference_mode():
            for rows in batches_by_length(lengths, BATCH_TOKENS):
                batch = collate([self.read_of(samples[row]) for row in rows]).to(device)
                kept = self.kept(batch)
                vectors = kept.with_values(kept.values.cpu()).rows()
                found |= zip(rows.tolist(), (one.numpy() for one in vectors), strict=True)
                advance(len(found))
        return [found[number] for number in range(len(samples))]


@dataclass(frozen=True)
class Index:
    """Where in the file the features of every sample are."""

    digest: str  # of all that decides them
    rows: np.ndarray  # [N + 1] samples before each row
    begins: np.ndarray  # [S + 1] vectors before each sample
    num_tokens: int

    @classmethod
    def of(cls, examples: Examples, keeper: Keeper, on_event: OnEvent, key: bytes) -> "Index":
        """`key` is what decides the features beside the rows."""
        total = hashlib.sha256(key + f" {keeper.fields} {keeper.read_positions} {keeper.mean}".encode())
        rows, counts, num_tokens = [0], [0], 0
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
            if number % REPORT_EVERY == 0:
                on_event(progress("reading rows", number + 1, examples.num_samples, "rows"))
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
    """Refuses tasks that encode something else than their samples: features belong to a sample."""
    read = (examples.example(number) for number in range(examples.num_samples))
    example = next((one for one in read if one is not None), None)
    if example is None:
        return
    batch, asked = collate(example.samples).to(device_of(model)), list[Batch]()
    watching = model.encoder.register_forward_pre_hook(lambda encoder, inputs: asked.append(inputs[0]))
    with torch.inference_mode():
        task.outputs(model.heads[task.name], model.encoder, batch)
    watching.remove()
    if any(one is not batch for one in asked):
        what = f"{task.kind} encodes the texts of a row separately, so their features cannot be stored"
        raise SpecError(what, hint="leave out `features`")


def has_size(path: Path, size: int) -> bool:
    """Whether the file is there and complete."""
    return path.exists() and path.stat().st_size == size


def _positions(value: np.ndarray | Places) -> np.ndarray:
    return value.positions if isinstance(value, Places) else np.asarray(value)
