"""`bertie finetune`: a model and labelled rows enter, a run folder with a task model leaves."""

from pathlib import Path

import typer

from bertie.cli.choices import check
from bertie.cli.run_line import RunLine, figures_told
from bertie.cli.task_request import TASKS, column_names, new_task, open_labelled, say
from bertie.models.pretrained import load
from bertie.train.distribution import joined
from bertie.train.finetune_data import FinetuneOptions
from bertie.train.finetuning import finetune as run_finetuning
from bertie.train.finetuning import fit
from bertie.train.stopping import Stopped


def finetune(
    task: str = typer.Argument(help=f"What to learn: {', '.join(TASKS)}."),
    base: str = typer.Option(help="A model folder, a run folder, or a name on the hub."),
    train: list[str] = typer.Option(help="A file of labelled rows; may be given several times."),
    dev: list[str] = typer.Option([], help="Rows to be measured on; the best model on them is kept."),
    out: Path = typer.Option(help="The run folder; an unfinished run in it goes on."),
    column: list[str] = typer.Option([], help="Which column plays which role, like text=review."),
    aspect: list[str] = typer.Option([], help="A label column of the task aspects."),
    multi: bool = typer.Option(False, "--multi", help="Any number of labels a text."),
    crf: bool = typer.Option(False, "--crf", help="Tags from a CRF instead of a softmax."),
    chinese: bool = typer.Option(False, "--chinese", help="Compare answers as for Chinese."),
    epochs: float = typer.Option(3.0, min=0.0, help="How often every row is seen."),
    batch_rows: int = typer.Option(32, "--batch", min=1, help="Rows of a step."),
    length: int = typer.Option(128, min=8, help="Tokens of a row."),
    lr: float = typer.Option(5e-5, help="The highest learning rate."),
    warmup: float = typer.Option(0.1, min=0, max=1, help="A share of the run."),
    weight_decay: float = typer.Option(0.01, min=0, help="Of all but biases and norms."),
    seed: int = typer.Option(0, min=0, help="Of new weights, order and dropout."),
    skip: bool = typer.Option(False, "--skip-bad", help="Pass over rows that cannot be used, and count them."),
    patience: int | None = typer.Option(None, min=1, help="End after so many evaluations without a better one."),
) -> None:
    """Train a model for a task. The finished model is in OUT/model: the best of all that were measured on --dev."""
    check("task", task, TASKS)
    named, pair = column_names(column), task == "pair"
    wanted = new_task(task, multi=multi, crf=crf, aspects=aspect, chinese=chinese)
    learned = open_labelled(wanted, train, named, pair=pair)
    measured = open_labelled(wanted, dev, named, pair=pair) if dev else None
    fitted = fit(wanted, learned)
    fields = {
        "seed": seed,
        "length": length,
        "adamw": {"kind": "adamw", "rate": lr, "decay": weight_decay},
        "schedule": {"kind": "linear", "warmup": warmup},
        "policy": "skip" if skip else "refuse",
        "patience": patience,
    }
    options = FinetuneOptions.of_epochs(learned.rows.num_rows, epochs, batch_rows, fields)
    pretrained = load(base)
    with joined() as ranks:
        try:
            with RunLine(shown=ranks.leads) as line:
                summary = run_finetuning(
                    out, pretrained, fitted, learned, measured, options, tell=line.tell, ranks=ranks
                )
        except Stopped as stopped:
            if ranks.leads:
                say(f"Stopped after {stopped.step:,} steps, all saved in {out}; the same command goes on from there.")
            raise typer.Exit(stopped.exit_code) from None
        if ranks.leads:
            told = f"; held out: {figures_told(summary['evaluation'])}" if summary["evaluation"] else ""
            typer.echo(f"{out / 'model'}: {summary['steps']:,} steps{told}")
