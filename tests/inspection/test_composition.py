"""Compositions: every parameter is in the tree once, and the words are those of the parts."""

from collections.abc import Iterator

import pytest

from bertie.inspection.composition import Part, compose
from bertie.inspection.parameters import count_recipe
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import RECIPES, albert, bert, electra, modernbert, twoway
from bertie.nn.feature_top import FeatureTopSpec, LSTMLayersSpec

MINI = SIZES["mini"]


def walk(part: Part) -> Iterator[Part]:
    yield part
    for child in part.parts:
        yield from walk(child)


def found(recipe: Recipe, *names: str) -> Part:
    """The part at the end of a path of names; the recipe's own is left out."""
    part = compose(recipe)
    for name in names:
        (part,) = (child for child in part.parts if child.name == name)
    return part


@pytest.mark.parametrize("name", RECIPES)
def test_the_parts_of_every_recipe_add_up(name: str) -> None:
    recipe = RECIPES[name](SIZES["tiny"], 100)
    whole = compose(recipe)
    assert whole.num_parameters == count_recipe(recipe).total
    for part in walk(whole):
        if part.parts:
            assert sum(child.num_parameters for child in part.parts) == part.num_parameters, part.name


def test_words_and_shapes() -> None:
    recipe = bert(MINI)
    assert found(recipe, "tokenizer").words == "wordpiece, 30,522 tokens"
    tokens = found(recipe, "encoder", "embeddings", "table tokens")
    assert (tokens.words, tokens.num_parameters) == ("[30,522 x 256]", 30_522 * 256)
    blocks = found(recipe, "encoder", "stack", "4 x block")
    assert [(part.name, part.words) for part in blocks.parts] == [
        ("mixer", "attention, 4 heads of 64, dot-product(dropout 0.1)"),
        ("feed-forward", "dense 256 -> 1,024, gelu"),
        ("residual", "post-norm"),
    ]
    assert blocks.parts[0].num_parameters == 4 * (4 * 256 * 256 + 4 * 256), "of all layers together"
    masked = found(recipe, "objectives", "masked-lm")
    assert masked.words.startswith("samples pairs, choose tokens, rate 0.15, replacement (mask_share 0.8")
    assert [(part.name, part.words) for part in masked.parts] == [
        ("head", "weight [30,522 x 256] (the encoder's own), bias [30,522]"),
        ("transform.dense", "weight [256 x 256], bias [256]"),
        ("transform.norm", "weight [256], bias [256]"),
    ]
    assert masked.num_parameters == 30_522 + 256 * 256 + 3 * 256


def test_what_is_shared_and_what_is_factorised() -> None:
    recipe = albert(MINI)
    assert found(recipe, "encoder", "embeddings", "table tokens").words == "[30,000 x 128]"
    assert found(recipe, "encoder", "embeddings", "projection").words == "128 -> 256"
    mixer = found(recipe, "encoder", "stack", "4 x block", "mixer")
    assert mixer.words.endswith("shared by all layers")
    assert mixer.num_parameters == 4 * 256 * 256 + 4 * 256, "once"
    grouped = recipe.changed({"encoder.stack.shared": ("mixer",), "encoder.stack.groups": 2})
    mixer, feed_forward, _ = found(grouped, "encoder", "stack", "4 x block").parts
    assert mixer.words.endswith("shared by each 2 layers") and "shared" not in feed_forward.words


def test_layers_that_differ_are_told_apart() -> None:
    stack = found(modernbert(MINI), "encoder", "stack")
    assert [(part.name, part.words) for part in stack.parts] == [
        ("2 x block", "layers 1, 4"),
        ("2 x block", "sees window(reach 64), layers 2, 3"),
        ("final norm", ""),
    ]
    assert "rotary(base 160,000)" in stack.parts[0].parts[0].words
    assert [part.name for part in found(twoway(MINI), "encoder", "stack").parts] == ["ahead", "back"]


def test_a_model_within_the_model() -> None:
    generator = found(
        electra(Size(depth=2, width=64, num_heads=4)), "objectives", "replaced-tokens", "generator.encoder"
    )
    assert generator.words == "width 16"
    tokens = next(part for part in walk(generator) if part.name == "table tokens")
    assert (tokens.words, tokens.num_parameters) == ("[30,522 x 64], the encoder's own", 0)


def test_a_top_over_features_is_a_part_of_the_encoder() -> None:
    top = FeatureTopSpec(layers="concat4", lstm=LSTMLayersSpec(depth=1, width=64))
    recipe = bert(MINI).changed({"encoder.top": top, "encoder.pooler": None, "objectives": ()})
    part = found(recipe, "encoder", "top")
    assert part.words.startswith("features(layers concat4") and part.words.endswith("-> 64")
    assert part.num_parameters == 2 * (4 * 32 * (4 * 256 + 32) + 2 * 4 * 32) == count_recipe(recipe).parts["top"]
