"""The instances of the pre-training benchmark: real text enters, the masked rows that a recipe learns from leave."""

from pathlib import Path

import numpy as np

from benchmarks.contenders.instances import Instance
from benchmarks.texts import write_articles
from bertie.batch import Sample
from bertie.data.build import build_corpus
from bertie.data.corpus import Corpus
from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.samples.sample_protocols import generator
from bertie.errors import UserError
from bertie.models.recipe import Recipe
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.instances import Corruption, sample_shape, vocabulary_of

NUM_DOCUMENTS = 600  # enough that a random partner is another document's


def make_corpus(data: Path, folder: Path, tokenizer: Tokenizer) -> Corpus:
    """Articles of en_wiki."""
    articles = folder / "articles.jsonl"
    write_articles(data, NUM_DOCUMENTS, articles)
    build_corpus(folder / "corpus", [str(articles)], tokenizer, num_workers=1)
    return Corpus.open(folder / "corpus", tokenizer)


def make_instances(recipe: Recipe, corpus: Corpus, tokenizer: Tokenizer, num_rows: int, length: int) -> list[Instance]:
    """Samples of the recipe's own shape, masked by its own objectives."""
    samples = build_samples(sample_shape(recipe, length), corpus, Frame.of(tokenizer))
    if samples.num_samples < num_rows:
        raise UserError(f"{NUM_DOCUMENTS} articles give only {samples.num_samples:,} rows, not {num_rows:,}")
    corrupt = Corruption(recipe.objectives, vocabulary_of(tokenizer))
    numbers = generator(0, 0, 0, "order").permutation(samples.num_samples)[:num_rows].tolist()
    return [plain(corrupt(samples.sample(0, 0, number), generator(0, 0, number, "corrupt"))) for number in numbers]


def plain(sample: Sample) -> Instance:
    """Arrays alone, whole numbers as int64."""
    found = {name: np.asarray(getattr(value, "positions", value)) for name, value in sample.items()}
    return {name: value.astype(np.int64) if value.dtype.kind in "iu" else value for name, value in found.items()}
