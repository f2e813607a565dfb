"""HFLayout: the two-way table between bertie's names of weights and those of a Hugging Face folder."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bertie.models.recipe import Recipe
from bertie.tasks.task import Task

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """One tensor of ours and the one or more of theirs that, one below the other, make it."""

    ours: str
    theirs: tuple[str, ...]
    shape: tuple[int, ...] | None = None  # of each of theirs, where it is not a part of ours as it is
    turned: bool = False  # theirs, as a matrix with their first axis for rows, is the transpose of ours

    def join(self, tensors: Sequence[Tensor], whole: torch.Size | None = None) -> Tensor:
        """`whole` is the shape of ours; it must be given where theirs have a shape of their own."""
        if self.shape is not None:
            assert whole is not None
            tensors = [tensor.flatten(1).T if self.turned else tensor.reshape(self._part(whole)) for tensor in tensors]
        return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))

    def part_shape(self, whole: torch.Size) -> torch.Size:
        """The shape of each of theirs."""
        return self._part(whole) if self.shape is None else torch.Size(self.shape)

    def split(self, tensor: Tensor) -> list[Tensor]:
        parts = [tensor] if len(self.theirs) == 1 else list(tensor.chunk(len(self.theirs)))
        if self.shape is None:
            return parts
        return [(part.T if self.turned else part).reshape(self.shape) for part in parts]

    def _part(self, whole: torch.Size) -> torch.Size:
        return whole if len(self.theirs) == 1 else torch.Size((whole[0] // len(self.theirs), *whole[1:]))


@dataclass(frozen=True)
class Companion:
    """A model within the model, which has a folder of its own inside the folder."""

    prefix: str  # of its parts' names in ours
    recipe: Recipe


@dataclass(frozen=True)
class HFLayout:
    """How one architecture is read and written."""

    recipe: Callable[[Config, frozenset[str]], Recipe]  # config and the names in the file -> recipe
    config: Callable[[Recipe], dict[str, Any] | None]  # None where that architecture cannot express the recipe
    entries: Callable[[Recipe], list[Entry]]
    prefix: str  # that a model with heads puts before its encoder's names
    kinds: frozenset[str]  # objectives whose heads have a name there; others are kept apart, under bertie's names
    renamed: Mapping[str, str] = field(default_factory=dict)  # older spellings: pattern -> today's
    ignored: tuple[str, ...] = ()  # patterns of tensors that carry nothing: buffers and copies of tied weights
    companions: Callable[[Recipe], Mapping[str, Companion]] = field(default=lambda recipe: {})  # by folder
    fitting: Callable[[Task, Config], Task] = field(
        default=lambda task, config: task
    )  # with the head that it has there

    def canonical(self, name: str) -> str:
        """Today's spelling, with the prefix, of a name found in a file."""
        for pattern, today in self.renamed.items():
            name = re.sub(pattern, today, name)
        return name

    def is_ignored(self, name: str) -> bool:
        return any(re.fullmatch(pattern, name) for pattern in self.ignored)

    def known(self, recipe: Recipe) -> Recipe:
        """With those objectives alone that have a name there. A task's head has a class of its own: it is alone."""
        for task in (one for one in recipe.objectives if isinstance(one, Task)):
            alone = recipe.replace(objectives=(task,))
            if self.config(alone) is not None:
                return alone
        return recipe.replace(objectives=tuple(one for one in recipe.objectives if one.kind in self.kinds))


def both(ours: str, theirs: str) -> list[Entry]:
    """A linear layer or a norm."""
    return [Entry(f"{ours}.{last}", (f"{theirs}.{last}",)) for last in ("weight", "bias")]


def weights(ours: str, theirs: str, bias: bool) -> list[Entry]:
    """A linear layer or a norm that may have no bias."""
    return both(ours, theirs) if bias else [only(f"{ours}.weight", f"{theirs}.weight")]


def only(ours: str, theirs: str) -> Entry:
    return Entry(ours, (theirs,))
