"""Recipes: values that round-trip through JSON, in the sizes of the papers."""

import pytest
import torch

from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import RECIPES, bert


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("size", SIZES)
def test_every_recipe_round_trips_and_builds_in_every_size(name: str, size: str) -> None:
    recipe = RECIPES[name](SIZES[size])
    assert Recipe.from_json(recipe.to_json()) == recipe
    with torch.device("meta"):
        model = Model(recipe)
    assert len(model.encoder.stack.blocks) == SIZES[size].depth


@pytest.mark.parametrize(
    ("size", "depth", "width", "heads"),
    [
        ("tiny", 2, 128, 2),
        ("mini", 4, 256, 4),
        ("small", 4, 512, 8),
        ("medium", 8, 512, 8),
        ("base", 12, 768, 12),
        ("large", 24, 1024, 16),
    ],
)
def test_sizes_are_those_of_the_papers(size: str, depth: int, width: int, heads: int) -> None:
    encoder = bert(SIZES[size]).encoder
    assert (encoder.stack.depth, encoder.width, encoder.stack.block.mixer.num_heads) == (depth, width, heads)
    feed_forward = encoder.stack.block.feed_forward
    assert feed_forward is not None
    assert feed_forward.inner == 4 * width


def test_the_vocabulary_is_of_choice() -> None:
    assert bert(SIZES["tiny"], vocab_size=100).vocab_size == 100


def test_a_variant_is_its_parent_with_fields_replaced() -> None:
    parent = bert(SIZES["tiny"])
    variant = parent.replace(objectives=(parent.objectives[0].replace(rate=0.4),))
    assert variant.encoder == parent.encoder
    assert Recipe.from_json(variant.to_json()) == variant
    with pytest.raises(SpecError, match=r"objectives\.0\.masked-lm\.rate"):
        Recipe.parse({**dict(parent), "objectives": [{"kind": "masked-lm", "rate": 2}]})


def test_an_unknown_objective_is_named() -> None:
    with pytest.raises(SpecError, match=r"objectives\.0.*'masked-ml'.*'masked-lm', 'next-sentence'"):
        Recipe.parse({**dict(bert(SIZES["tiny"])), "objectives": [{"kind": "masked-ml"}]})
