"""`bertie corpus freeze`: samples with their masks, made once and written, as often as the duplicate factor says."""

from collections.abc import Iterator
from pathlib import Path

import typer

from bertie.batch import Sample
from bertie.cli.choices import choose_recipe
from bertie.cli.corpus_opening import open_corpus
from bertie.data.frozen import write_frozen
from bertie.data.samples.building import build_samples
from bertie.data.samples.frame import Frame
from bertie.data.samples.source import Samples, generator
from bertie.errors import SpecError
from bertie.models.recipe import Recipe
from bertie.objectives.objective import Vocabulary
from bertie.progress import progress_line


def freeze(
    folder: Path = typer.Argument(help="A corpus folder."),
    recipe: str = typer.Option(help="The recipe whose objectives mask the samples."),
    out: Path = typer.Option(help="The file to write."),
    duplicate_factor: int = typer.Option(10, min=1, help="How often each sample is written, each time masked anew."),
    length: int | None = typer.Option(None, min=8, help="The length of rows; the recipe's own when not given."),
    seed: int = typer.Option(0, min=0),
    tokenizer: Path | None = typer.Option(None, help="The tokenizer's folder, where the corpus has none of its own."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a finished file."),
) -> None:
    """Write static masks: what training would draw anew each time is drawn once and kept."""
    if out.exists() and not overwrite:
        raise SpecError("is there already", where=str(out), hint="name another file, or give --overwrite")
    corpus, used = open_corpus(folder, tokenizer)
    chosen = choose_recipe(recipe, "tiny", used.size)
    shapes = {objective.samples.to_json(): objective.samples for objective in chosen.objectives}
    if len(shapes) != 1:
        raise SpecError(f"the objectives of {recipe!r} eat {len(shapes)} shapes of sample, one was expected")
    shape = next(iter(shapes.values()))
    shape = shape.replace(length=length) if length else shape
    samples = build_samples(shape, corpus, Frame.of(used))
    vocabulary = Vocabulary(used.size, used.special.mask, frozenset(used.special.ids()))
    about = {
        "recipe": recipe,
        "objectives": [objective.model_dump() for objective in chosen.objectives],
        "samples": shape.model_dump(),
        "duplicate_factor": duplicate_factor,
        "seed": seed,
        "tokenizer": used.digest,
    }
    total = samples.num_samples * duplicate_factor
    with progress_line("Freezing", total, "samples") as advance:

        def told() -> Iterator[Sample]:
            for sample in masked_samples(samples, chosen, vocabulary, duplicate_factor, seed):
                yield sample
                advance(1)

        count = write_frozen(out, told(), max(used.size, samples.longest), about)
    size = out.stat().st_size
    typer.echo(f"{out}: {count:,} samples ({samples.num_samples:,} x {duplicate_factor}), {size / 1e6:,.1f} MB")


def masked_samples(
    samples: Samples, recipe: Recipe, vocabulary: Vocabulary, duplicate_factor: int, seed: int
) -> Iterator[Sample]:
    """Duplicate d of a sample is what epoch d of training would have seen."""
    for epoch in range(duplicate_factor):
        for index in range(samples.num_samples):
            sample = samples.sample(seed, epoch, index)
            rng = generator(seed, epoch, index, "corrupt")
            for objective in recipe.objectives:
                sample = objective.corrupt(sample, vocabulary, rng)
            # Words have done their service.
            yield {name: value for name, value in sample.items() if name != "words"}
