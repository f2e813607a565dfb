"""Heads of tasks under the names of `transformers`. A task model there is an encoder and one head.

Between a row's state and its labels stands a layer, which is the encoder's pooler in some architectures and the head's
own in others. It is the same computation, so the one is read and written as the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertie.models.layouts.labels import label_config, looks_at_rows, role_of, task_of
from bertie.models.layouts.layout import Config, Entry, both, weights
from bertie.models.recipe import AnyObjective, Recipe
from bertie.nn.encoder import EncoderSpec
from bertie.nn.heads import SequenceHeadSpec
from bertie.tasks.task import Task


@dataclass(frozen=True)
class HeadNames:
    """The head of one class: what its layers are called, and what it computes."""

    output: str
    dense: str | None = None
    norm: str | None = None
    head: Callable[[Config], SequenceHeadSpec] = lambda config: SequenceHeadSpec()
    settings: Config = field(default_factory=dict)  # of the config, without which it computes something else
    dropout: str | None = "classifier_dropout"  # where the config keeps its rate
    rate: float | None = None  # where the config is silent; None: that of the encoder
    suffix: str = ""  # of the class


@dataclass(frozen=True)
class TaskHeads:
    """All task heads of one architecture, by role (see `labels`). Its classes are called family, role, suffix."""

    family: str
    heads: Mapping[str, HeadNames]

    def read(self, config: Config, names: frozenset[str]) -> AnyObjective | None:
        """Unlike other heads, which one it is must be told by the config: the tensors of several are called the same."""
        classes = config.get("architectures")
        for role, known in self.heads.items():
            if not isinstance(classes, list) or f"{self.family}{role}{known.suffix}" not in classes:
                continue
            if f"{known.output}.weight" in names and all(
                config.get(name, value) == value for name, value in known.settings.items()
            ):
                return task_of(role, config, known.head(config).replace(dropout=self._rate(known, config)))
        return None

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """Nothing without a task. May raise KeyError, where there is no such class."""
        task = task_in(recipe)
        if task is None:
            return {}
        role, known = role_of(task), self._of(task)
        dropout = {known.dropout: dropout_of(task)} if known.dropout and dropout_of(task) is not None else {}
        return {
            "architectures": [f"{self.family}{role}{known.suffix}"],
            **known.settings,
            **dropout,
            **label_config(task),
        }

    def entries(self, recipe: Recipe) -> list[Entry]:
        task = task_in(recipe)
        if task is None:
            return []
        known, ours = self._of(task), f"heads.{task.kind}"
        entries = both(f"{ours}.output", known.output)
        if known.dense is not None and recipe.encoder.pooler is not None:
            return [*entries, *both("encoder.pooler.dense", known.dense)]
        head = getattr(task, "head", None)
        if known.dense is not None and head is not None:
            entries += weights(f"{ours}.transform.dense", known.dense, head.bias)
        if known.norm is not None and head is not None:
            entries += weights(f"{ours}.transform.norm", known.norm, head.bias)
        return entries

    def head_of(self, task: Task, config: Config) -> SequenceHeadSpec | None:
        """What theirs computes from a row's state; None where it looks at tokens, or there is no such class."""
        known = self.heads.get(role_of(task) or "")
        return known.head(config) if known is not None and looks_at_rows(task) else None

    def keeps_pooler(self, task: AnyObjective | None, pooler: str) -> bool:
        """Whether an encoder has its pooler beside this task; `pooler` is their name of it. Old folders of classes
        without one hold it nonetheless."""
        return not isinstance(task, Task) or (self._of(task).dense or "").startswith(pooler)

    def _of(self, task: Task) -> HeadNames:
        return self.heads[role_of(task) or ""]

    def _rate(self, known: HeadNames, config: Config) -> float:
        told = config.get(known.dropout) if known.dropout else None
        silent = config.get("hidden_dropout_prob", 0.1) if known.rate is None else known.rate
        return silent if told is None else told


def task_in(recipe: Recipe) -> Task | None:
    return next((one for one in recipe.objectives if isinstance(one, Task)), None)


def dropout_of(task: Task) -> float | None:
    owner = getattr(task, "head", task)
    return getattr(owner, "dropout", None)


def body_of(recipe: Recipe) -> EncoderSpec:
    """The encoder without its pooler where there is a task, whose head speaks for it."""
    return recipe.encoder if task_in(recipe) is None else recipe.encoder.replace(pooler=None)


def computed(task: Task, encoder: EncoderSpec) -> tuple[str | None, SequenceHeadSpec | None]:
    """The class, and what is done with a row's state, be it by the encoder's pooler or by the head's own layer."""
    head: SequenceHeadSpec | None = getattr(task, "head", None)
    if head is None:
        return role_of(task), None
    if encoder.pooler is not None:
        head = SequenceHeadSpec(tokens=head.tokens)
    return role_of(task), head.replace(dropout=0.0)
