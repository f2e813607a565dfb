"""Holds what data hands to tensors: Sample (numpy, one row), Batch (torch, many rows), Ragged (their values).

Rows are stored flat, one after another. Padding exists only inside a kernel that needs a rectangle.

Values may be on any device. Lengths stay on the CPU: where rows begin and end is known there without asking a GPU.

Axes: B rows, T tokens of all rows, L longest row, P things to predict.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor

from bertie.devices import CPU, FlatRows, copied


@dataclass(frozen=True)
class Ragged:
    """Rows of different length, stored flat. `lengths` are on the CPU; all else is where the values are."""

    values: Tensor  # [T, ...]
    lengths: Tensor  # [B] int64

    def __post_init__(self) -> None:
        if self.lengths.device != CPU:
            object.__setattr__(self, "lengths", self.lengths.to(CPU))

    @classmethod
    def of(cls, rows: Iterable[Tensor | np.ndarray | Sequence[int]]) -> "Ragged":
        tensors = [row if isinstance(row, Tensor) else torch.from_numpy(_wide(row)) for row in rows]
        if not tensors:
            return Ragged(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
        return Ragged(torch.cat(tensors), torch.tensor([len(row) for row in tensors]))

    @property
    def num_rows(self) -> int:
        return len(self.lengths)

    @cached_property
    def sizes(self) -> list[int]:
        """The lengths as plain integers."""
        return self.lengths.tolist()

    @cached_property
    def longest(self) -> int:
        return max(self.sizes, default=0)

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def layout(self) -> "Ragged":
        """The same rows on the CPU, without their values: what follows from lengths alone is computed there."""
        return self if self.device == CPU else self._rows_alone

    @property
    def host(self) -> "Ragged":
        """The same values on the CPU: as they were before they were moved, else a copy that waits for the device."""
        return self if self.device == CPU else self._moved_from

    @cached_property
    def _rows_alone(self) -> "Ragged":
        return Ragged(torch.empty(len(self.values), 0), self.lengths)

    @cached_property
    def _moved_from(self) -> "Ragged":
        return replace(self, values=self.values.to(CPU))

    @cached_property
    def lengths_here(self) -> Tensor:
        """[B] the lengths beside the values."""
        return copied(self.lengths, self.device)

    @cached_property
    def starts(self) -> Tensor:
        """[B] where each row starts in `values`."""
        if self.layout is not self:
            return copied(self.layout.starts, self.device)
        return self.lengths.cumsum(0) - self.lengths

    @cached_property
    def row_ids(self) -> Tensor:
        """[T] the row of each value."""
        if self.layout is not self:
            return copied(self.layout.row_ids, self.device)
        return torch.repeat_interleave(torch.arange(len(self.lengths)), self.lengths, output_size=len(self.values))

    @cached_property
    def positions(self) -> Tensor:
        """[T] the position of each value in its row."""
        if self.layout is not self:
            return copied(self.layout.positions, self.device)
        return torch.arange(len(self.values)) - self.starts[self.row_ids]

    @cached_property
    def flat_rows(self) -> FlatRows:
        """What kernels that take flat rows need to know of them."""
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), self.lengths.cumsum(0)])
        return FlatRows(copied(offsets, self.device), min(self.sizes, default=0), self.longest)

    def numbered(self) -> "Ragged":
        """The same rows with the position of each value, which the CPU knows, too."""
        numbered = self.with_values(self.positions)
        if self.device != CPU:
            numbered.__dict__["_moved_from"] = self.layout.with_values(self.layout.positions)
        return numbered

    def rows(self) -> list[Tensor]:
        return list(self.values.split(self.sizes))

    def with_values(self, values: Tensor) -> "Ragged":
        """Returns other values for the same rows, keeping what was computed about the rows."""
        other = Ragged(values, self.lengths)
        there = ("lengths_here", "starts", "row_ids", "positions", "flat_rows") if values.device == self.device else ()
        for name in ("sizes", "longest", *there):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        if self.device != CPU and other.device != CPU:
            other.__dict__["_rows_alone"] = self._rows_alone
        return other

    def pad(self, value: float = 0) -> Tensor:
        """[B, L, ...]"""
        shape = (self.num_rows, self.longest, *self.values.shape[1:])
        if self.num_rows * self.longest == len(self.values):
            return self.values.view(shape)
        padded = self.values.new_full(shape, value)
        padded[self.row_ids, self.positions] = self.values
        return padded

    def unpad(self, rectangle: Tensor) -> "Ragged":
        """The inverse of `pad` for any rectangle [B, L, ...] over the same rows."""
        if self.num_rows * self.longest == len(self.values):
            return self.with_values(rectangle.reshape(-1, *rectangle.shape[2:]))
        return self.with_values(rectangle[self.row_ids, self.positions])

    def join(self, other: "Ragged") -> "Ragged":
        """Appends the other's values to these, row by row."""
        if not self.num_rows:
            return self
        return Ragged.of([torch.cat(pair) for pair in zip(self.rows(), other.rows(), strict=True)])

    def last(self, count: int) -> "Ragged":
        """Returns the last `count` values of each row."""
        rows = self.layout
        keep = rows.positions >= (rows.lengths - count).clamp(min=0)[rows.row_ids]
        return Ragged(self.values[copied(keep.nonzero()[:, 0], self.device)], self.lengths.clamp(max=count))

    def to(self, device: torch.device | str) -> Self:
        """The same rows with their values on a device; these themselves where they are there."""
        values = copied(self.values, device)
        if values is self.values:
            return self
        moved = replace(self, values=values)
        if self.device == CPU:
            moved.__dict__["_moved_from"] = self
        return moved


@dataclass(frozen=True)
class Pointers(Ragged):
    """Flat indices into the values of another field: what to predict, which pieces bound a span, ..."""

    into: str = "tokens"


@dataclass(frozen=True)
class Places:
    """The numpy side of Pointers: places in one sample's own row of another field."""

    into: str
    positions: np.ndarray  # [P]


Sample = Mapping[str, np.ndarray | Places]
Field = Ragged | Tensor
TOKEN_FIELDS = ("tokens", "source", "target")  # the sequences that a model reads; their tokens are counted
PART_FIELDS = ("texts", "candidates")  # lengths of the parts of a row: they stay on the CPU, as all lengths do


@dataclass(frozen=True)
class Batch:
    """Named fields of many rows. What to predict is Pointers into a field, and the targets in a field beside it.

    `only` is the name of the one objective that the batch is for; None: it is for all objectives of the model.
    """

    fields: Mapping[str, Field] = field(default_factory=dict)
    only: str | None = None

    def __getitem__(self, name: str) -> Field:
        return self.fields[name]

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def ragged(self, name: str) -> Ragged:
        found = self.fields[name]
        if not isinstance(found, Ragged):
            raise TypeError(f"field {name!r} has one value a row, not rows of values")
        return found

    @property
    def row_sizes(self) -> list[int]:
        """How many tokens each row has, over all sequences that a model reads."""
        found = [self.ragged(name).sizes for name in TOKEN_FIELDS if name in self.fields]
        return [sum(sizes) for sizes in zip(*found, strict=True)]

    @property
    def num_tokens(self) -> int:
        return sum(len(self.tensor(name)) for name in TOKEN_FIELDS if name in self.fields)

    def tensor(self, name: str) -> Tensor:
        """Returns the plain numbers of a field: one a row, or all rows' values, flat."""
        found = self.fields[name]
        return found.values if isinstance(found, Ragged) else found

    def with_fields(self, fields: Mapping[str, Field]) -> "Batch":
        return replace(self, fields={**self.fields, **fields})

    def renamed(self, names: Mapping[str, str]) -> "Batch":
        """Returns only these fields, under new names: `renamed({"source": "tokens"})` shows an encoder the source."""
        return replace(self, fields={new: self.fields[old] for old, new in names.items()})

    def to(self, device: torch.device | str) -> "Batch":
        """The batch with its values on a device; itself where they are there."""
        moved = {
            name: value.to(device) if isinstance(value, Ragged) else copied(value, device)
            for name, value in self.fields.items()
            if name not in PART_FIELDS
        }
        if all(moved[name] is self.fields[name] for name in moved):
            return self
        whole = replace(self, fields={**self.fields, **moved})
        whole.__dict__["_moved_from"] = self.host
        return whole

    @property
    def host(self) -> "Batch":
        """The batch as it was before it was moved."""
        found: Batch = self.__dict__.get("_moved_from", self)
        return found

    @cached_property
    def known(self) -> dict[object, Tensor]:
        """What was computed from its fields, so that it is computed once."""
        return {}


def collate(samples: Sequence[Sample]) -> Batch:
    """Turns samples of the same fields into one batch: scalars a Tensor [B], arrays a Ragged, Places flat Pointers."""
    return Batch({name: _collate_field(name, samples) for name in samples[0]})


def num_sample_tokens(sample: Sample) -> int:
    """Counts the tokens of one sample, over all sequences that a model reads."""
    return sum(len(cast(np.ndarray, sample[name])) for name in TOKEN_FIELDS if name in sample)


def _collate_field(name: str, samples: Sequence[Sample]) -> Field:
    column = [sample[name] for sample in samples]
    first = column[0]
    places = [value for value in column if isinstance(value, Places)]
    arrays = [np.asarray(value) for value in column if not isinstance(value, Places)]
    if places and arrays:
        raise TypeError(f"field {name!r} must hold places in every sample or in none")
    if isinstance(first, Places):
        pointed = [sample[first.into] for sample in samples]
        if any(isinstance(value, Places) for value in pointed):
            raise TypeError(f"field {name!r}: a field of places cannot be pointed into")
        starts = np.cumsum([0] + [len(cast(np.ndarray, value)) for value in pointed[:-1]])
        shifted = [place.positions + start for place, start in zip(places, starts, strict=True)]
        flat = Ragged.of([row.astype(np.int64) for row in shifted])
        return Pointers(flat.values, flat.lengths, into=first.into)
    if np.ndim(first) == 0:
        return torch.from_numpy(_wide(np.stack(arrays)))
    return Ragged.of(arrays)


def _wide(values: np.ndarray | Sequence[int]) -> np.ndarray:
    """Widens integers to int64, however they were stored; an empty list counts as integers, too."""
    array = np.asarray(values)
    whole = array.dtype.kind in "iu" or (not isinstance(values, np.ndarray) and array.size == 0)
    return array.astype(np.int64) if whole else array
