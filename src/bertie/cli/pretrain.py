"""`bertie pretrain`: a corpus enters, a run folder with a trained model leaves. The same command goes on with it."""

from contextlib import closing, nullcontext
from pathlib import Path

import typer

from bertie.cli.app import console
from bertie.cli.config_file import read_config
from bertie.cli.pretrain_request import Request, read_request
from bertie.cli.run_line import Record, RunLine, figures_told
from bertie.inspection.costs import pace_at_peak
from bertie.models.variant import MASKS, SENTENCES
from bertie.train.distribution import Ranks, joined
from bertie.train.options import MICRO_TOKENS
from bertie.train.precision import CHOICES
from bertie.train.run import pretrain as run_pretraining
from bertie.train.run_folder import is_finished
from bertie.train.schedule import SCHEDULES
from bertie.train.stopping import Stopped
from bertie.train.tensorboard import TensorBoard


def pretrain(
    ctx: typer.Context,
    corpus: Path = typer.Option(help="A corpus folder, also a frozen one."),
    out: Path = typer.Option(help="The run folder; an unfinished run in it goes on."),
    config: Path | None = typer.Option(
        None, is_eager=True, callback=read_config, help="Options in a TOML file; those given here win over it."
    ),
    steps: int | None = typer.Option(None, min=1, help="Train so many optimiser steps."),
    tokens: str | None = typer.Option(None, help="Train on so many tokens, like 50M, instead of --steps."),
    time: str | None = typer.Option(None, help="Train so long, like 90m, all counted, instead of --steps."),
    recipe: str | None = typer.Option(None, help="What to train, from nothing."),
    size: str = typer.Option("mini", help="The recipe's size."),
    base: str | None = typer.Option(None, "--from", help="A model folder to continue, instead of --recipe."),
    teacher: str | None = typer.Option(None, help="A model folder that a student (distilbert) learns from."),
    translations: Path | None = typer.Option(
        None, help="A corpus whose documents are the translations of --corpus's, in the same order (xlm)."
    ),
    tokenizer: Path | None = typer.Option(None, help="The tokenizer's folder, where the corpus has none of its own."),
    seed: int = typer.Option(0, min=0, help="Of weights, order, masks and dropout."),
    mask: str | None = typer.Option(None, help=f"What is masked: {', '.join(MASKS)}; as in the recipe by default."),
    mask_rate: float | None = typer.Option(None, help="The share of tokens that is masked."),
    sentences: str | None = typer.Option(
        None, help=f"What is learned of pairs of sentences: {', '.join(SENTENCES)}; as in the recipe by default."
    ),
    static_masks: int | None = typer.Option(
        None, min=1, help="Mask each sample in so many ways, in turn; in ever new ones by default."
    ),
    length: int | None = typer.Option(None, min=8, help="Tokens of a row; 128 by default."),
    curriculum: str | None = typer.Option(
        None, help="Lengths and their shares of the run, like 128:0.9,512:0.1, instead of --length."
    ),
    batch_tokens: int = typer.Option(
        4096, min=1, help="Tokens of a step at most: it has as many rows as fit where all are full."
    ),
    ramp_from: int | None = typer.Option(None, min=1, help="Tokens of the first step; they grow to --batch-tokens."),
    ramp_share: float = typer.Option(0.1, help="The share of the run over which they grow."),
    micro_tokens: int = typer.Option(
        MICRO_TOKENS, min=1, help="Tokens that are computed at once: fewer need less memory."
    ),
    precision: str = typer.Option(
        "auto", help=f"Of matrix products: {', '.join(CHOICES)}; auto takes what was measured to be faster."
    ),
    lr: float = typer.Option(5e-4, help="The highest learning rate."),
    warmup: float | None = typer.Option(
        None, min=0, help="A share of the run, or steps of a run in steps; a tenth, at most 10,000 steps, by default."
    ),
    schedule: str = typer.Option("linear", help=f"What comes after the warm-up: {', '.join(SCHEDULES)}."),
    weight_decay: float = typer.Option(0.01, min=0, help="Of all but biases and norms."),
    clip: float = typer.Option(1.0, help="The largest norm of the gradient."),
    save_every: int = typer.Option(200, min=1, help="Steps between checkpoints."),
    keep: int = typer.Option(2, min=1, help="Checkpoints to keep, beside the best one."),
    held_out: int = typer.Option(
        100, min=0, help="One in so many documents is for evaluation; 0: none. What is frozen is as it is."
    ),
    eval_every: int | None = typer.Option(None, min=1, help="Steps between evaluations; as checkpoints by default."),
    eval_rows: int = typer.Option(256, min=1, help="Rows of an evaluation."),
    log_every: int = typer.Option(1, min=1, help="Steps of one line in log.jsonl."),
    tensorboard: bool = typer.Option(False, "--tensorboard", help="Write all figures for TensorBoard, too."),
) -> None:
    """Train a model on a corpus. The finished model is in OUT/model.

    Ctrl-C saves and leaves. The same command goes on, and ends in the same weights as if it had never been stopped;
    with --time in nearly the same ones, as the clock decides the learning rate.

    torchrun --nproc-per-node 2 -m bertie pretrain ... shares the rows of every step between processes.

    OUT/config.toml holds all options: bertie pretrain --config OUT/config.toml --out NEW does the same again.
    """
    request = read_request(ctx)
    board = TensorBoard(out) if request.tensorboard else None
    with joined() as ranks:
        train(out, request, ranks, board)


def train(out: Path, request: Request, ranks: Ranks, board: TensorBoard | None) -> None:
    before = is_finished(out)

    def tell(record: Record) -> None:
        line.tell(record)
        if board is not None:
            board.tell(record)

    try:
        with RunLine(shown=ranks.leads) as line, nullcontext() if board is None else closing(board):
            line.say(request.told)
            summary = run_pretraining(
                out,
                request.model,
                request.corpus,
                request.tokenizer,
                request.options,
                base=request.base,
                teacher=request.teacher,
                config=request.config,
                peak=pace_at_peak(request.model, request.options.precision, ranks.size),
                tell=tell,
                ranks=ranks,
            )
    except Stopped as stopped:
        if ranks.leads:
            say(f"Stopped after {stopped.step:,} steps, all saved in {out}; the same command goes on from there.")
        raise typer.Exit(stopped.exit_code) from None
    if before and ranks.leads:  # and with these options, which only the run compares
        say(f"{out} was finished before; nothing is trained")
    if ranks.leads:
        for note in summary["notes"]:
            say(note)
        told = f"; held out: {figures_told(summary['evaluation'])}" if summary["evaluation"] else ""
        typer.echo(f"{out / 'model'}: {summary['steps']:,} steps, {summary['tokens']:,} tokens{told}")


def say(told: str) -> None:
    console.print(told, markup=False, highlight=False, soft_wrap=True)
