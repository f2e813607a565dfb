"""Recipes of `learning_per_minute`, a plugin: ModernBERT with one part changed, and BERT without next sentence."""

from collections.abc import Mapping

from bertie.data.shapes import Packed
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import modernbert
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.embeddings import TableSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.residual import PostNormSpec
from bertie.nn.stack import StackSpec
from bertie.nn.visibility import Full
from bertie.objectives.masked_lm import MaskedLM

MINI, VOCAB_SIZE = SIZES["mini"], 16_000


def wide(size: Size = MINI, vocab_size: int = VOCAB_SIZE) -> Recipe:
    """Every layer sees the whole row."""
    return modernbert(size, vocab_size).changed({"name": "wide", "encoder.stack.visibility": (Full(),)})


def learned_positions(size: Size = MINI, vocab_size: int = VOCAB_SIZE) -> Recipe:
    """A table of positions, as BERT has it, instead of rotary ones."""
    recipe = modernbert(size, vocab_size)
    stack, embeddings = stack_of(recipe), recipe.encoder.embeddings
    mixer = AttentionSpec(num_heads=size.num_heads, scorer=DotProductSpec(dropout=0.0), bias=False)
    block = stack.block.changed({"mixer": mixer})
    changes = {
        "name": "learned-positions",
        "encoder.embeddings.tables": (*embeddings.tables, TableSpec(field="positions", size=512)),
        "encoder.stack.block": block,
        "encoder.stack.next_blocks": (block, block),
    }
    return recipe.changed(changes)


def plain_feed_forward(size: Size = MINI, vocab_size: int = VOCAB_SIZE) -> Recipe:
    """One matrix up and one down, with as many weights as the gated three."""
    return _in_every_block(
        "plain-feed-forward", {"feed_forward": DenseSpec(inner=9 * size.width // 4)}, size, vocab_size
    )


def post_norm(size: Size = MINI, vocab_size: int = VOCAB_SIZE) -> Recipe:
    changes = {"residual": PostNormSpec(norm_eps=1e-5, dropout=0.0)}
    return _in_every_block("post-norm", changes, size, vocab_size).changed({"encoder.stack.input_normed": False})


def dropout(size: Size = MINI, vocab_size: int = VOCAB_SIZE) -> Recipe:
    """A tenth of all states and of attention, as BERT has it."""
    changes = {"residual.dropout": 0.1, "mixer.scorer.dropout": 0.1}
    return _in_every_block("dropout", changes, size, vocab_size).changed({"encoder.embeddings.dropout": 0.1})


def packed(size: Size = MINI, vocab_size: int = VOCAB_SIZE) -> Recipe:
    """Full rows across documents."""
    recipe = modernbert(size, vocab_size)
    (masked,) = recipe.objectives
    assert isinstance(masked, MaskedLM)
    return recipe.changed({"name": "packed", "objectives": (masked.replace(samples=Packed()),)})


def _in_every_block(name: str, changes: Mapping[str, object], size: Size, vocab_size: int) -> Recipe:
    recipe = modernbert(size, vocab_size)
    stack = stack_of(recipe)
    blocks = [block.changed(changes) for block in (stack.block, *stack.next_blocks)]
    return recipe.changed(
        {"name": name, "encoder.stack.block": blocks[0], "encoder.stack.next_blocks": tuple(blocks[1:])}
    )


def stack_of(recipe: Recipe) -> StackSpec:
    stack = recipe.encoder.stack
    assert isinstance(stack, StackSpec)
    return stack


RECIPES = {
    "wide": wide,
    "learned-positions": learned_positions,
    "plain-feed-forward": plain_feed_forward,
    "post-norm": post_norm,
    "dropout": dropout,
    "packed": packed,
}
