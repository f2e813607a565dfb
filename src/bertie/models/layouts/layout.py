"""HFLayout: the two-way table between bertie's names of weights and those of a Hugging Face folder."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bertie.models.recipe import Recipe

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """One tensor of ours and the one or more of theirs that, one below the other, make it."""

    ours: str
    theirs: tuple[str, ...]

    def join(self, tensors: Sequence[Tensor]) -> Tensor:
        return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))

    def part_shape(self, whole: torch.Size) -> torch.Size:
        """The shape of each of theirs."""
        return whole if len(self.theirs) == 1 else torch.Size((whole[0] // len(self.theirs), *whole[1:]))

    def split(self, tensor: Tensor) -> list[Tensor]:
        return [tensor] if len(self.theirs) == 1 else list(tensor.chunk(len(self.theirs)))


@dataclass(frozen=True)
class HFLayout:
    """How one architecture is read and written."""

    recipe: Callable[[Config, frozenset[str]], Recipe]  # config and the names in the file -> recipe
    config: Callable[[Recipe], dict[str, Any] | None]  # None where that architecture cannot express the recipe
    entries: Callable[[Recipe], list[Entry]]
    prefix: str  # that a model with heads puts before its encoder's names
    renamed: Mapping[str, str] = field(default_factory=dict)  # older spellings: pattern -> today's
    ignored: tuple[str, ...] = ()  # patterns of tensors that carry nothing: buffers and copies of tied weights

    def canonical(self, name: str) -> str:
        """Today's spelling, with the prefix, of a name found in a file."""
        for pattern, today in self.renamed.items():
            name = re.sub(pattern, today, name)
        return name

    def is_ignored(self, name: str) -> bool:
        return any(re.fullmatch(pattern, name) for pattern in self.ignored)
