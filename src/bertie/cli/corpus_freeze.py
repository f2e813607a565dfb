"""`bertie corpus freeze`: samples with their masks, made once and written, as often as the duplicate factor says."""

from collections.abc import Iterator
from pathlib import Path

import typer

from bertie.batch import Sample
from bertie.cli.choices import check, choose_recipe
from bertie.cli.corpus_opening import open_corpus
from bertie.data.frozen_corpus import SAMPLES, is_frozen, is_writable, write_frozen_corpus
from bertie.data.samples.building import build_samples
from bertie.data.samples.frame import Frame
from bertie.data.samples.source import Documents, Samples, generator
from bertie.errors import SpecError
from bertie.models.variant import MASKS, SENTENCES, vary
from bertie.progress import progress_line
from bertie.text.vocab.output import check_parent
from bertie.train.held_out import hold_out
from bertie.train.instances import Corruption, sample_shape, vocabulary_of
from bertie.train.run_data import objectives_frozen


def freeze(
    folder: Path = typer.Argument(help="A corpus folder."),
    recipe: str = typer.Option(help="The recipe whose objectives mask the samples."),
    out: Path = typer.Option(help="The folder to write; bertie pretrain takes it as its --corpus."),
    duplicate_factor: int = typer.Option(10, min=1, help="How often each sample is written, each time masked anew."),
    length: int = typer.Option(128, min=8, help="Tokens of a row."),
    mask: str | None = typer.Option(None, help=f"What is masked: {', '.join(MASKS)}; as in the recipe by default."),
    mask_rate: float | None = typer.Option(None, help="The share of tokens that is masked."),
    sentences: str | None = typer.Option(
        None, help=f"What is learned of pairs of sentences: {', '.join(SENTENCES)}; as in the recipe by default."
    ),
    held_out: int = typer.Option(100, min=0, help="One in so many documents is for evaluation; 0: none."),
    seed: int = typer.Option(0, min=0),
    tokenizer: Path | None = typer.Option(None, help="The tokenizer's folder, where the corpus has none of its own."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace what was frozen there."),
) -> None:
    """Write static masks: what training would draw anew each time is drawn once and kept."""
    if is_frozen(out) and not overwrite:
        raise SpecError("is there already", where=str(out), hint="name another folder, or give --overwrite")
    if not is_writable(out):
        raise SpecError("is something else", where=str(out), hint="name a new folder")
    check_parent(out / SAMPLES)
    for name, given, known in (("mask", mask, MASKS), ("sentences", sentences, SENTENCES)):
        if given is not None:
            check(name, given, known)
    corpus, used = open_corpus(folder, tokenizer)
    small = choose_recipe(recipe, "tiny", used.size)
    chosen = vary(small, mask=mask, mask_rate=mask_rate, sentences=sentences)
    shape, frame = sample_shape(chosen, length), Frame.of(used)
    learned: Documents = corpus
    measured = None
    if held_out:
        learned, held = hold_out(corpus, held_out)
        measured = build_samples(shape, held, frame)
    samples = build_samples(shape, learned, frame)
    corruption = Corruption(chosen.objectives, vocabulary_of(used))
    about = {
        "recipe": recipe,
        "objectives": list(objectives_frozen(chosen).values()),
        "samples": shape.model_dump(),
        "duplicate_factor": duplicate_factor,
        "held_out": held_out,
        "seed": seed,
        "corpus": corpus.digest,
        "tokenizer": used.digest,
    }
    total = samples.num_samples * duplicate_factor
    with progress_line("Freezing", total, "samples") as advance:

        def told() -> Iterator[Sample]:
            for sample in masked_samples(samples, corruption, duplicate_factor, seed):
                yield sample
                advance(1)

        # What is measured on is the same for every run, so its masks do not depend on the seed.
        held_samples = None if measured is None else masked_samples(measured, corruption, 1, seed=0)
        write_frozen_corpus(out, told(), held_samples, used, max(used.size, samples.longest), about)
    size = sum(file.stat().st_size for file in out.glob("*.arrow"))
    typer.echo(f"{out}: {total:,} samples ({samples.num_samples:,} x {duplicate_factor}), {size / 1e6:,.1f} MB")


def masked_samples(samples: Samples, corruption: Corruption, duplicate_factor: int, seed: int) -> Iterator[Sample]:
    """Duplicate d of a sample is what epoch d of training would have seen."""
    for epoch in range(duplicate_factor):
        for index in range(samples.num_samples):
            yield corruption(samples.sample(seed, epoch, index), generator(seed, epoch, index, "corrupt"))
