"""HFLayout: how one architecture of `transformers` is read and written: its config, and its names of weights."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from pydantic import ValidationError

from bertie.errors import FolderError, SpecError
from bertie.models.layouts.hf_labels import role_of
from bertie.models.layouts.names import Config, Names, entries_of
from bertie.models.layouts.task_heads import TaskHeads, transform_of
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.objectives.pair_relation import PairRelation
from bertie.tasks.task import Task


@dataclass(frozen=True)
class HFLayout:
    read: Callable[[Config, frozenset[str]], Recipe]  # config and the names in the file -> recipe
    write: Callable[[Recipe], dict[str, Any] | None]  # recipe -> config; None, or an error, where there is none
    names: Callable[[Recipe], Names]  # for a recipe with known objectives alone
    tasks: TaskHeads
    prefix: str  # that a model with heads puts before its encoder's names
    kinds: frozenset[str]  # objectives whose heads have a name there; others are kept apart, under bertie's names
    renamed: Mapping[str, str] = field(default_factory=dict)  # older spellings: pattern -> today's
    ignored: tuple[str, ...] = ()  # patterns of tensors that carry nothing: buffers and copies of tied weights
    companions: Callable[[Recipe], Mapping[str, Recipe]] = lambda recipe: {}  # models inside the model, by folder
    simplify: Callable[[Recipe], Recipe] = lambda recipe: recipe  # makes recipes equal that compute the same

    def canonical(self, name: str) -> str:
        """Today's spelling, with the prefix, of a name found in a file."""
        for pattern, today in self.renamed.items():
            name = re.sub(pattern, today, name)
        return name

    def express(self, recipe: Recipe) -> tuple[Recipe, dict[str, Any]] | None:
        """The part of a recipe that has a name there, and its config; None where there is no such architecture. A task
        model has a class of its own, with one head."""
        for task in (one for one in recipe.objectives if isinstance(one, Task)):
            alone = recipe.replace(objectives=(task,))
            if (config := self.config(alone)) is not None:
                return alone, config
        named = tuple(one for one in recipe.objectives if one.kind == one.name in self.kinds)
        known = recipe.replace(objectives=named)
        config = self.config(known)
        return None if config is None else (known, config)

    def config(self, recipe: Recipe) -> dict[str, Any] | None:
        """The config of a whole recipe; None where reading it back would not give the same model."""
        if recipe.encoder.pooler is None and any(isinstance(one, PairRelation) for one in recipe.objectives):
            return None  # their heads for pairs always have a pooler
        try:
            recipe = self.simplify(recipe)
            config = self.write(recipe)
            if config is None:
                return None
            with torch.device("meta"):
                tensors = dict(Model(recipe).named_parameters())
            entries = entries_of(tensors, self.names(recipe)).values()
            again = self.simplify(self.read(config, frozenset(name for entry in entries for name in entry.theirs)))
        except (KeyError, AttributeError, FolderError, SpecError, ValidationError):
            return None
        return config if _computation(again) == _computation(recipe) else None

    def named_part(self, recipe: Recipe, config: Config, apart: Mapping[str, Any]) -> Recipe:
        """The recipe with the objectives that a folder holds under their names; `apart` are tensors kept under ours."""
        classes = config.get("architectures") or ()
        known = [one for one in recipe.objectives if one.kind == one.name in self.kinds]
        for task in (one for one in recipe.objectives if isinstance(one, Task)):
            if self.tasks.class_of(task) in classes and f"heads.{task.name}.output.weight" not in apart:
                known = [task]
                break
        return recipe.model_copy(update={"objectives": tuple(known)})


def _computation(recipe: Recipe) -> dict[str, Any]:
    """What a config states of a model: its encoder and its heads, but not how tokens are masked, or in which samples.
    Several kinds of task are the same there, and the pooler counts as a part of a task's head."""
    parts: dict[str, Any] = {"encoder": recipe.encoder}
    for one in recipe.objectives:
        if isinstance(one, Task):
            states = getattr(getattr(one, "head", None), "tokens", None)
            parts["task"] = (role_of(one), states, transform_of(one, recipe.encoder))
            parts["encoder"] = recipe.encoder.replace(pooler=None)
        else:
            parts[one.kind] = [getattr(one, name, None) for name in ("head", "activation")]
    return parts
