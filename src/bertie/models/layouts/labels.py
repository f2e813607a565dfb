"""What a config of `transformers` tells of a task: the class of its model, its labels in their order, its loss."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bertie.errors import FolderError, InputError
from bertie.models.layouts.layout import Config
from bertie.models.recipe import AnyObjective
from bertie.nn.heads import SequenceHeadSpec
from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice
from bertie.tasks.classification import Classify, MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.spacing import TAGS
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task
from bertie.text.tag_schemes import SchemeName, guess_scheme

# What the name of a class ends with.
ROWS, CHOICE = "ForSequenceClassification", "ForMultipleChoice"
TOKENS, ANSWERS = "ForTokenClassification", "ForQuestionAnswering"
# A cross-encoder of `sentence-transformers` takes the sigmoid of a single output where nothing is said.
CROSS_ENCODER = {"activation_fn": "torch.nn.modules.linear.Identity"}
ONE, MANY, NUMBER = "single_label_classification", "multi_label_classification", "regression"


@dataclass(frozen=True)
class Told:
    """How a kind of task is told: its class, the names of its outputs, the loss that comes nearest to its own."""

    role: str
    labels: Callable[[Any], tuple[str, ...]] = lambda task: ()
    problem: str | None = None


TOLD: dict[str, Told] = {
    "classify": Told(ROWS, lambda task: task.labels, ONE),
    "pair": Told(ROWS, lambda task: task.labels, ONE),
    "multi-label": Told(ROWS, lambda task: task.labels, MANY),
    "aspects": Told(
        ROWS,
        lambda task: tuple(f"{aspect}: {label}" for aspect in task.aspects for label in task.aspects[aspect]),
        MANY,
    ),
    "similarity": Told(ROWS, lambda task: ("similarity",), NUMBER),
    "rank": Told(ROWS, lambda task: ("relevant",), MANY),
    "choice": Told(CHOICE),
    "tag": Told(TOKENS, lambda task: task.tags),
    "spaces": Told(TOKENS, lambda task: TAGS),
    "answer": Told(ANSWERS, lambda task: ("start", "end")),
}


def role_of(task: Task) -> str | None:
    """None for a task that `transformers` has no class for."""
    return TOLD[task.kind].role if task.kind in TOLD else None


def looks_at_rows(task: Task) -> bool:
    """Whether one state a row is enough for it, so that a pooler is of use."""
    return role_of(task) not in (TOKENS, ANSWERS)


def label_config(task: Task) -> dict[str, Any]:
    told = TOLD[task.kind]
    labels = told.labels(task)
    if not labels:
        return {}
    config: dict[str, Any] = {
        "num_labels": len(labels),
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    if told.problem is not None and (told.problem != ONE or len(labels) > 1):  # which they refuse for a single label
        config["problem_type"] = told.problem
    if told.problem == NUMBER:
        config["sentence_transformers"] = CROSS_ENCODER
    return config


def task_of(role: str, config: Config, head: SequenceHeadSpec) -> AnyObjective | None:
    """None for what is no task here, such as several numbers a text."""
    if role == CHOICE:
        return Choice(head=head)
    labels = labels_of(config)
    if role == TOKENS:
        return Tagging(tags=labels, scheme=scheme_of(labels), dropout=head.dropout, transform=head.transform)
    if role == ANSWERS:
        return Answering(transform=head.transform) if len(labels) == 2 else None
    problem = config.get("problem_type")
    if problem == MANY:
        return MultiLabel(labels=labels, thresholds=(0.5,) * len(labels), head=head)
    if len(labels) == 1:
        return Similarity(head=head)
    return None if problem == NUMBER else Classify(labels=labels, head=head)


def labels_of(config: Config) -> tuple[str, ...]:
    """A config that names none has two."""
    told = config.get("id2label")
    if told is None:
        return tuple(f"LABEL_{number}" for number in range(config.get("num_labels") or 2))
    try:
        named = {int(number): str(label) for number, label in told.items()}
        return tuple(named[number] for number in range(len(told)))
    except (AttributeError, KeyError, ValueError):
        raise FolderError(f"config.json has id2label {told!r}, which should name the labels from 0 on") from None


def scheme_of(tags: tuple[str, ...]) -> SchemeName | None:
    try:
        guess = guess_scheme([tag] for tag in tags)
    except InputError:  # letters of several schemes: plain labels, as far as can be told
        return None
    return None if guess is None else guess.scheme
