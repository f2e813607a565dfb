"""Turns a pretrained model's recipe and tasks into the recipe of the model to fine-tune."""

from bertie.models.folder.folder import hf_layout
from bertie.models.layouts.hf_labels import OF_TOKENS, role_of
from bertie.models.recipe import Recipe
from bertie.nn.feature_top import FeatureTopSpec
from bertie.nn.heads import SequenceHeadSpec
from bertie.tasks.task import Task


def task_recipe(recipe: Recipe, *tasks: Task, top: FeatureTopSpec | None = None) -> Recipe:
    """Drops earlier heads, and a pooler that no task reads; keeps encoder and decoder. Heads compute what those of
    `transformers` do over the same encoder, where it has such heads, so that the folder opens there.

    Under a top the encoder is frozen; `transformers` has no such model. Heads then suit features: a single layer, over
    the mean of a row's tokens, since the first token was never trained to represent the row.
    """
    bare = recipe.changed({"encoder.top": top, "objectives": ()})
    if top is not None:
        return bare.changed({"encoder.pooler": None, "objectives": tuple(map(over_features, tasks))})
    layout, config, _ = hf_layout(bare)
    if layout is not None:
        tasks = tuple(layout.tasks.fitting(task, config) for task in tasks)
    if all(role_of(task) in OF_TOKENS for task in tasks):
        bare = bare.changed({"encoder.pooler": None})
    return bare.replace(objectives=tasks)


def over_features(task: Task) -> Task:
    """Gives the task a linear head."""
    if isinstance(getattr(task, "head", None), SequenceHeadSpec):
        return task.changed({"head.tokens": "mean", "head.transform": None})
    return task.replace(transform=None) if hasattr(task, "transform") else task
