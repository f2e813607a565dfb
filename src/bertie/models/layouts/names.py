"""Names of weights, ours beside theirs: one table reads in both directions.

A table maps a layer, or a single tensor, of bertie to its name in `transformers`; `#` stands for the number of a layer.
Where they keep a tensor of ours in several parts, such as queries, keys and values, the value lists their names in
order. A name that starts with "FOLDER/" lies in a folder inside the model's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Reshaped:
    """One or more tensors that they keep in another shape. Transposed: as matrices, with their first axis as rows, they
    are the transpose of ours."""

    names: tuple[str, ...]
    shape: tuple[int, ...] | None = None  # None: the same as ours, or a part of it
    transposed: bool = False


Names = Mapping[str, "str | tuple[str, ...] | Reshaped"]


@dataclass(frozen=True)
class Entry:
    """One tensor of ours, and the one or more of theirs that, one below the other, make it."""

    ours: str
    theirs: tuple[str, ...]
    shape: tuple[int, ...] | None = None  # of each of theirs, where it is not simply a part of ours
    transposed: bool = False

    def join(self, tensors: Sequence[Tensor], whole: torch.Size) -> Tensor:
        """Theirs to ours."""
        if self.shape is not None:
            tensors = [one.flatten(1).T if self.transposed else one.reshape(-1, *whole[1:]) for one in tensors]
        return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Ours to theirs."""
        parts = [tensor] if len(self.theirs) == 1 else list(tensor.chunk(len(self.theirs)))
        if self.shape is None:
            return parts
        return [(part.T if self.transposed else part).reshape(self.shape) for part in parts]


def entries_of(tensors: Iterable[str], names: Names) -> dict[str, Entry]:
    """Finds the names of tensors in a table; those without a name are left out."""
    entries: dict[str, Entry] = {}
    for ours in tensors:
        layer, _, last = ours.rpartition(".")
        number = re.search(r"(?<=blocks\.)\d+", ours)
        for name, end in ((ours, ""), (layer, f".{last}")):
            pattern = name if number is None else name.replace(f"blocks.{number[0]}.", "blocks.#.", 1)
            found = names.get(name) or names.get(pattern)
            if found is None:
                continue
            if not isinstance(found, Reshaped):
                found = Reshaped((found,) if isinstance(found, str) else found)
            theirs = tuple(part.replace("#", number[0] if number else "#") + end for part in found.names)
            entries[ours] = Entry(ours, theirs, found.shape, found.transposed)
            break
    return entries
