"""Variants of recipes: other masks, other sentences, one shape of sample for all; heads keep what they know."""

from typing import Any

import pytest
import torch

from bertie.data.masking import EachToken, NGrams, Spans, WholeWords
from bertie.data.shapes import Packed, Pairs, Parallel, SampleShape, Segments
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import RECIPES, bert
from bertie.models.variant import MASKS, SENTENCES, vary, with_recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.train.instances import sample_shape

RECIPE = bert(Size(depth=1, width=16, num_heads=2), 50)


def masked(recipe: Recipe) -> MaskedLM:
    first = recipe.objectives[0]
    assert isinstance(first, MaskedLM)
    return first


def test_without_a_wish_nothing_changes() -> None:
    assert vary(RECIPE) is RECIPE


def test_masks_and_their_rate_by_name() -> None:
    kinds = {name: type(masked(vary(RECIPE, mask=name)).choose) for name in MASKS}
    assert kinds == {"token": EachToken, "whole-word": WholeWords, "span": Spans, "n-gram": NGrams}
    changed = vary(RECIPE, mask_rate=0.4)
    assert masked(changed).rate == 0.4
    assert changed.objectives[1:] == RECIPE.objectives[1:]
    with pytest.raises(SpecError, match="rate: input should be less than 1"):
        vary(RECIPE, mask_rate=1.5)


@pytest.mark.parametrize("before", SENTENCES)
@pytest.mark.parametrize(
    ("wish", "kinds", "shape"),
    [
        ("nsp", ["masked-lm", "next-sentence"], Pairs(length=32)),
        ("sop", ["masked-lm", "sentence-order"], Pairs(length=32, order=True)),
        ("none", ["masked-lm"], Segments(length=32)),
    ],
)
def test_sentences_by_name_from_any_other(before: str, wish: str, kinds: list[str], shape: Pairs | Segments) -> None:
    changed = vary(vary(RECIPE, mask="span", sentences=before), sentences=wish)
    assert [objective.kind for objective in changed.objectives] == kinds
    assert sample_shape(changed, 32) == shape
    assert masked(changed).choose == Spans()


def test_a_recipe_that_masks_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match="'bert' masks no tokens"):
        vary(RECIPE.replace(objectives=RECIPE.objectives[1:]), mask="span")


def test_heads_that_were_there_keep_their_weights() -> None:
    model = Model.new(RECIPE, seed=1)
    with torch.no_grad():
        model.get_parameter("heads.masked-lm.bias").normal_()
    changed = with_recipe(model, vary(RECIPE, mask="span", sentences="sop"), seed=5)
    assert set(changed.heads) == {"masked-lm", "sentence-order"}
    known = dict(model.named_parameters())
    kept = {name: one for name, one in changed.named_parameters() if "sentence-order" not in name}
    assert all(torch.equal(one, known[name]) for name, one in kept.items())
    tokens = changed.encoder.get_parameter("embeddings.tables.tokens.weight")
    assert changed.heads["masked-lm"].get_parameter("weight") is tokens, "what was tied is tied"
    assert with_recipe(model, model.recipe, seed=5) is model


SMALL = Size(depth=2, width=16, num_heads=4)
PAIRED = {"nsp": Pairs(length=32), "sop": Pairs(length=32, order=True)}
ALONE: dict[str, SampleShape] = {"roberta": Packed(length=32), "xlm": Parallel(length=32)}  # others: segments


MASKING = [name for name in RECIPES if name not in ("gpt", "gpt2", "twoway-lm")]


@pytest.mark.parametrize("wish", [{"mask": "span"}, {"mask_rate": 0.3}, {"sentences": "nsp"}])
def test_a_recipe_that_masks_nothing_takes_no_wishes(wish: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="the recipe 'twoway-lm' masks no tokens"):
        vary(RECIPES["twoway-lm"](SMALL, 50), **wish)


@pytest.mark.parametrize("name", MASKING)
def test_every_recipe_takes_wishes_about_masks(name: str) -> None:
    recipe = RECIPES[name](SMALL, 50)
    for mask, chooser in MASKS.items():
        changed = vary(recipe, mask=mask, mask_rate=0.4)
        num_masking = 0
        for before, after in zip(recipe.objectives, changed.objectives, strict=True):
            masking = "choose" in dict(before)
            wished = {"choose": chooser, "rate": 0.4} if masking else {}
            assert dict(after) == {**dict(before), **wished}
            num_masking += masking
        assert num_masking == 1
        assert changed.encoder == recipe.encoder


@pytest.mark.parametrize("sentences", SENTENCES)
@pytest.mark.parametrize("name", MASKING)
def test_every_recipe_takes_wishes_about_sentences(name: str, sentences: str) -> None:
    recipe = RECIPES[name](SMALL, 50)
    changed = vary(recipe, sentences=sentences)
    relation = {"nsp": ["next-sentence"], "sop": ["sentence-order"], "none": []}[sentences]
    kept = [one.kind for one in recipe.objectives if one.kind not in ("next-sentence", "sentence-order")]
    assert [one.kind for one in changed.objectives] == kept + relation
    assert sample_shape(changed, 32) == PAIRED.get(sentences, ALONE.get(name, Segments(length=32)))
    assert list(Model.new(changed).heads) == kept + relation
    assert Recipe.from_json(changed.to_json()) == changed
