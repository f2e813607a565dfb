"""Fine-tunes a pretrained model on labelled rows of one or several tasks.

It is a run like any other: exact resume, checkpoints, logs. New are the data, and that the finished model is the best
of all that were measured on held-out rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from pydantic import Field

from bertie.data.rows import RowError
from bertie.data.rows.rows import spread_numbers
from bertie.devices import CPU
from bertie.errors import InputError, SpecError
from bertie.models.folder.adapter_folder import refuse_adapter
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.sentence import dropped_settings, inherit_pooling, load_dense
from bertie.models.task_recipe import task_recipe
from bertie.models.variant import with_recipe
from bertie.nn.feature_top import FeatureTopSpec
from bertie.nn.low_rank import LowRankSpec, adapt
from bertie.nn.products.choice import Precision
from bertie.reporting.events import OnEvent, ignore
from bertie.spec import Spec
from bertie.tasks.examples import FIX_ROW, Examples, Policy
from bertie.tasks.labelled import Labelled, Reading
from bertie.tasks.task import Task, Values
from bertie.text.noise import Noise
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import Steps
from bertie.train.distribution import ALONE, Ranks
from bertie.train.finetuning.data_card import SAMPLE, DataCard
from bertie.train.finetuning.row_noise import RowNoise
from bertie.train.finetuning.several_tasks import SeveralTasks, steps_of
from bertie.train.finetuning.task_data import RowSchedule, TaskData
from bertie.train.finetuning.task_evaluation import TaskEvaluation
from bertie.train.learning.adversarial import AnyAdversary
from bertie.train.learning.learning_rates import Learning, LearningSpec
from bertie.train.learning.optimizer import AdamWSpec, AnyOptimizer
from bertie.train.learning.schedule import AnySchedule, Linear
from bertie.train.loop import CLIP
from bertie.train.pretraining.options import MICRO_TOKENS
from bertie.train.run import run_training

UNLIMITED = 1 << 30  # tokens in a pass
MISSPELT = 0.5  # of the rows, where there is noise


class FinetuneOptions(Spec):
    budget: Steps
    epochs: float = Field(ge=0)
    seed: int = Field(default=0, ge=0)
    length: int = Field(default=128, ge=8)
    batch_rows: int = Field(default=32, ge=1)
    micro_tokens: int = Field(default=MICRO_TOKENS, ge=1)
    precision: Precision = "float32"
    optimizer: AnyOptimizer = AdamWSpec(rate=5e-5)
    clip: float = Field(default=CLIP, gt=0)  # the largest norm of all gradients together
    schedule: AnySchedule = Linear(warmup=0.1)
    save_every: int = Field(ge=1)
    keep: int = Field(default=1, ge=1)
    eval_every: int = Field(ge=1)
    log_every: int = Field(default=1, ge=1)
    patience: int | None = Field(default=None, ge=1)
    adversary: AnyAdversary | None = None
    top: FeatureTopSpec | None = None  # what learns over a frozen encoder; None: everything learns
    learning: LearningSpec | None = None  # which weights learn, and how fast; None: all at one rate
    low_rank: LowRankSpec | None = None  # adapters, which learn instead of the encoder's own weights
    noise: Noise | None = None  # in one row of two, drawn again in each epoch

    @classmethod
    def of_epochs(
        cls, num_rows: Sequence[int], epochs: float, batch_rows: int, fields: Mapping[str, Any]
    ) -> "FinetuneOptions":
        """For one or several tasks with so many rows. Evaluates and saves after every epoch, unless `fields` say
        otherwise."""
        per_epoch = sum(steps_of(count, batch_rows) for count in num_rows)
        exact = num_rows[0] / batch_rows if len(num_rows) == 1 else per_epoch
        steps = max(1, round(epochs * exact)) if epochs else 0
        every = max(1, min(per_epoch, steps))
        regular = {"save_every": every, "eval_every": every}
        budget = {"epochs": epochs, "batch_rows": batch_rows, "budget": Steps(steps=steps)}
        return cls.parse({**regular, **fields, **budget}, where="bertie finetune")


def fit(task: Task, data: Labelled, policy: Policy) -> Task:
    """The task with what the training rows show: labels, tags, the scale of scores."""
    needed = [role for role in data.columns if role in task.targets or role not in task.roles]

    def rows() -> Iterator[Values]:
        for number in data.sample_numbers():
            try:
                values, where = data.values(number)
                if missing := next((role for role in needed if role not in values), None):
                    what = f"the column {data.columns.get(missing, missing)!r} is empty"
                    raise RowError(what, where=where, kind=what, hint=FIX_ROW)
            except RowError:
                if policy == "refuse":
                    raise
                continue
            yield values

    return task.fitted(rows())


@dataclass(frozen=True)
class PreparedTask:
    """A fitted task, its training rows, its held-out rows, and the card that describes them."""

    task: Task
    train: Examples
    dev: Examples | None
    card: DataCard

    @classmethod
    def of(
        cls, task: Task, train: Labelled, dev: Labelled | None, tokenizer: Tokenizer, length: int, policy: Policy
    ) -> "PreparedTask":
        """`task` is fitted. Held-out rows are read now, and a sample of the training rows."""
        if not train.rows.num_rows:
            raise InputError("there are no training rows", where=train.rows.name)
        fitted, task = task, task if dev is None else task.measured_on(dev.columns, dev.all())
        card = DataCard(task, length, train.rows.num_rows, dev.rows.num_rows if dev else 0, tokenizer.special)
        # Training rows may need other columns than held-out rows.
        learned = Examples(fitted, train, tokenizer, length, policy, card.train.add)
        measured = None if dev is None else Examples(task, dev, tokenizer, length, policy, card.dev.add)
        for number in spread_numbers(train.rows.num_rows, SAMPLE):
            learned.example(number)  # which the card counts
        if measured is not None and not measured.all():
            raise InputError("no row can be used", where=measured.data.rows.name)
        return cls(task, learned, measured, card)


def task_model(pretrained: Pretrained, tasks: Sequence[Task], seed: int, top: FeatureTopSpec | None = None) -> Model:
    """The pretrained encoder with a head for each task, and without the other heads of earlier training. A head is kept
    where it was trained for the same labels."""
    tasks = fitting_tasks(pretrained, tasks, top)
    names = [task.name for task in tasks]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SpecError(f"two tasks have the name {twice!r}", hint="give one of them another `name`")
    earlier = {one.name: one for one in pretrained.recipe.objectives}
    new = [task.name for task in tasks if task.name in earlier and not task.has_labels_of(earlier[task.name])]
    model = with_recipe(pretrained.model, task_recipe(pretrained.recipe, *tasks, top=top), seed, new)
    if pretrained.settings is not None:
        load_dense(model, pretrained.settings)
    return model


def fitting_tasks(pretrained: Pretrained, tasks: Sequence[Task], top: FeatureTopSpec | None = None) -> list[Task]:
    """The tasks with heads that suit the model; SpecError where there is none."""
    encoder, settings, fitting = pretrained.recipe.encoder.replace(top=top), pretrained.settings, list(tasks)
    if settings is not None:
        fitting = [inherit_pooling(task, settings, encoder.output_width) for task in tasks]
    for task in fitting:
        task.check(encoder)
    return fitting


@dataclass(frozen=True)
class Finetuned:
    """The summary of a run, and its evaluations by the name of the task. Their `last_answers` are those of the finished
    model; None where it was finished before."""

    summary: dict[str, Any]
    evaluations: Mapping[str, TaskEvaluation]
    card: Mapping[str, Any]  # what bertie.json says of the run


def finetune(
    folder: str | Path,
    pretrained: Pretrained,
    tasks: Sequence[PreparedTask],
    options: FinetuneOptions,
    *,
    base: str | None = None,
    reading: Reading | None = None,
    config: str | None = None,
    on_event: OnEvent = ignore,
    ranks: Ranks = ALONE,
    device: torch.device = CPU,
) -> Finetuned:
    """Trains one task, or several on one encoder, or continues, on a device. `base` is where others find the
    pretrained model, and `reading` is what was said about the files: both are noted in the model folder."""
    tokenizer = pretrained.tokenizer_for(options.length)
    if options.low_rank is not None and base is not None:
        refuse_adapter(base)
    model = task_model(pretrained, [one.task for one in tasks], options.seed, options.top)
    check_options(options, model, tasks)
    if options.low_rank is not None:
        adapt(model.encoder, options.low_rank, options.seed)
    if options.learning is not None:
        refuse_idle(options.learning.check(model), options, any(True for _ in model.heads.parameters()))
    # With the heads that suit the model.
    by_name = {task.name: task for task in model.recipe.objectives if isinstance(task, Task)}
    card: dict[str, Any] = {"length": options.length, **({} if base is None else {"base": base})}
    if reading is not None and (said := reading.model_dump(exclude_defaults=True)):
        card["reading"] = said
    settings = pretrained.settings
    notes = [note for task in by_name.values() for note in dropped_settings(task, settings)] if settings else []
    parts = [_data_of(one, by_name[one.task.name], options, ranks, card) for one in tasks]
    parts[0] = replace(parts[0], notes=notes)
    data = parts[0] if len(parts) == 1 else SeveralTasks(parts, options.batch_rows, options.seed)
    resolved = {
        "options": options.model_dump(mode="json"),
        "recipe": model.recipe.model_dump(mode="json"),
        "from": pretrained.digest,
        "data": [
            {name: data and [data.rows.name, data.rows.num_rows, dict(data.columns)] for name, data in both.items()}
            for both in ({"train": one.train.data, "dev": one.dev and one.dev.data} for one in tasks)
        ],
    }
    summary = run_training(
        Path(folder),
        model,
        data,
        tokenizer,
        options,
        resolved,
        config=config,
        on_event=on_event,
        ranks=ranks,
        device=device,
    )
    evaluations = {one.examples.task.name: one.evaluation for one in parts if one.evaluation is not None}
    # Adapters are merged into the finished model, which may answer differently in the last bits.
    return Finetuned(summary, {} if options.low_rank else evaluations, card)


def check_options(options: FinetuneOptions, model: Model, tasks: Sequence[PreparedTask]) -> None:
    """Refuses options that cannot work together."""
    if options.top is not None and (options.adversary or options.noise):
        other = "an adversary" if options.adversary else "noise"
        raise SpecError(f"features are computed once, and {other} would change them", hint="leave one of them out")
    if options.top is not None and (options.low_rank or options.learning):
        raise SpecError("features are computed once, so the encoder cannot learn", hint="leave one of them out")
    if options.adversary is not None:
        options.adversary.check(model.recipe)
    for one in tasks:
        if one.task.contrastive and min(options.batch_rows, one.train.num_samples) < 2:
            what = "each row is compared with the others of its step, and there are none"
            raise SpecError(what, hint="give at least two rows, and a `batch` of at least two")


def refuse_idle(learning: Learning, options: FinetuneOptions, has_heads: bool) -> None:
    """Refuses options under which nothing would learn. The vectors of a plain model have no head that could."""
    if not has_heads and learning.lowest(0) > learning.depth:
        at_first = learning.spec.unfreeze_every is not None and learning.lowest() <= learning.depth
        frozen, hint = (
            ("at first all layers are", "leave out `unfreeze_every`")
            if at_first
            else ("all layers are", "freeze fewer of them")
        )
        what = f"{frozen} frozen, and nothing above them can learn"
        raise SpecError(what, hint=f"{hint}, or start with a folder that `bertie whiten` wrote")
    every, steps = learning.spec.unfreeze_every, options.budget.steps
    if every is not None and every >= steps:
        what = f"the run has {steps:,} steps, and the first layer would be unfrozen after {every:,}"
        raise SpecError(what, hint="give more `epochs`, or a smaller `unfreeze_every`")
    if options.low_rank is not None and learning.lowest() > learning.depth:
        what = f"all {learning.depth} layers are frozen, so adapters cannot learn"
        raise SpecError(what, hint="freeze fewer of them, or leave out `lora`")


def _data_of(
    prepared: PreparedTask, task: Task, options: FinetuneOptions, ranks: Ranks, card: Mapping[str, Any]
) -> TaskData:
    evaluation = None
    if prepared.dev is not None:
        majority = prepared.card.majority
        known = majority is not None and majority.metric == task.main  # for spans of tags it is the accuracy of words
        evaluation = TaskEvaluation(task, prepared.dev.all(), majority.score if majority and known else None)
    # An adversary changes the rows of one pass: rows that are compared must all be in it.
    in_one_pass = options.adversary is not None and task.contrastive
    return TaskData(
        RowSchedule(prepared.train, options.batch_rows, options.seed),
        prepared.train,
        evaluation,
        UNLIMITED if in_one_pass else options.micro_tokens,
        card=card,
        rank=ranks.rank,
        num_ranks=ranks.size,
        change=None if options.noise is None else RowNoise(options.noise, task, options.seed, share=MISSPELT),
    )
