"""Builds recipes: each is a function of ten-odd lines over shared parts. `RECIPES` lists them all, parents first."""

from collections.abc import Callable
from typing import NamedTuple

from bertie.data.masking import NGrams, Replacement, Spans, WholeWords
from bertie.data.shapes import Packed, Pairs, Parallel
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.relative import RelativeSpec
from bertie.nn.attention.rotary import RotarySpec
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import DenseSpec, GatedSpec
from bertie.nn.heads import VocabularyHeadSpec
from bertie.nn.lstm import LSTMSpec
from bertie.nn.pooling import FirstDenseSpec
from bertie.nn.residual import PreNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.nn.two_directions import TwoDirectionsSpec
from bertie.nn.visibility import Causal, Full, Window
from bertie.objectives.causal_lm import CausalLM
from bertie.objectives.distillation import Distillation
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.permutation_lm import PermutationLM
from bertie.objectives.replaced_tokens import ReplacedTokens
from bertie.objectives.sentence_order import SentenceOrder
from bertie.objectives.span_boundary import SpanBoundary
from bertie.objectives.two_way_lm import TwoWayLM

BASE = SIZES["base"]


class Settings(NamedTuple):
    """How a recipe learns from random weights."""

    rate: float = 5e-4
    batch_tokens: int = 4096


def bert(size: Size = BASE, vocab_size: int = 30_522) -> Recipe:
    """BERT (Devlin et al., 2018): masked LM and next sentence over a full-visibility encoder."""
    tables = (
        TableSpec(field="tokens", size=vocab_size),
        TableSpec(field="positions", size=512),
        TableSpec(field="segments", size=2, optional=True),
    )
    mixer = AttentionSpec(num_heads=size.num_heads, scorer=DotProductSpec(dropout=0.1))
    block = BlockSpec(mixer=mixer, feed_forward=DenseSpec(inner=4 * size.width))
    embeddings, stack = EmbeddingsSpec(tables=tables), StackSpec(depth=size.depth, block=block)
    encoder = EncoderSpec(width=size.width, embeddings=embeddings, stack=stack, pooler=FirstDenseSpec())
    return Recipe(name="bert", encoder=encoder, objectives=(MaskedLM(samples=Pairs()), NextSentence()))


def bert_wwm(size: Size = BASE, vocab_size: int = 30_522) -> Recipe:
    """BERT with whole-word masks (Cui et al., 2019), English and Chinese."""
    objectives = (MaskedLM(samples=Pairs(), choose=WholeWords()), NextSentence())
    return bert(size, vocab_size).changed({"name": "bert-wwm", "objectives": objectives})


def spanbert(size: Size = BASE, vocab_size: int = 30_522) -> Recipe:
    """SpanBERT (Joshi et al., 2019): spans are masked, and predicted from the tokens around them; single segments."""
    masked = MaskedLM(choose=Spans(), replacement=Replacement(per="unit"))
    changes = {"name": "spanbert", "encoder.pooler": None, "objectives": (masked, SpanBoundary())}
    return bert(size, vocab_size).changed(changes)


def roberta(size: Size = BASE, vocab_size: int = 50_265) -> Recipe:
    """RoBERTa (Liu et al., 2019): no next sentence, full sentences across documents, positions counted from 2."""
    tables = (
        TableSpec(field="tokens", size=vocab_size),
        TableSpec(field="positions", size=514, offset=2),
        TableSpec(field="segments", size=1, optional=True),
    )
    changes = {
        "name": "roberta",
        "tokenizer": "byte-bpe",
        "encoder.embeddings": EmbeddingsSpec(tables=tables, norm_eps=1e-5),
        "encoder.stack.block.residual.norm_eps": 1e-5,
        "encoder.pooler": None,
        "objectives": (MaskedLM(samples=Packed(), head=VocabularyHeadSpec(norm_eps=1e-5)),),
    }
    return bert(size, vocab_size).changed(changes)


def albert(size: Size = BASE, vocab_size: int = 30_000) -> Recipe:
    """ALBERT (Lan et al., 2019): narrow tables, one layer used in all places, sentence order, n-gram masks."""
    head = VocabularyHeadSpec(activation="gelu_tanh")
    changes = {
        "name": "albert",
        "tokenizer": "unigram",
        "encoder.embeddings.factor": 128,
        "encoder.embeddings.dropout": 0.0,
        "encoder.stack.shared": ("mixer", "feed-forward"),
        "encoder.stack.block.mixer.scorer.dropout": 0.0,
        "encoder.stack.block.feed_forward.activation": "gelu_tanh",
        "encoder.stack.block.residual.dropout": 0.0,
        "objectives": (MaskedLM(samples=Pairs(order=True), choose=NGrams(), head=head), SentenceOrder()),
    }
    return bert(size, vocab_size).changed(changes)


def electra(size: Size = BASE, vocab_size: int = 30_522) -> Recipe:
    """ELECTRA (Clark et al., 2020): which tokens did a small generator replace?"""
    factor = 128 if 128 < size.width < BASE.width else None
    encoder = bert(size, vocab_size).encoder.changed({"pooler": None, "embeddings.factor": factor})
    part, rate = 3 if size == BASE else 4, 0.25 if size == SIZES["large"] else 0.15
    width, num_heads, tables = size.width // part, max(1, size.num_heads // part), factor or size.width
    generator = encoder.changed(
        {
            "width": width,
            "embeddings.factor": None if tables == width else tables,
            "stack.block.mixer.num_heads": num_heads,
            "stack.block.feed_forward.inner": 4 * width,
        }
    )
    return Recipe(name="electra", encoder=encoder, objectives=(ReplacedTokens(rate=rate, generator=generator),))


def distilbert(size: Size = BASE, vocab_size: int = 30_522) -> Recipe:
    """DistilBERT (Sanh et al., 2019): half the layers, no segments, no pooler, trained with a teacher."""
    parent = bert(size, vocab_size)
    changes = {
        "name": "distilbert",
        "encoder.embeddings.tables": parent.encoder.embeddings.tables[:2],
        "encoder.stack.depth": max(1, size.depth // 2),
        "encoder.pooler": None,
        "objectives": (Distillation(),),
    }
    return parent.changed(changes)


def xlm(size: Size = BASE, vocab_size: int = 30_145) -> Recipe:
    """XLM (Conneau and Lample, 2019): masked LM over a text and its translation, with tables for the languages."""
    tables = (
        TableSpec(field="tokens", size=vocab_size),
        TableSpec(field="positions", size=512),
        TableSpec(field="languages", size=2, optional=True),
    )
    changes = {
        "name": "xlm",
        "encoder.embeddings.tables": tables,
        "encoder.pooler": None,
        "objectives": (MaskedLM(samples=Parallel(), head=VocabularyHeadSpec(transform=False)),),
    }
    return bert(size, vocab_size).changed(changes)


def xlnet(size: Size = BASE, vocab_size: int = 32_000) -> Recipe:
    """XLNet (Yang et al., 2019): permutation LM in two streams, relative positions and segments, memory."""
    scorer, heads = RelativeSpec(dropout=0.1, segments=True), size.num_heads
    changes = {
        "name": "xlnet",
        "tokenizer": "unigram",
        "encoder.embeddings": EmbeddingsSpec(tables=(TableSpec(field="tokens", size=vocab_size),), norm_eps=None),
        "encoder.stack.block.mixer": AttentionSpec(num_heads=heads, scorer=scorer, bias=False, memory_length=512),
        "encoder.pooler": None,
        "objectives": (PermutationLM(samples=Pairs(), remembered=0.25),),
    }
    return bert(size, vocab_size).changed(changes)


def modernbert(size: Size = BASE, vocab_size: int = 50_368) -> Recipe:
    """ModernBERT (Warner et al., 2024): rotary positions, two local layers for each global one, gated, pre-norm."""
    block = BlockSpec(
        mixer=AttentionSpec(num_heads=size.num_heads, scorer=RotarySpec(base=160_000), bias=False),
        feed_forward=GatedSpec(inner=3 * size.width // 2, bias=False),
        residual=PreNormSpec(norm_eps=1e-5, dropout=0.0, bias=False),
    )
    local, near = block.changed({"mixer.scorer.base": 10_000}), Window(reach=64)
    stack = StackSpec(
        depth=size.depth, block=block, next_blocks=(local, local), visibility=(Full(), near, near), input_normed=True
    )
    tables = (TableSpec(field="tokens", size=vocab_size),)
    embeddings = EmbeddingsSpec(tables=tables, norm_eps=1e-5, norm_bias=False, dropout=0.0)
    masked = MaskedLM(rate=0.3, head=VocabularyHeadSpec(norm_eps=1e-5, bias=False))
    encoder = EncoderSpec(width=size.width, embeddings=embeddings, stack=stack)
    return Recipe(name="modernbert", tokenizer="byte-bpe", encoder=encoder, objectives=(masked,))


def quick(size: Size = SIZES["mini"], vocab_size: int = 16_000) -> Recipe:
    """For small budgets: ModernBERT's parts over WordPiece, which learn more per minute than BERT's (docs/log.md)."""
    return modernbert(size, vocab_size).changed({"name": "quick", "tokenizer": "wordpiece"})


def bilstm(size: Size = BASE, vocab_size: int = 30_522) -> Recipe:
    """Masked LM over LSTMs that read both ways: what would BERT be without attention?"""
    tables = (TableSpec(field="tokens", size=vocab_size),)
    changes = {
        "name": "bilstm",
        "encoder.embeddings.tables": tables,
        "encoder.stack.block": BlockSpec(mixer=LSTMSpec()),
        "encoder.pooler": None,
        "objectives": (MaskedLM(),),
    }
    return bert(size, vocab_size).changed(changes)


def twoway(size: Size = BASE, vocab_size: int = 30_522) -> Recipe:
    """Masked LM over two one-directional Transformers that meet in the head alone, joined as ELMo's LSTMs are."""
    stack = bert(size, vocab_size).encoder.stack
    half = stack.changed(
        {
            "block.mixer.num_heads": max(1, size.num_heads // 2),
            "block.feed_forward.inner": 2 * size.width,
        }
    )
    changes = {
        "name": "twoway",
        "encoder.stack": TwoDirectionsSpec.parse({"stack": half}),
        "encoder.pooler": None,
        "objectives": (MaskedLM(),),
    }
    return bert(size, vocab_size).changed(changes)


def twoway_lm(size: Size = BASE, vocab_size: int = 30_522) -> Recipe:
    """The same two Transformers as a language model in two directions: each token from its left, and from its right."""
    return twoway(size, vocab_size).changed({"name": "twoway-lm", "objectives": (TwoWayLM(),)})


def gpt(size: Size = BASE, vocab_size: int = 40_478) -> Recipe:
    """GPT (Radford et al., 2018): each token is predicted from those before it, which are all that it sees."""
    tables = (TableSpec(field="tokens", size=vocab_size), TableSpec(field="positions", size=512))
    changes = {
        "name": "gpt",
        "tokenizer": "byte-bpe",
        "encoder.embeddings": EmbeddingsSpec(tables=tables, norm_eps=None),
        "encoder.stack.block.feed_forward.activation": "gelu_tanh",
        "encoder.stack.block.residual.norm_eps": 1e-5,
        "encoder.stack.visibility": (Causal(),),
        "encoder.pooler": None,
        "objectives": (CausalLM(),),
    }
    return bert(size, vocab_size).changed(changes)


def gpt2(size: Size = BASE, vocab_size: int = 50_257) -> Recipe:
    """GPT-2 (Radford et al., 2019): GPT with the norms first, one at the end, and twice as many positions."""
    tables = (TableSpec(field="tokens", size=vocab_size), TableSpec(field="positions", size=1024))
    changes = {
        "name": "gpt2",
        "encoder.embeddings.tables": tables,
        "encoder.stack.block.residual": PreNormSpec(norm_eps=1e-5),
    }
    return gpt(size, vocab_size).changed(changes)


# `bertie.plugins.use` adds to it.
RECIPES: dict[str, Callable[..., Recipe]] = {
    "bert": bert,
    "bert-wwm": bert_wwm,
    "spanbert": spanbert,
    "roberta": roberta,
    "albert": albert,
    "electra": electra,
    "distilbert": distilbert,
    "xlm": xlm,
    "xlnet": xlnet,
    "modernbert": modernbert,
    "quick": quick,
    "bilstm": bilstm,
    "twoway": twoway,
    "twoway-lm": twoway_lm,
    "gpt": gpt,
    "gpt2": gpt2,
}
DEFAULT = "quick"  # where a run names none
# What a recipe learns with unless told otherwise, where that is not what BERT learns with.
SETTINGS: dict[str, Settings] = {"quick": Settings(rate=2e-3, batch_tokens=1024)}
# The recipe that it is compared with.
PARENTS: dict[str, str] = {name: "bert" for name in RECIPES if name != "bert"} | {
    "twoway-lm": "twoway",
    "gpt2": "gpt",
}
