"""`bertie pretrain`: a corpus enters, a run folder with a trained model leaves. The same command goes on with it."""

from pathlib import Path
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bertie.cli.app import console
from bertie.cli.choices import check, choose_recipe
from bertie.cli.corpus_opening import open_corpus
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.pretrained import load
from bertie.text.tokenizer import Tokenizer
from bertie.train.options import PretrainOptions
from bertie.train.run import pretrain as run_pretraining
from bertie.train.schedule import SCHEDULES
from bertie.train.stopping import Stopped

Record = dict[str, Any]


def pretrain(
    corpus: Path = typer.Option(help="A corpus folder."),
    out: Path = typer.Option(help="The run folder; an unfinished run in it goes on."),
    steps: int = typer.Option(min=1, help="Optimiser steps."),
    recipe: str | None = typer.Option(None, help="What to train, from nothing."),
    size: str = typer.Option("mini", help="The recipe's size."),
    base: Path | None = typer.Option(None, "--from", help="A model folder to continue, instead of a recipe."),
    tokenizer: Path | None = typer.Option(None, help="The tokenizer's folder, where the corpus has none of its own."),
    seed: int = typer.Option(0, min=0, help="Of weights, order, masks and dropout."),
    length: int = typer.Option(128, min=8, help="Tokens of a row."),
    batch_tokens: int = typer.Option(4096, min=1, help="Tokens of a step at most."),
    micro_tokens: int = typer.Option(4096, min=1, help="Tokens that are computed at once: fewer need less memory."),
    lr: float = typer.Option(5e-4, help="The highest learning rate."),
    warmup: int | None = typer.Option(None, min=0, help="Steps; a tenth of all, at most 10,000, when not given."),
    schedule: str = typer.Option("linear", help=f"What comes after the warm-up: {', '.join(SCHEDULES)}."),
    weight_decay: float = typer.Option(0.01, min=0, help="Of all but biases and norms."),
    clip: float = typer.Option(1.0, help="The largest norm of the gradient."),
    save_every: int = typer.Option(200, min=1, help="Steps between checkpoints."),
    keep: int = typer.Option(2, min=1, help="Checkpoints to keep, beside the best one."),
    held_out: int = typer.Option(100, min=0, help="One in so many documents is for evaluation; 0: none."),
    eval_every: int | None = typer.Option(None, min=1, help="Steps between evaluations; as checkpoints by default."),
    eval_rows: int = typer.Option(256, min=1, help="Rows of an evaluation."),
    log_every: int = typer.Option(1, min=1, help="Steps of one line in log.jsonl."),
) -> None:
    """Train a model on a corpus. The finished model is in OUT/model.

    Ctrl-C saves and leaves. The same command goes on, and ends in the same weights as if it had never been stopped.
    """
    check("schedule", schedule, SCHEDULES)
    warm = min(steps // 10, 10_000) if warmup is None else warmup
    fields = {
        "steps": steps,
        "seed": seed,
        "length": length,
        "batch_tokens": batch_tokens,
        "micro_tokens": min(micro_tokens, batch_tokens),
        "adamw": {"kind": "adamw", "rate": lr, "decay": weight_decay, "clip": clip},
        "schedule": {"kind": schedule, "warmup": warm},
        "save_every": save_every,
        "keep": keep,
        "held_out": held_out,
        "eval_every": eval_every or save_every,
        "eval_rows": eval_rows,
        "log_every": log_every,
    }
    options = PretrainOptions.parse(fields, where="bertie pretrain")
    opened, used = open_corpus(corpus, tokenizer)
    model, digest = choose_model(recipe, size, base, used, seed)
    try:
        with RunLine(steps) as line:
            summary = run_pretraining(out, model, opened, used, options, base=digest, tell=line.tell)
    except Stopped as stopped:
        told = f"Stopped after {stopped.step:,} steps, all saved in {out}; the same command goes on from there."
        console.print(told, markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(stopped.exit_code) from None
    for note in summary["notes"]:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    told = f"; held out: {figures_told(summary['evaluation'])}" if summary["evaluation"] else ""
    typer.echo(f"{out / 'model'}: {summary['steps']:,} steps, {summary['tokens']:,} tokens{told}")


def choose_model(
    recipe: str | None, size: str, base: Path | None, tokenizer: Tokenizer, seed: int
) -> tuple[Model, str | None]:
    """The model to begin with, and the digest of the one that it continues."""
    if (recipe is None) == (base is None):
        raise SpecError("give either --recipe or --from")
    if recipe is not None:
        return Model.new(choose_recipe(recipe, size, tokenizer.size), seed), None
    pretrained = load(str(base))
    if pretrained.tokenizer is not None and pretrained.tokenizer.digest != tokenizer.digest:
        raise SpecError(
            f"its tokenizer ({pretrained.tokenizer.digest}) is not the corpus's ({tokenizer.digest})",
            where=str(base),
            hint="build the corpus with the model's own tokenizer",
        )
    return pretrained.model, pretrained.digest


def figures_told(figures: Record) -> str:
    told = [f"loss {figures['loss']:.4f}"]
    told += [f"{name.replace('_', ' ')} {value:.1%}" for name, value in figures.items() if name.endswith("accuracy")]
    if "perplexity" in figures:
        told.append(f"perplexity {figures['perplexity']:.1f}")
    if "unigram_loss" in figures:
        told.append(f"masked lm {figures['masked_lm']:.4f} against {figures['unigram_loss']:.4f} by frequency")
    return ", ".join(told)


class RunLine:
    """The progress line, and what else there is to say, on standard error."""

    def __init__(self, steps: int):
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.progress.add_task("Training", total=steps, told="")

    def __enter__(self) -> "RunLine":
        self.progress.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.progress.stop()

    def tell(self, record: Record) -> None:
        step = record["step"]
        match record["event"]:
            case "step":
                told = f"loss {record['loss']:.3f}  {record['tokens_per_second']:,.0f} tokens/s"
                self.progress.update(self.task, completed=step, told=told)
            case "resume":
                exact = "" if record["exact"] else ", on another torch or number of threads: not bit for bit the same"
                self.say(f"going on after step {step:,}{exact}")
                # What was done before must not count as speed.
                self.progress.reset(self.task, total=self.progress.tasks[0].total, completed=step)
            case "damaged":
                self.say(f"a checkpoint is damaged and is passed over: {record['checkpoint']}")
            case "evaluation":
                self.say(f"step {step:,}, held out: {figures_told(record)}")
            case "warning":
                self.say(f"step {step:,}: {record['what']}", style="yellow")

    def say(self, what: str, style: str | None = None) -> None:
        self.progress.console.print(what, style=style, markup=False, highlight=False, soft_wrap=True)
