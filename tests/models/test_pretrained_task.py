"""Which task a model answers, and how long its rows are."""

import pytest
import torch

from bertie.errors import CapabilityError, SpecError, TokenizerError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.models.sentence import SentenceSettings
from bertie.nn.pooling import Pooling, Projection
from bertie.tasks.classification import Classify
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.siamese.siamese_head import DenseSpec
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task

DENSE = SentenceSettings(Pooling(), projection=Projection(torch.ones(4, 16)))
PROMPTED = SentenceSettings(Pooling(), prompts={"query": "find: "}, default_prompt="query")
LABELS, TAGS = Classify(labels=("a", "b")), Tagging(tags=("O", "X"))


def trained_for(*tasks: Task, settings: SentenceSettings | None = None, length: int | None = None) -> Pretrained:
    recipe = bert(Size(depth=1, width=16, num_heads=2), 9).changed({"objectives": tasks})
    card = {} if length is None else {"length": length}
    return Pretrained(Model.new(recipe), None, settings, card=card, source="there")


@pytest.mark.parametrize("settings", [DENSE, PROMPTED])
def test_scores_without_the_dense_layer_or_prompt_would_be_wrong(settings: SentenceSettings) -> None:
    learned = Siamese(criterion="ranking")
    with pytest.raises(CapabilityError, match=r"there: its vectors need a dense layer or a prompt .*`bertie embed`"):
        trained_for(learned, settings=settings).task()
    assert trained_for(learned).task() == learned
    own = Siamese(criterion="ranking", dense=DenseSpec(size=4))
    assert trained_for(own).task() == own
    assert trained_for(LABELS, settings=settings).task() == LABELS, "labels do not come from such vectors"


def test_one_of_several_tasks_must_be_chosen() -> None:
    both = trained_for(LABELS, TAGS)
    assert both.task("tag") == TAGS
    with pytest.raises(SpecError, match=r"there: the model was trained for several tasks; .*`task`: classify, tag"):
        both.task()
    with pytest.raises(SpecError, match="not trained for the task 'tags'; it knows classify, tag"):
        both.task("tags")
    with pytest.raises(CapabilityError, match="not trained for a task; train it with `bertie finetune`"):
        trained_for().task()


def test_rows_are_as_long_as_in_training_and_never_longer_than_the_model_takes() -> None:
    assert trained_for(LABELS).max_length_for() == 128
    assert trained_for(LABELS, length=64).max_length_for() == 64
    assert trained_for(LABELS, length=64).max_length_for(100) == 100
    assert trained_for(LABELS, length=64).max_length_for(5000) == 512


def test_rows_need_a_tokenizer() -> None:
    with pytest.raises(TokenizerError, match="there: the folder has no tokenizer"):
        trained_for(LABELS).tokenizer_for(16)
