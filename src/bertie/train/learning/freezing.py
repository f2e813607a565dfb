"""Static masks: turns a corpus into a folder of samples that are masked already.

What training would draw again each time is drawn once and kept.
"""

from collections.abc import Iterator
from pathlib import Path

from bertie.batch import Sample
from bertie.data.corpus import Corpus
from bertie.data.frozen_corpus import write_frozen_corpus
from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.samples.sample_protocols import Documents, Samples, generator
from bertie.models.recipe import Recipe
from bertie.reporting.events import OnEvent, ignore, progress
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.instances import Corruption, sample_shape, vocabulary_of
from bertie.train.pretraining.corpus_data import objectives_frozen
from bertie.train.pretraining.held_out import hold_out

REPORTED = 256  # samples between two events


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
    on_event: OnEvent = ignore,
) -> int:
    """Every sample is written `duplicate_factor` times, masked again each time; one in `held_out` documents apart, for
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

    # Evaluation rows are the same for every run, so their masks do not depend on the seed.
    held_samples = None if measured is None else masked_samples(measured, corruption, 1, seed=0)
    total = samples.num_samples * duplicate_factor

    def reported() -> Iterator[Sample]:
        for done, sample in enumerate(masked_samples(samples, corruption, duplicate_factor, seed)):
            if done % REPORTED == 0:
                on_event(progress("freezing", done, total, "samples"))
            yield sample

    write_frozen_corpus(out, reported(), held_samples, tokenizer, max(tokenizer.size, samples.longest), about)
    return samples.num_samples


def masked_samples(samples: Samples, corruption: Corruption, duplicate_factor: int, seed: int) -> Iterator[Sample]:
    """Duplicate d of a sample is what epoch d of training would have seen."""
    for epoch in range(duplicate_factor):
        for index in range(samples.num_samples):
            yield corruption(samples.sample(seed, epoch, index), generator(seed, epoch, index, "corrupt"))
