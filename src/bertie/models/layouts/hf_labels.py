"""What a config of `transformers` says about a task: the class of its model, its labels in their order, its loss."""

from contextlib import suppress
from typing import Any

from bertie.errors import FolderError
from bertie.models.layouts.names import Config
from bertie.models.recipe import OBJECTIVES
from bertie.nn.heads import SequenceHeadSpec
from bertie.tasks.hf_head import ANSWERS, CHOICE, NUMBER, ONE_LABEL, ROWS, TOKENS, HFHead
from bertie.tasks.task import Task

# A cross-encoder of `sentence-transformers` applies a sigmoid to a single output unless its config says otherwise.
CROSS_ENCODER = {"activation_fn": "torch.nn.modules.linear.Identity"}


OF_TOKENS = (TOKENS, ANSWERS)  # all others need only one state per row, so that a pooler is of use


def role_of(task: Task) -> str | None:
    """None for a task that `transformers` has no class for."""
    head = task.hf_head()
    return None if head is None else head.role


def label_config(task: Task) -> dict[str, Any]:
    head = task.hf_head()
    assert head is not None
    if not head.labels:
        return {}
    config: dict[str, Any] = {
        "num_labels": len(head.labels),
        "id2label": {str(number): label for number, label in enumerate(head.labels)},
        "label2id": {label: number for number, label in enumerate(head.labels)},
    }
    # `transformers` refuses the single-label loss for one label.
    if head.problem is not None and (head.problem != ONE_LABEL or len(head.labels) > 1):
        config["problem_type"] = head.problem
    if head.problem == NUMBER:
        config["sentence_transformers"] = CROSS_ENCODER
    return config


def task_of(role: str, config: Config, head: SequenceHeadSpec) -> Task | None:
    """None where no task here has such outputs, such as several numbers per text."""
    found = HFHead(role, () if role == CHOICE else labels_of(config), config.get("problem_type"))
    tasks = (one.from_hf(found, head) for one in OBJECTIVES.values() if issubclass(one, Task))
    return next((task for task in tasks if task is not None), None)


def labels_of(config: Config) -> tuple[str, ...]:
    """A config that names none has two."""
    names = config.get("id2label")
    if names is None:
        return tuple(f"LABEL_{number}" for number in range(config.get("num_labels") or 2))
    try:
        named = {int(number): str(label) for number, label in names.items()}
        return tuple(named[number] for number in range(len(names)))
    except (AttributeError, KeyError, ValueError):
        raise FolderError(f"config.json has id2label {names!r}, which should name the labels from 0 on") from None


def settle_labels(config: Config, num_outputs: int) -> tuple[Config, str | None]:
    """The config with one label per output of the weights, and a warning where it had others. As in `transformers`,
    labels are numbered unless there are as many names as outputs."""
    stated, names = config.get("id2label"), dict[int, str]()
    if stated is None and (config.get("num_labels") or 2) == num_outputs:
        return config, None
    if isinstance(stated, dict) and len(stated) == num_outputs:
        with suppress(ValueError):
            names = {int(number): str(label) for number, label in stated.items()}
    labels: list[str] = []
    for number in range(num_outputs):
        name = names.get(number)
        labels.append(f"LABEL_{number}" if name is None or name in labels else name)
    settled = {**config, "num_labels": num_outputs, "id2label": {str(n): label for n, label in enumerate(labels)}}
    if labels == [names.get(number) for number in range(num_outputs)]:
        return settled, None
    if isinstance(stated, dict) and len(stated) == num_outputs:
        what = f"config.json does not name each of the {num_outputs} labels, from 0 on, once"
    else:
        count = len(stated) if isinstance(stated, dict | list) else config.get("num_labels") or 2
        what = f"config.json has {count} labels, the weights have {num_outputs} outputs"
    return settled, f"{what}: those without a name are called LABEL_0, LABEL_1, ..."


__all__ = [
    "ANSWERS",
    "CHOICE",
    "OF_TOKENS",
    "ROWS",
    "TOKENS",
    "label_config",
    "labels_of",
    "role_of",
    "settle_labels",
    "task_of",
]
