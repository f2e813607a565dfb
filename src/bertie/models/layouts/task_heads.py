"""Heads of tasks under the names of `transformers`. A task model there is an encoder and one head.

Between a row's state and its labels stands a layer, which is the encoder's pooler in some architectures and the head's
own in others. It is the same computation, so the one is read and written as the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertie.models.layouts.hf_labels import (
    OF_TOKENS,
    ROWS,
    TOKENS,
    label_config,
    role_of,
    settle_labels,
    task_of,
)
from bertie.models.layouts.names import Config
from bertie.models.recipe import AnyObjective, Recipe
from bertie.nn.encoder import EncoderSpec
from bertie.nn.heads import SequenceHeadSpec, TransformSpec
from bertie.tasks.task import Task


@dataclass(frozen=True)
class HeadNames:
    """The head of one class: the names of its layers, and what it computes. For heads that read all tokens, `head` has
    only the transform and the dropout."""

    output: str
    dense: str | None = None  # None: there is no transform
    norm: str | None = None
    head: Callable[[Config], SequenceHeadSpec] = lambda config: SequenceHeadSpec()
    settings: Config = field(default_factory=dict)  # of the config, without which it computes something else
    dropout: str | None = "classifier_dropout"  # where the config keeps its rate
    rate: float | None = None  # where the config is silent; None: that of the encoder
    suffix: str = ""  # of the class

    def head_in(self, config: Config) -> SequenceHeadSpec:
        rate = config.get(self.dropout) if self.dropout else None
        if rate is None:
            rate = config.get("hidden_dropout_prob", 0.1) if self.rate is None else self.rate
        head = self.head(config).replace(dropout=rate)
        return head if self.dense else head.replace(transform=None)


@dataclass(frozen=True)
class TaskHeads:
    """All task heads of one architecture, by role (see `labels`). Its classes are called family, role, suffix."""

    family: str
    heads: Mapping[str, HeadNames]
    pooler: str | None = None  # their name of the encoder's pooler, where there is no task

    def read(self, config: Config, names: frozenset[str]) -> AnyObjective | None:
        """Reads the task of a config. The names of tensors are not enough: several classes have the same."""
        role = self._role(config, names)
        return None if role is None else task_of(role, config, self.heads[role].head_in(config))

    def settle(self, config: Config, shapes: Mapping[str, Sequence[int]]) -> tuple[Config, str | None]:
        """The config with as many labels as its head has outputs: see `settle_labels`."""
        role = self._role(config, frozenset(shapes))
        if role not in (ROWS, TOKENS):
            return config, None
        shape = shapes[f"{self.heads[role].output}.weight"]
        return settle_labels(config, shape[0]) if len(shape) == 2 and shape[0] else (config, None)

    def _role(self, config: Config, names: frozenset[str]) -> str | None:
        """The role of the class that a config names and whose head is there."""
        classes = config.get("architectures")
        for role, known in self.heads.items():
            if not isinstance(classes, list) or f"{self.family}{role}{known.suffix}" not in classes:
                continue
            computes = all(config.get(name, value) == value for name, value in known.settings.items())
            if computes and f"{known.output}.weight" in names:
                return role
        return None

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """What a config states of a task; nothing without one. Raises KeyError where there is no such class."""
        task = task_in(recipe)
        if task is None:
            return {}
        known = self.heads[role_of(task) or ""]
        rate = getattr(getattr(task, "head", task), "dropout", None)
        return {
            "architectures": [self.class_of(task)],
            **known.settings,
            **({known.dropout: rate} if known.dropout and rate is not None else {}),
            **label_config(task),
        }

    def names(self, recipe: Recipe) -> dict[str, str]:
        """Names of the head and of the encoder's pooler, which stands for a layer of the head, or alone."""
        task = task_in(recipe)
        if task is None:
            return {"encoder.pooler.dense": self.pooler} if self.pooler else {}
        role, ours = role_of(task) or "", f"heads.{task.name}"
        known = self.heads[role]
        names = {f"{ours}.output": known.output}
        if known.dense:
            names[f"{ours}.transform.dense"] = known.dense
            if role not in OF_TOKENS:
                names["encoder.pooler.dense"] = known.dense
        if known.norm:
            names[f"{ours}.transform.norm"] = known.norm
        return names

    def class_of(self, task: Task) -> str | None:
        """The class of `transformers` for a task; None where it has none."""
        role = role_of(task) or ""
        return f"{self.family}{role}{self.heads[role].suffix}" if role in self.heads else None

    def fitting(self, task: Task, config: Config) -> Task:
        """The task with a head that computes the same as theirs over the encoder of that config, if there is one."""
        known = self.heads.get(role_of(task) or "")
        if known is None:
            return task
        head = known.head_in(config)
        if role_of(task) not in OF_TOKENS:
            return task.replace(head=head.replace(dropout=getattr(getattr(task, "head", task), "dropout", None)))
        return task.replace(transform=head.transform)

    def keeps_pooler(self, task: AnyObjective | None, pooler: str) -> bool:
        """Whether the encoder keeps its pooler beside this task; `pooler` is their name of it. Old folders may contain
        one even for classes that do not use it."""
        return not isinstance(task, Task) or (self.heads[role_of(task) or ""].dense or "").startswith(pooler)


def task_in(recipe: Recipe) -> Task | None:
    return next((one for one in recipe.objectives if isinstance(one, Task)), None)


def transform_of(task: Task, encoder: EncoderSpec) -> TransformSpec | None:
    """The layer before the output, whether it belongs to the head or is the encoder's pooler."""
    if encoder.pooler is not None and role_of(task) not in OF_TOKENS:
        return TransformSpec()
    owner: Any = getattr(task, "head", task)
    transform: TransformSpec | None = owner.transform
    return transform
