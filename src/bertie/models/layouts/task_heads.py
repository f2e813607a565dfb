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
from bertie.nn.heads import SequenceHeadSpec, TransformSpec
from bertie.tasks.task import Task


@dataclass(frozen=True)
class HeadNames:
    """The head of one class: what its layers are called, and what it computes. Of `head` only transform and dropout
    are said of heads that look at all tokens."""

    output: str
    dense: str | None = None  # None: there is no transform
    norm: str | None = None
    head: Callable[[Config], SequenceHeadSpec] = lambda config: SequenceHeadSpec()
    settings: Config = field(default_factory=dict)  # of the config, without which it computes something else
    dropout: str | None = "classifier_dropout"  # where the config keeps its rate
    rate: float | None = None  # where the config is silent; None: that of the encoder
    suffix: str = ""  # of the class

    def is_in(self, config: Config, names: frozenset[str]) -> bool:
        computes = all(config.get(name, value) == value for name, value in self.settings.items())
        return computes and f"{self.output}.weight" in names

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

    def read(self, config: Config, names: frozenset[str]) -> AnyObjective | None:
        """Unlike other heads it must also be told by the config: tensors of several classes have the same names."""
        classes = config.get("architectures")
        for role, known in self.heads.items():
            told = isinstance(classes, list) and f"{self.family}{role}{known.suffix}" in classes
            if told and known.is_in(config, names):
                return task_of(role, config, known.head_in(config))
        return None

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """Nothing without a task. May raise KeyError, where there is no such class."""
        task = task_in(recipe)
        if task is None:
            return {}
        known, rate = self._of(task), dropout_of(task)
        return {
            "architectures": [f"{self.family}{role_of(task)}{known.suffix}"],
            **known.settings,
            **({known.dropout: rate} if known.dropout and rate is not None else {}),
            **label_config(task),
        }

    def entries(self, recipe: Recipe) -> list[Entry]:
        task = task_in(recipe)
        if task is None:
            return []
        known, ours = self._of(task), f"heads.{task.kind}"
        entries = both(f"{ours}.output", known.output)
        if known.dense and (transform := transform_of(task, recipe.encoder)):
            dense = "encoder.pooler.dense" if is_pooled(task, recipe.encoder) else f"{ours}.transform.dense"
            entries += weights(dense, known.dense, transform.bias)
            if known.norm:
                entries += weights(f"{ours}.transform.norm", known.norm, transform.bias)
        return entries

    def fitting(self, task: Task, config: Config) -> Task:
        """The task with a head that computes what theirs does over the encoder of that config, where there is such."""
        known = self.heads.get(role_of(task) or "")
        if known is None:
            return task
        head = known.head_in(config)
        if looks_at_rows(task):
            return task.replace(head=head.replace(dropout=dropout_of(task)))
        return task.replace(transform=head.transform)

    def keeps_pooler(self, task: AnyObjective | None, pooler: str) -> bool:
        """Whether the encoder has its pooler beside this task; `pooler` is their name of it. Old folders of classes
        that have none may hold one nonetheless."""
        return not isinstance(task, Task) or (self._of(task).dense or "").startswith(pooler)

    def _of(self, task: Task) -> HeadNames:
        return self.heads[role_of(task) or ""]


def task_in(recipe: Recipe) -> Task | None:
    return next((one for one in recipe.objectives if isinstance(one, Task)), None)


def dropout_of(task: Task) -> float | None:
    """Of its head; None where that has none."""
    return getattr(getattr(task, "head", task), "dropout", None)


def body_of(recipe: Recipe) -> EncoderSpec:
    """The encoder without its pooler where there is a task, whose head speaks for it."""
    return recipe.encoder if task_in(recipe) is None else recipe.encoder.replace(pooler=None)


def is_pooled(task: Task, encoder: EncoderSpec) -> bool:
    return looks_at_rows(task) and encoder.pooler is not None


def transform_of(task: Task, encoder: EncoderSpec) -> TransformSpec | None:
    """What is done before the output, be it by the head or by the encoder's pooler."""
    if is_pooled(task, encoder):
        return TransformSpec()
    owner: Any = getattr(task, "head", task)
    transform: TransformSpec | None = owner.transform
    return transform


def computed(task: Task, encoder: EncoderSpec) -> dict[str, Any]:
    """What a config must tell of it."""
    states = getattr(getattr(task, "head", None), "tokens", None)
    return {"role": role_of(task), "states": states, "transform": transform_of(task, encoder)}
