"""`bertie finetune`: a model and labelled rows enter, a run folder with a task model leaves. The same command goes on."""

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import typer

from bertie.cli.choices import check
from bertie.cli.run_line import Record, RunLine, figures_told
from bertie.cli.task_request import LENGTH, TASK_LENGTHS, TASKS, column_names, new_task, open_labelled, say
from bertie.errors import SpecError
from bertie.models.pretrained import Pretrained, load
from bertie.train.distribution import Ranks, joined
from bertie.train.finetuning import FinetuneOptions, Job, fit, fitting_rows
from bertie.train.finetuning import finetune as run_finetuning
from bertie.train.precision import CHOICES, choose_precision
from bertie.train.run_folder import is_finished
from bertie.train.seeds import keep_best, seed_folder, seeds_from
from bertie.train.stopping import Stopped
from bertie.train.task_data import Policy
from bertie.train.tensorboard import TensorBoard


def finetune(
    task: str = typer.Argument(help=f"What to learn: {', '.join(TASKS)}."),
    base: str = typer.Option(help="A model folder, a run folder, or a name on the hub."),
    train: list[str] = typer.Option(help="A file of labelled rows; may be given several times."),
    dev: list[str] = typer.Option([], help="Rows to be measured on; the best model on them is kept."),
    out: Path = typer.Option(help="The run folder; an unfinished run in it goes on."),
    also: list[str] = typer.Option(
        [], help="Another task on the same encoder, as TASK:TRAIN or TASK:TRAIN:DEV; may be given several times."
    ),
    column: list[str] = typer.Option([], help="Which column plays which role, like text=review."),
    multi: bool = typer.Option(False, "--multi", help="classify: any number of labels a text, separated by commas."),
    aspect: list[str] = typer.Option([], help="aspects: a column of labels; give it once for each."),
    crf: bool = typer.Option(False, "--crf", help="tag: tags from a CRF instead of a softmax."),
    chinese: bool = typer.Option(False, "--chinese", help="answer: compare answers character by character."),
    stride: int | None = typer.Option(None, min=1, help="answer: tokens that neighbouring windows share; 128."),
    longest_answer: int | None = typer.Option(None, min=1, help="answer: tokens of an answer at most; 30."),
    epochs: float = typer.Option(3.0, min=0.0, help="How often every row is seen."),
    batch: int = typer.Option(32, min=1, help="Rows of a step."),
    length: int | None = typer.Option(None, min=8, help="Tokens of a row; 128, for answer 384, by default."),
    lr: float = typer.Option(5e-5, help="The highest learning rate."),
    warmup: float = typer.Option(0.1, min=0, max=1, help="A share of the run."),
    weight_decay: float = typer.Option(0.01, min=0, help="Of all but biases and norms."),
    seed: int = typer.Option(0, min=0, help="Of new weights, order and dropout."),
    seeds: int = typer.Option(1, min=1, help="Train so often, from --seed on, and keep the best."),
    skip: bool = typer.Option(False, "--skip-bad", help="Pass over rows that cannot be used, and count them."),
    patience: int | None = typer.Option(None, min=1, help="End after so many evaluations without a better one."),
    eval_every: int | None = typer.Option(None, min=1, help="Steps between evaluations; an epoch by default."),
    save_every: int | None = typer.Option(None, min=1, help="Steps between checkpoints; an epoch by default."),
    precision: str = typer.Option(
        "auto", help=f"Of matrix products: {', '.join(CHOICES)}; auto takes what was measured to be faster."
    ),
    tensorboard: bool = typer.Option(False, "--tensorboard", help="Write all figures for TensorBoard, too."),
) -> None:
    """Train a model for a task. The finished model is in OUT/model: the best of all that were measured on --dev.

    Ctrl-C saves and leaves; the same command goes on, and ends in the same weights as if it had never been stopped.
    """
    check("precision", precision, CHOICES)
    policy: Policy = "skip" if skip else "refuse"
    own = {"multi": multi, "crf": crf, "aspect": aspect, "chinese": chinese, "stride": stride}
    own["longest_answer"] = longest_answer
    jobs = [new_job(task, train, dev, policy, own, column_names(column))]
    jobs += [new_job(*split_also(words), policy) for words in also]
    chosen, why = choose_precision(precision)
    say(f"computing in {chosen}: {why}")
    regular = {"eval_every": eval_every, "save_every": save_every, "patience": patience}
    fields = {
        "length": length or max(TASK_LENGTHS.get(job.task.kind, LENGTH) for job in jobs),
        "precision": chosen,
        "adamw": {"kind": "adamw", "rate": lr, "decay": weight_decay},
        "schedule": {"kind": "linear", "warmup": warmup},
        **{name: value for name, value in regular.items() if value is not None},
    }
    num_rows = [job.train.rows.num_rows for job in jobs]
    with joined() as ranks:
        summaries: dict[int, dict[str, Any]] = {}
        for number in seeds_from(seed, seeds):
            options = FinetuneOptions.of_epochs(num_rows, epochs, batch, {**fields, "seed": number})
            folder = out if seeds == 1 else seed_folder(out, number)
            board = TensorBoard(folder) if tensorboard and ranks.leads else None
            summaries[number] = train_one(folder, load(base), jobs, options, policy, ranks, board)
            if ranks.leads:
                tell_summary(folder, summaries[number])
        if seeds > 1 and ranks.leads:
            tell_seeds(out, keep_best(out, summaries))


def new_job(
    name: str,
    train: Sequence[str],
    dev: Sequence[str],
    policy: Policy,
    own: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Job:
    check("task", name, TASKS)
    wanted = new_task(name, own or {})
    learned = open_labelled(wanted, train, columns or {})
    measured = open_labelled(wanted, dev, columns or {}) if dev else None
    if (looked := len(fitting_rows(learned))) < learned.rows.num_rows:
        say(f"labels are those of {looked:,} of {learned.rows.num_rows:,} rows, spread evenly")
    return Job(fit(wanted, learned, policy), learned, measured)


def split_also(words: str) -> tuple[str, list[str], list[str]]:
    """TASK:TRAIN or TASK:TRAIN:DEV"""
    name, *files = words.split(":")
    if len(files) not in (1, 2) or not all(files):
        raise SpecError(f"--also {words!r} is not of the form TASK:TRAIN:DEV", hint="like --also tag:train.conll:dev.conll")
    return name, files[:1], files[1:]


def train_one(
    folder: Path,
    pretrained: Pretrained,
    jobs: Sequence[Job],
    options: FinetuneOptions,
    policy: Policy,
    ranks: Ranks,
    board: TensorBoard | None,
) -> dict[str, Any]:
    if ranks.leads and is_finished(folder):
        say(f"{folder} was finished before; nothing is trained")

    def tell(record: Record) -> None:
        line.tell(record)
        if board is not None:
            board.tell(record)

    try:
        with RunLine(shown=ranks.leads) as line, nullcontext() if board is None else closing(board):
            return run_finetuning(folder, pretrained, jobs, options, policy=policy, tell=tell, ranks=ranks)
    except Stopped as stopped:
        if ranks.leads:
            say(f"Stopped after {stopped.step:,} steps, all saved in {folder}; the same command goes on from there.")
        raise typer.Exit(stopped.exit_code) from None


def tell_summary(folder: Path, summary: dict[str, Any]) -> None:
    for note in summary["notes"]:
        say(note)
    told = f"; held out: {figures_told(summary['evaluation'])}" if summary["evaluation"] else ""
    typer.echo(f"{folder / 'model'}: {summary['steps']:,} steps{told}")


def tell_seeds(out: Path, summary: dict[str, Any]) -> None:
    spread = [f"{name} {one['mean']:.4f} ± {one['deviation']:.4f}" for name, one in summary["spread"].items()]
    typer.echo(f"{out / 'model'}: seed {summary['best_seed']}, the best of {len(summary['seeds'])}; {', '.join(spread)}")
