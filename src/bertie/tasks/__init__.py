"""Tasks: one file each, and one line in `TASKS`."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from bertie.errors import SpecError
from bertie.tasks.answering import Answering
from bertie.tasks.aspects import Aspects
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify, Pair
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.similarity import Similarity
from bertie.tasks.spacing import Spacing
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task

# By the name on the command line.
TASKS: dict[str, type[Task]] = {
    "classify": Classify,
    "aspects": Aspects,
    "pair": Pair,
    "similarity": Similarity,
    "tag": Tagging,
    "spaces": Spacing,
    "answer": Answering,
    "choice": Choice,
    "rank": Rank,
}
# By `kind` in specs: also those that an option of another task chooses.
KINDS: dict[str, type[Task]] = {**TASKS, "multi-label": MultiLabel, "siamese": Siamese}


def new_task(name: str, options: Mapping[str, Any] | None = None) -> Task:
    """The task of this name, before training. Options that are None, False or empty were not given."""
    if name not in TASKS:
        nearest = get_close_matches(name, TASKS, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(TASKS)}"
        raise SpecError(f"there is no task {name!r}", hint=hint)
    given = {option: value for option, value in (options or {}).items() if value or (value == 0 and value is not False)}
    for option in given:
        if option not in TASKS[name].Options.model_fields:
            owners = [owner for owner, task in TASKS.items() if option in task.Options.model_fields]
            known = f"it is an option of {' and '.join(owners)}" if owners else "no task has it"
            raise SpecError(f"the task {name} has no option `{option}`: {known}", hint=f"leave out `{option}`")
    return TASKS[name].Options.parse(given, where=name).build()


__all__ = ["KINDS", "TASKS", "Task", "new_task"]
