"""A pretrained model's recipe and tasks enter, the recipe of the model that is to learn them leaves."""

from bertie.models.folder import hf_layout
from bertie.models.layouts.labels import looks_at_rows
from bertie.models.recipe import Recipe
from bertie.tasks.task import Task


def task_recipe(recipe: Recipe, *tasks: Task) -> Recipe:
    """Heads of earlier training are left behind, and a pooler that no task looks at. Heads compute what those of
    `transformers` do over the same encoder, where it has such, so that the folder will open there."""
    bare = recipe.replace(objectives=())
    layout, config = hf_layout(bare)
    if layout is not None:
        tasks = tuple(layout.fitting(task, config) for task in tasks)
    if not any(looks_at_rows(task) for task in tasks):
        bare = bare.changed({"encoder.pooler": None})
    return bare.replace(objectives=tasks)
