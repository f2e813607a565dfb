"""Static masks: a corpus and a recipe enter, a folder of samples that are masked already leaves.

What training would draw anew each time is drawn once and kept.
"""

from collections.abc import Iterator
from pathlib import Path

from bertie.batch import Sample
from bertie.data.corpus import Corpus
from bertie.data.frozen_corpus import write_frozen_corpus
from bertie.data.samples.building import build_samples
from bertie.data.samples.frame import Frame
from bertie.data.samples.source import Documents, Samples, generator
from bertie.models.recipe import Recipe
from bertie.progress import progress_line
from bertie.text.tokenizer import Tokenizer
from bertie.train.held_out import hold_out
from bertie.train.instances import Corruption, sample_shape, vocabulary_of
from bertie.train.run_data import objectives_frozen


def freeze_corpus(
    out: Path,
    corpus: Corpus,
    tokenizer: Tokenizer,
    recipe: Recipe,
    *,
    length: int = 128,
    duplicate_factor: int = 10,
    held_out: int = 100,
    seed: int = 0,
) -> int:
    """Every sample is written `duplicate_factor` times, each time masked anew; one in `held_out` documents apart, for
    evaluation. Returns the number of different samples."""
    shape, frame = sample_shape(recipe, length), Frame.of(tokenizer)
    learned: Documents = corpus
    measured = None
    if held_out:
        learned, held = hold_out(corpus, held_out)
        measured = build_samples(shape, held, frame)
    samples = build_samples(shape, learned, frame)
    corruption = Corruption(recipe.objectives, vocabulary_of(tokenizer))
    about = {
        "recipe": recipe.name,
        "objectives": list(objectives_frozen(recipe).values()),
        "samples": shape.model_dump(),
        "duplicate_factor": duplicate_factor,
        "held_out": held_out,
        "seed": seed,
        "corpus": corpus.digest,
        "tokenizer": tokenizer.digest,
    }

    # What is measured on is the same for every run, so its masks do not depend on the seed.
    held_samples = None if measured is None else masked_samples(measured, corruption, 1, seed=0)
    with progress_line("Freezing", samples.num_samples * duplicate_factor, "samples") as advance:

        def told() -> Iterator[Sample]:
            for sample in masked_samples(samples, corruption, duplicate_factor, seed):
                yield sample
                advance(1)

        write_frozen_corpus(out, told(), held_samples, tokenizer, max(tokenizer.size, samples.longest), about)
    return samples.num_samples


def masked_samples(samples: Samples, corruption: Corruption, duplicate_factor: int, seed: int) -> Iterator[Sample]:
    """Duplicate d of a sample is what epoch d of training would have seen."""
    for epoch in range(duplicate_factor):
        for index in range(samples.num_samples):
            yield corruption(samples.sample(seed, epoch, index), generator(seed, epoch, index, "corrupt"))
