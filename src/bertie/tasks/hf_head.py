"""The head that `transformers` has for a task: which of its classes, the names of its outputs, its loss."""

from dataclasses import dataclass

# What the name of a class ends with.
ROWS, CHOICE = "ForSequenceClassification", "ForMultipleChoice"
TOKENS, ANSWERS = "ForTokenClassification", "ForQuestionAnswering"
ONE_LABEL, MANY_LABELS, NUMBER = "single_label_classification", "multi_label_classification", "regression"


@dataclass(frozen=True)
class HFHead:
    """`labels` are in the order of the outputs; `problem` is the loss that comes nearest to the task's own."""

    role: str
    labels: tuple[str, ...] = ()
    problem: str | None = None
