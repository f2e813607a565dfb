"""The recipe of a task's model: what of the pretrained one it keeps, and which head it gets."""

from bertie.models.recipe import Size
from bertie.models.recipes import bert, bilstm, distilbert, electra, modernbert, spanbert, xlm, xlnet
from bertie.models.task_recipe import task_recipe
from bertie.nn.feature_top import FeatureTopSpec
from bertie.nn.heads import SequenceHeadSpec, TransformSpec
from bertie.tasks.answering import Answering
from bertie.tasks.classification import Classify
from bertie.tasks.tagging import Tagging

TINY = Size(depth=1, width=16, num_heads=2)
CLASSIFY, TAG = Classify(labels=("a", "b")), Tagging(tags=("O", "X"))


def test_earlier_heads_are_left_behind_and_the_encoder_is_kept() -> None:
    base = bert(TINY, 40)
    made = task_recipe(base, CLASSIFY)
    assert made.objectives == (CLASSIFY,)
    assert made.encoder == base.encoder
    assert (made.name, made.tokenizer) == (base.name, base.tokenizer)


def test_a_pooler_goes_where_no_task_looks_at_it() -> None:
    base = bert(TINY, 40)
    for tasks in ((TAG,), (Answering(),), (TAG, Answering())):
        assert task_recipe(base, *tasks).encoder.pooler is None
    both = task_recipe(base, TAG, CLASSIFY)
    assert both.encoder.pooler is not None
    assert both.objectives == (TAG, CLASSIFY)


def test_a_head_over_tokens_is_as_transformers_has_it() -> None:
    (tag,) = task_recipe(modernbert(TINY, 40), TAG).objectives
    assert tag == TAG.replace(transform=TransformSpec(activation="gelu", norm_eps=1e-5, bias=False))


def test_a_head_over_rows_is_as_transformers_has_it() -> None:
    found = {}
    for recipe in (bert, spanbert, electra, distilbert, xlnet, xlm, modernbert, bilstm):
        (task,) = task_recipe(recipe(TINY, 40), CLASSIFY.changed({"head.dropout": 0.3})).objectives
        assert isinstance(task, Classify)
        found[recipe.__name__] = task.head
    usual = SequenceHeadSpec(dropout=0.3)
    assert found == {
        "bert": usual,
        "spanbert": usual,
        "electra": usual.changed({"transform.activation": "gelu"}),
        "distilbert": usual.changed({"transform.activation": "relu"}),
        "xlnet": usual.replace(tokens="last"),
        "xlm": usual.replace(transform=None),
        "modernbert": usual.replace(
            tokens="mean", transform=TransformSpec(activation="gelu", norm_eps=1e-5, bias=False)
        ),
        "bilstm": usual,  # which is no model of theirs
    }


def test_under_a_top_heads_are_linear_and_the_pooler_goes() -> None:
    base, top = bert(TINY, 40), FeatureTopSpec(layers="weighted")
    made = task_recipe(base, CLASSIFY, TAG, top=top)
    assert made.encoder == base.encoder.replace(top=top, pooler=None)
    classify, tag = made.objectives
    assert classify == CLASSIFY.changed({"head.tokens": "mean", "head.transform": None})
    assert tag == TAG
    (of_tokens,) = task_recipe(modernbert(TINY, 40), TAG, top=top).objectives
    assert of_tokens == TAG, "no layer before the output, as others have it"
    assert task_recipe(made, CLASSIFY).encoder.top is None, "a whole model is trained from one with features"
