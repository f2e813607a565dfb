"""The recipes: each a function of ten-odd lines over shared parts. `RECIPES` is the whole list."""

from collections.abc import Callable

from bertie.data.shapes import Pairs
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.nn.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.pooling import FirstDenseSpec
from bertie.nn.scoring import DotProductSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence


def bert(size: Size = SIZES["base"], vocab_size: int = 30_522) -> Recipe:
    """BERT (Devlin et al., 2018): masked LM and next sentence over a full-visibility encoder."""
    tables = (
        TableSpec(field="tokens", size=vocab_size),
        TableSpec(field="positions", size=512),
        TableSpec(field="segments", size=2, optional=True),
    )
    block = BlockSpec(
        mixer=AttentionSpec(num_heads=size.num_heads, scorer=DotProductSpec(dropout=0.1)),
        feed_forward=DenseSpec(inner=4 * size.width),
    )
    encoder = EncoderSpec(
        width=size.width,
        embeddings=EmbeddingsSpec(tables=tables),
        stack=StackSpec(depth=size.depth, block=block),
        pooler=FirstDenseSpec(),
    )
    return Recipe(name="bert", encoder=encoder, objectives=(MaskedLM(samples=Pairs()), NextSentence()))


RECIPES: dict[str, Callable[..., Recipe]] = {"bert": bert}
