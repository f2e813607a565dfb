"""A pretrained model's recipe and tasks enter, the recipe of the model that is to learn them leaves."""

from bertie.models.folder import hf_layout
from bertie.models.layouts.labels import looks_at_rows
from bertie.models.recipe import Recipe
from bertie.nn.feature_top import FeatureTopSpec
from bertie.nn.heads import SequenceHeadSpec
from bertie.tasks.task import Task


def task_recipe(recipe: Recipe, *tasks: Task, top: FeatureTopSpec | None = None) -> Recipe:
    """Heads of earlier training are left behind, and a pooler that no task looks at. Heads compute what those of
    `transformers` do over the same encoder, where it has such, so that the folder will open there.

    Under a top the encoder is frozen. It has no name there, and heads are then as suits features: a single layer, over
    the mean of a row's tokens, since nobody has taught the first one to speak for the row.
    """
    bare = recipe.changed({"encoder.top": top, "objectives": ()})
    if top is not None:
        return bare.changed({"encoder.pooler": None, "objectives": tuple(map(over_features, tasks))})
    layout, config = hf_layout(bare)
    if layout is not None:
        tasks = tuple(layout.fitting(task, config) for task in tasks)
    if not any(looks_at_rows(task) for task in tasks):
        bare = bare.changed({"encoder.pooler": None})
    return bare.replace(objectives=tasks)


def over_features(task: Task) -> Task:
    """With a head that is linear."""
    if isinstance(getattr(task, "head", None), SequenceHeadSpec):
        return task.changed({"head.tokens": "mean", "head.transform": None})
    return task.replace(transform=None) if hasattr(task, "transform") else task
