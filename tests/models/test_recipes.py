"""Recipes: values that round-trip through JSON, in the sizes of the papers."""

import ast
import inspect
import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import PARENTS, RECIPES, bert
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.stack import Block, StackSpec
from bertie.objectives.replaced_tokens import ReplacedTokens
from bertie.train.pretraining.corpus_data import objectives_frozen


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("size", SIZES)
def test_every_recipe_round_trips_and_builds_in_every_size(name: str, size: str) -> None:
    recipe = RECIPES[name](SIZES[size])
    assert Recipe.from_json(recipe.to_json()) == recipe
    with torch.device("meta"):
        model = Model(recipe)
    num_blocks = sum(isinstance(part, Block) for part in model.encoder.modules())
    depth = SIZES[size].depth
    assert num_blocks == {"distilbert": depth // 2, "twoway": 2 * depth, "twoway-lm": 2 * depth}.get(name, depth)


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
    assert isinstance(encoder.stack, StackSpec)
    block = encoder.stack.block
    assert isinstance(block.mixer, AttentionSpec) and block.feed_forward is not None
    assert (encoder.stack.depth, encoder.width, block.mixer.num_heads) == (depth, width, heads)
    assert block.feed_forward.inner == 4 * width


def test_the_vocabulary_is_of_choice() -> None:
    assert bert(SIZES["tiny"], vocab_size=100).vocab_size == 100


def test_a_variant_is_its_parent_with_fields_replaced() -> None:
    parent = bert(SIZES["tiny"])
    variant = parent.replace(objectives=(parent.objectives[0].replace(rate=0.4),))
    assert variant.encoder == parent.encoder
    assert Recipe.from_json(variant.to_json()) == variant
    with pytest.raises(SpecError, match=r"objectives\.0\.rate"):
        Recipe.parse({**dict(parent), "objectives": [{"kind": "masked-lm", "rate": 2}]})


def test_an_unknown_objective_is_named() -> None:
    with pytest.raises(SpecError, match=r"objectives\.0: no objective of kind 'masked-ml'.*masked-lm, "):
        Recipe.parse({**dict(bert(SIZES["tiny"])), "objectives": [{"kind": "masked-ml"}]})


def test_every_recipe_but_the_first_has_a_parent_that_is_one() -> None:
    assert set(PARENTS) == set(RECIPES) - {"bert"}
    assert set(PARENTS.values()) <= set(RECIPES)
    assert [RECIPES[name](SIZES["tiny"]).name for name in RECIPES] == list(RECIPES)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("roberta", 124_055_040),
        ("albert", 11_683_584),
        ("electra", 108_891_648),
        ("distilbert", 66_362_880),
        ("xlnet", 116_717_568),
        ("gpt", 116_534_784),
        ("gpt2", 124_439_808),
    ],
)
def test_encoders_of_base_have_the_parameters_that_are_published(name: str, count: int) -> None:
    """Without the pooler, where the recipe has none; of the whole discriminator without its head."""
    with torch.device("meta"):
        encoder = RECIPES[name](SIZES["base"]).encoder.build()
    assert sum(parameter.numel() for parameter in encoder.parameters()) == count


def num_lines(name: str) -> int:
    """Lines of code of a recipe: without blank lines and the docstring."""
    source = dedent(inspect.getsource(RECIPES[name]))
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    docstring = function.body[0]
    assert isinstance(docstring, ast.Expr) and docstring.end_lineno is not None, "every recipe says what it is"
    kept = [*source.splitlines()[: docstring.lineno - 1], *source.splitlines()[docstring.end_lineno :]]
    return sum(bool(line.strip()) for line in kept)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_short(name: str) -> None:
    assert num_lines(name) <= 15


def test_the_documents_tell_every_recipe_and_its_length() -> None:
    page = (Path(__file__).parents[2] / "docs/layers/models.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\d+) \|", page, re.MULTILINE)
    assert {name: int(count) for name, count in rows} == {name: num_lines(name) for name in RECIPES}


@pytest.mark.parametrize(
    ("size", "width", "heads", "rate"), [("small", 128, 2, 0.15), ("base", 256, 4, 0.15), ("large", 256, 4, 0.25)]
)
def test_generators_are_as_large_as_in_the_paper(size: str, width: int, heads: int, rate: float) -> None:
    """Clark et al., 2020, table 6."""
    (objective,) = RECIPES["electra"](SIZES[size]).objectives
    assert isinstance(objective, ReplacedTokens) and objective.generator is not None
    told = json.loads(objective.generator.to_json())
    block = told["stack"]["block"]
    assert (told["width"], block["mixer"]["num_heads"], block["feed_forward"]["inner"]) == (width, heads, 4 * width)
    assert objective.rate == rate


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_frozen_does_not_depend_on_the_size(name: str) -> None:
    """Of ever the same objectives: samples of one serve models of all sizes but where the paper masks more."""
    tiny, mini = (objectives_frozen(RECIPES[name](SIZES[size], 1000)) for size in ("tiny", "mini"))
    assert tiny == mini
