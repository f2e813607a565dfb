"""`bertie finetune`: a model and labelled rows enter, a run folder with a task model leaves, or goes on."""

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import typer

from bertie.cli.beginning_request import FRESH_RATE, beginning_of, check_beginning
from bertie.cli.choices import check, told_by_flags
from bertie.cli.feature_request import RATE, TOP_RATE, TOPS, feature_top, store_folder
from bertie.cli.learning_request import NEW_RATE, TARGETS, learning_of, low_rank_of, refuse_together, usual_rate
from bertie.cli.noise_request import noise_of, tell_replaced
from bertie.cli.run_line import Record, RunLine, figures_told
from bertie.cli.task_request import (
    FORMAT,
    HEADER,
    LENGTH,
    TASK_LENGTHS,
    TASKS,
    FileLook,
    column_names,
    new_task,
    open_labelled,
    say,
    tell_unmeasured,
)
from bertie.data.manifest import write_whole
from bertie.errors import SpecError
from bertie.inspection.task_page import task_page
from bertie.inspection.task_report import report_task, terminal_lines
from bertie.models.pretrained import Pretrained, load
from bertie.nn.feature_top import LAYER_CHOICES
from bertie.tasks.siamese_rows import WAYS
from bertie.tasks.task import Task
from bertie.train.data_card import DATA_CARD
from bertie.train.distribution import Ranks, joined
from bertie.train.feature_store import store_features
from bertie.train.finetuning import FinetuneOptions, Job, check_length, fit, fitting_rows, fitting_tasks
from bertie.train.finetuning import finetune as run_finetuning
from bertie.train.history import read_history
from bertie.train.precision import CHOICES, choose_precision
from bertie.train.run_folder import is_finished
from bertie.train.seeds import keep_best, refuse_other_models, seed_folder, seeds_from
from bertie.train.several_tasks import steps_of
from bertie.train.stopping import Stopped
from bertie.train.task_data import Labelled, Policy
from bertie.train.task_evaluation import TaskEvaluation
from bertie.train.tensorboard import TensorBoard

REPORT = "report.html"
FLAGS = {"rate": "--lr", "decay": "--weight-decay", "warmup": "--warmup", "epsilon": "--epsilon"}


def finetune(
    task: str = typer.Argument(help=f"What to learn: {', '.join(TASKS)}."),
    base: str | None = typer.Option(None, help="A model folder, a run folder, or a name on the hub."),
    recipe: str | None = typer.Option(None, help="Begin with random weights instead of --base; see bertie recipes."),
    size: str = typer.Option("mini", help="With --recipe: tiny, mini, small, medium, base, large."),
    vocab: Path | None = typer.Option(None, help="With --recipe: a vocabulary; spaces makes its own of characters."),
    train: list[str] = typer.Option(help="A file of labelled rows; may be given several times."),
    dev: list[str] = typer.Option([], help="Rows to be measured on; the best model on them is kept."),
    out: Path = typer.Option(help="The run folder; an unfinished run in it goes on."),
    also: list[str] = typer.Option(
        [], help="Another task on the same encoder, as TASK:TRAIN or TASK:TRAIN:DEV; may be given several times."
    ),
    column: list[str] = typer.Option([], help="Which column plays which role, like text=review."),
    format: str | None = FORMAT,
    header: bool | None = HEADER,
    multi: bool = typer.Option(False, "--multi", help="classify: any number of labels a text, separated by commas."),
    aspect: list[str] = typer.Option([], help="aspects: a column of labels; give it once for each."),
    crf: bool = typer.Option(False, "--crf", help="tag: tags from a CRF instead of a softmax."),
    chinese: bool = typer.Option(False, "--chinese", help="answer: compare answers character by character."),
    stride: int | None = typer.Option(None, min=1, help="answer: tokens that neighbouring windows share; 128."),
    longest_answer: int | None = typer.Option(None, min=1, help="answer: tokens of an answer at most; 30."),
    siamese: bool = typer.Option(
        False, "--siamese", help="similarity: a vector for each text, to be compared by cosine; texts alone are enough."
    ),
    loss: str | None = typer.Option(None, help=f"--siamese: {', '.join(WAYS)}; what suits the columns by default."),
    sizes: str | None = typer.Option(None, help="--siamese: also learn shorter vectors, like 256,128,64."),
    epochs: float = typer.Option(3.0, min=0.0, help="How often every row is seen."),
    batch: int = typer.Option(
        32, min=1, help="Rows of a step; a question is one row, with all windows of its passage."
    ),
    length: int | None = typer.Option(None, min=8, help="Tokens of a row; 128, for answer 384, by default."),
    lr: float | None = typer.Option(
        None, help=f"The highest learning rate; {RATE:g}, with --features {TOP_RATE:g}, with --lora {NEW_RATE:g}."
    ),
    warmup: float = typer.Option(0.1, min=0, max=1, help="A share of the run."),
    weight_decay: float = typer.Option(0.01, min=0, help="Of all but biases and norms."),
    adversarial: str | None = typer.Option(
        None, help="Learn every row once more, its embeddings moved for the worse: fgm, or vat, which needs no labels."
    ),
    epsilon: float | None = typer.Option(None, min=0, help="How far --adversarial moves them; 1 for fgm, 5 for vat."),
    features: str | None = typer.Option(
        None, help=f"Freeze the encoder, run it once, and learn over these of its layers: {', '.join(LAYER_CHOICES)}."
    ),
    top: str | None = typer.Option(None, help=f"What learns over --features: {', '.join(TOPS)}; linear by default."),
    feature_store: Path | None = typer.Option(
        None, help="Where features are kept, for this run and others; a folder 'features' beside OUT by default."
    ),
    freeze: str | None = typer.Option(
        None, help="What does not learn: embeddings; a number, for them and so many lowest layers; all, but for heads."
    ),
    unfreeze_every: str | None = typer.Option(
        None, help="A number of steps, or epoch: heads learn first, then one more layer from the top each time."
    ),
    layer_decay: float | None = typer.Option(
        None, help="A layer learns at this share of the rate of the one above, like 0.9."
    ),
    lora: int | None = typer.Option(None, min=1, help="Learn low-rank adapters of this rank instead of the encoder."),
    lora_alpha: float | None = typer.Option(None, help="Adapters count alpha / rank times; twice the rank by default."),
    lora_dropout: float | None = typer.Option(None, help="Before adapters; 0 by default."),
    lora_on: str | None = typer.Option(None, help=f"What is adapted, of {','.join(TARGETS)}; all by default."),
    noise: float | None = typer.Option(
        None, min=0, max=1, help="Misspell this share of the words of every second row, anew each time it is seen."
    ),
    confusable: Path | None = typer.Option(
        None, help="With --noise: a file of ideographs that are taken for each other, one group a line."
    ),
    normalise: Path | None = typer.Option(
        None, help="A table of words to put right before a text is read, like 花呗: 花被, 花钗; kept in the model."
    ),
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
    if adversarial is not None:
        check("adversary", adversarial, ("fgm", "vat"))
    elif epsilon is not None:
        raise SpecError("--epsilon says nothing without --adversarial", hint="leave out --epsilon")
    low_rank = low_rank_of(lora, lora_alpha, lora_dropout, lora_on)
    misspelling = noise_of(noise, confusable)
    over = feature_top(features, top, feature_store, {"--adversarial": adversarial, "--noise": noise})
    if seeds > 1 and not dev:
        raise SpecError("--seeds keeps the best, and without --dev nothing is measured", hint="give --dev")
    if seeds > 1:
        refuse_other_models(out)
    check_beginning(base, recipe, vocab)
    policy: Policy = "skip" if skip else "refuse"
    own = {"multi": multi, "crf": crf, "aspect": aspect, "chinese": chinese, "stride": stride}
    own |= {"longest_answer": longest_answer, "siamese": siamese, "loss": loss, "sizes": sizes}
    tasks = [open_task(task, train, dev, policy, own, column_names(column), FileLook(format, header))]
    tasks += [open_task(*split_also(words), policy) for words in also]
    an_epoch = sum(steps_of(rows.rows.num_rows, batch) for _, rows, _ in tasks)
    learning = learning_of(freeze, unfreeze_every, layer_decay, an_epoch)
    refuse_together(learning, low_rank, features is not None, recipe is not None)
    beginning = beginning_of(base, recipe, size, vocab, normalise, [(one, rows) for one, rows, _ in tasks])
    usual = {
        "for random weights": None if recipe is None else FRESH_RATE,
        "where little learns": usual_rate(learning, low_rank),
        "over frozen features": None if over is None else TOP_RATE,
    }
    for reason, rate in usual.items():
        if lr is None and rate is not None:
            lr = rate
            say(f"the learning rate is {lr:g}, as usual {reason}")
    regular = {"eval_every": eval_every, "save_every": save_every, "patience": patience}
    length = length or max(TASK_LENGTHS.get(one.kind, LENGTH) for one, _, _ in tasks)
    pretrained = beginning.model(seed)
    chosen, why = choose_precision(precision, pretrained.recipe.encoder.width)
    say(f"computing in {chosen}: {why}")
    tokenizer = check_length(pretrained, length)
    for note in beginning.notes(tokenizer):
        say(note)
    fitting_tasks(pretrained, [one for one, _, _ in tasks], over)  # what cannot fit is told before all rows are read
    jobs = [Job.of(*opened, tokenizer, length, policy) for opened in tasks]
    for job in jobs:
        say("\n".join(job.card.lines()))
        for rows in (job.train, job.dev) if job.dev is not None else (job.train,):
            tell_replaced(tokenizer, job.task, rows.data)
        if job.dev is not None:
            tell_unmeasured(job.task, job.dev.data)
        if job.dev is not None and job.dev.faults.num_faults:
            say(str(job.dev.faults))
    fields = {
        "length": length,
        "precision": chosen,
        "adamw": {"kind": "adamw", "rate": RATE if lr is None else lr, "decay": weight_decay},
        "schedule": {"kind": "linear", "warmup": warmup},
        "adversary": adversarial and {"kind": adversarial, **({} if epsilon is None else {"epsilon": epsilon})},
        "top": over,
        "learning": learning,
        "low_rank": low_rank,
        "noise": misspelling,
        **{name: value for name, value in regular.items() if value is not None},
    }
    folders = {number: out if seeds == 1 else seed_folder(out, number) for number in seeds_from(seed, seeds)}
    if over is not None and not all(map(is_finished, folders.values())):
        store_features(store_folder(feature_store, out), pretrained, jobs, over, say)
    num_rows = [job.train.num_samples for job in jobs]
    with joined() as ranks:
        summaries: dict[int, dict[str, Any]] = {}
        for number, folder in folders.items():
            with told_by_flags(FLAGS):
                options = FinetuneOptions.of_epochs(num_rows, epochs, batch, {**fields, "seed": number})
            board = TensorBoard(folder) if tensorboard and ranks.leads else None
            # A run changes the model that it is given.
            begun = pretrained if number == seed else beginning.model(number)
            before = is_finished(folder)
            summaries[number] = train_one(folder, begun, beginning.name, jobs, options, ranks, board)
            if ranks.leads:
                tell_summary(folder, summaries[number])
                report_all(folder, jobs, shown=seeds == 1, before=before)
        if seeds > 1 and ranks.leads:
            tell_seeds(out, keep_best(out, summaries))


def open_task(
    name: str,
    train: Sequence[str],
    dev: Sequence[str],
    policy: Policy,
    own: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    look: FileLook = FileLook(),
) -> tuple[Task, Labelled, Labelled | None]:
    """The task, fitted to its rows, and the rows."""
    check("task", name, TASKS)
    wanted = new_task(name, own or {})
    learned = open_labelled(wanted, train, columns or {}, look)
    measured = open_labelled(wanted, dev, columns or {}, look) if dev else None
    if (looked := len(fitting_rows(learned))) < learned.rows.num_rows:
        say(f"labels are those of {looked:,} of {learned.rows.num_rows:,} rows, spread evenly")
    fitted = fit(wanted, learned, policy)
    say(fitted.summary())
    for role in fitted.unread(learned.columns):
        say(f"the column {learned.columns[role]!r} teaches nothing here")
    return fitted, learned, measured


def split_also(words: str) -> tuple[str, list[str], list[str]]:
    """TASK:TRAIN or TASK:TRAIN:DEV"""
    name, *files = words.split(":")
    if len(files) not in (1, 2) or not all(files):
        raise SpecError(
            f"--also {words!r} is not of the form TASK:TRAIN:DEV", hint="like --also tag:train.conll:dev.conll"
        )
    return name, files[:1], files[1:]


def train_one(
    folder: Path,
    pretrained: Pretrained,
    base: str | None,
    jobs: Sequence[Job],
    options: FinetuneOptions,
    ranks: Ranks,
    board: TensorBoard | None,
) -> dict[str, Any]:
    before = is_finished(folder)

    def tell(record: Record) -> None:
        line.tell(record)
        if board is not None:
            board.tell(record)

    try:
        with RunLine(shown=ranks.leads) as line, nullcontext() if board is None else closing(board):
            summary = run_finetuning(folder, pretrained, jobs, options, base=base, tell=tell, ranks=ranks)
    except Stopped as stopped:
        if ranks.leads:
            say(f"Stopped after {stopped.step:,} steps, all saved in {folder}; the same command goes on from there.")
        raise typer.Exit(stopped.exit_code) from None
    if before and ranks.leads:  # and with these options, which only the run compares
        say(f"{folder} was finished before; nothing is trained")
    return summary


def tell_summary(folder: Path, summary: dict[str, Any]) -> None:
    for note in summary["notes"]:
        say(note)
    told = f"; held out: {figures_told(summary['evaluation'])}" if summary["evaluation"] else ""
    typer.echo(f"{folder / 'model'}: {summary['steps']:,} steps{told}")


def report_all(folder: Path, jobs: Sequence[Job], shown: bool, before: bool) -> None:
    """What the rows were like, and how good the model is on those that were held out, in the run's folder; the latter
    also in the terminal where it is `shown`. What was told `before`, of more rows, is left as it is."""
    trained = load(str(folder))
    tasks = {one.kind: one for one in trained.recipe.objectives if isinstance(one, Task)}  # thresholds are tuned now
    for job in jobs:
        own = folder if len(jobs) == 1 else folder / job.task.kind
        if before and (own / (DATA_CARD if job.dev is None else REPORT)).exists():
            continue
        own.mkdir(exist_ok=True)
        job.card.write(own)
        if job.train.faults.num_faults:
            say(str(job.train.faults))
        if job.dev is None:
            continue
        task, examples = tasks[job.task.kind], job.dev.all()
        answers = TaskEvaluation(task, examples).answers(trained.model)
        history = read_history(folder)
        report = report_task(
            task, examples, answers, name=job.dev.data.rows.name, history=history, data=job.card.lines()
        )
        write_whole(own / REPORT, task_page(report).encode())
        if shown:
            say("\n".join(terminal_lines(report)))
            say(f"all of it, with the hundred worst mistakes: {own / REPORT}")


def tell_seeds(out: Path, summary: dict[str, Any]) -> None:
    spread = [f"{name} {one['mean']:.4f} ± {one['deviation']:.4f}" for name, one in summary["spread"].items()]
    typer.echo(
        f"{out / 'model'}: seed {summary['best_seed']}, the best of {len(summary['seeds'])}; {', '.join(spread)}"
    )
    say(f"each seed's report is in its folder, such as {seed_folder(out, summary['best_seed']) / REPORT}")
