"""Texts in, a tokenizer of their single characters out: what a model over characters begins with."""

from collections import Counter
from collections.abc import Iterable

from bertie.text.pipeline import PipelineTokenizer
from bertie.text.vocab.options import VocabOptions
from bertie.text.vocab.pipelines import build_tokenizer
from bertie.text.vocab.training import train


def characters_of(texts: Iterable[str]) -> PipelineTokenizer:
    """The most frequent first; those that came once are unknown, so that the model learns what to do with unknown
    ones."""
    options = VocabOptions(kind="characters")
    words = Counter(word for text in texts for word in text.split())
    return build_tokenizer(options, train(words, options).trained)
