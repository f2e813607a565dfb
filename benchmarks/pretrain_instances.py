"""The instances of the pre-training benchmark: real text enters, masked sentence pairs leave in one file for all."""

from pathlib import Path

import numpy as np

from benchmarks.contenders.instances import Instances
from benchmarks.texts import write_articles
from bertie.batch import Places, Sample
from bertie.data.build import build_corpus
from bertie.data.corpus import Corpus
from bertie.data.samples.building import build_samples
from bertie.data.samples.frame import Frame
from bertie.data.samples.source import generator
from bertie.errors import UserError
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.text.tokenizer import Tokenizer
from bertie.train.instances import Corruption, sample_shape, vocabulary_of

NUM_DOCUMENTS = 600  # enough that a random partner is another document's


def make_instances(data: Path, folder: Path, tokenizer: Tokenizer, num_rows: int, length: int) -> Instances:
    """MLM and NSP at the paper's rates, over articles of en_wiki."""
    articles = folder / "articles.jsonl"
    write_articles(data, NUM_DOCUMENTS, articles)
    build_corpus(folder / "corpus", [str(articles)], tokenizer, num_workers=1)
    corpus = Corpus.open(folder / "corpus", tokenizer)
    recipe = bert(SIZES["tiny"], tokenizer.size)
    samples = build_samples(sample_shape(recipe, length), corpus, Frame.of(tokenizer))
    if samples.num_samples < num_rows:
        raise UserError(f"{NUM_DOCUMENTS} articles give only {samples.num_samples:,} rows, not {num_rows:,}")
    corrupt = Corruption(recipe.objectives, vocabulary_of(tokenizer))
    numbers = generator(0, 0, 0, "order").permutation(samples.num_samples)[:num_rows].tolist()
    rows = [corrupt(samples.sample(0, 0, number), generator(0, 0, number, "corrupt")) for number in numbers]
    return _flat(rows)


def _flat(rows: list[Sample]) -> Instances:
    def column(name: str) -> list[np.ndarray]:
        values = (row[name] for row in rows)
        return [value.positions if isinstance(value, Places) else np.asarray(value) for value in values]

    tokens, segments, masked, targets = map(column, ("tokens", "segments", "masked", "masked_targets"))
    return Instances(
        np.array([len(row) for row in tokens]),
        np.concatenate(tokens).astype(np.int64),
        np.concatenate(segments).astype(np.int64),
        np.array(column("partner")).astype(np.int64),
        np.array([len(row) for row in targets]),
        np.concatenate(masked).astype(np.int64),
        np.concatenate(targets).astype(np.int64),
    )
