"""`bertie corpus freeze`: samples with their masks, made once and written, as often as the duplicate factor says."""

from pathlib import Path

import typer

from bertie.cli.choices import check, choose_recipe
from bertie.cli.corpus_opening import open_corpus
from bertie.data.frozen_corpus import SAMPLES, is_frozen, is_writable
from bertie.data.shapes import Parallel
from bertie.errors import SpecError
from bertie.models.variant import MASKS, SENTENCES, vary
from bertie.text.vocab.output import check_parent
from bertie.train.freezing import freeze_corpus


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
    if any(isinstance(one.samples, Parallel) for one in small.objectives):
        raise SpecError(f"{recipe} learns from a text beside its translation, which cannot be frozen")
    chosen = vary(small, mask=mask, mask_rate=mask_rate, sentences=sentences)
    num_samples = freeze_corpus(
        out, corpus, used, chosen, length=length, duplicate_factor=duplicate_factor, held_out=held_out, seed=seed
    )
    size = sum(file.stat().st_size for file in out.glob("*.arrow"))
    total = num_samples * duplicate_factor
    typer.echo(f"{out}: {total:,} samples ({num_samples:,} x {duplicate_factor}), {size / 1e6:,.1f} MB")
