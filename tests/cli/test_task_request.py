"""The task of a folder: one whose vectors pass a layer that it does not know does not answer."""

import pytest
import torch

from bertie.cli.task_request import task_of
from bertie.errors import CapabilityError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.models.sentence import SentenceSettings
from bertie.nn.pooling import Pooling, Projection
from bertie.tasks.classification import Classify
from bertie.tasks.siamese import Siamese
from bertie.tasks.siamese_head import DenseSpec
from bertie.tasks.task import Task

DENSE = SentenceSettings(Pooling(), projection=Projection(torch.ones(4, 16)))
PROMPTED = SentenceSettings(Pooling(), prompts={"query": "find: "}, default_prompt="query")


def folder(task: Task, settings: SentenceSettings | None) -> Pretrained:
    recipe = bert(Size(depth=1, width=16, num_heads=2), 9).changed({"objectives": (task,)})
    return Pretrained(Model.new(recipe), None, settings)


@pytest.mark.parametrize("settings", [DENSE, PROMPTED])
def test_scores_without_the_layer_would_be_others(settings: SentenceSettings) -> None:
    learned = Siamese(criterion="ranking")
    with pytest.raises(CapabilityError, match=r"white: its vectors are made with a dense layer .* bertie embed"):
        task_of(folder(learned, settings), "white")
    assert task_of(folder(learned, None), "plain") == learned
    own = Siamese(criterion="ranking", dense=DenseSpec(size=4))
    assert task_of(folder(own, None), "dense") == own
    other = Classify(labels=("a", "b"))
    assert task_of(folder(other, settings), "labels") == other, "labels are not told from such vectors"
