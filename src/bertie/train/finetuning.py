"""Fine-tuning: a pretrained model, a task and labelled rows enter, a run folder with a task model leaves.

It is a run like any other: exact resume, checkpoints, logs. What is new is the data, and that the model that leaves is
the best of all that were measured on held-out rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from bertie.data.rows import RowError
from bertie.errors import InputError, SpecError, TokenizerError
from bertie.models.adapter_folder import refuse_adapter
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.sentence import begin_with, going_on, left_behind
from bertie.models.task_recipe import task_recipe
from bertie.models.variant import with_recipe
from bertie.nn.feature_top import FeatureTopSpec
from bertie.nn.low_rank import LowRankSpec, adapt
from bertie.spec import Spec
from bertie.tasks.task import Task, Values
from bertie.text.noise import Noise
from bertie.text.tokenizer import Tokenizer
from bertie.train.adversarial import AnyAdversary
from bertie.train.budget import Steps
from bertie.train.data_card import DataCard
from bertie.train.distribution import ALONE, Ranks
from bertie.train.learning_rates import Learning, LearningSpec
from bertie.train.loop import Precision
from bertie.train.optimiser import AdamWSpec
from bertie.train.options import MICRO_TOKENS
from bertie.train.row_noise import RowNoise
from bertie.train.run import run_in
from bertie.train.schedule import AnySchedule, Linear
from bertie.train.several_tasks import SeveralTasks, steps_of
from bertie.train.task_data import Examples, Labelled, Policy, RowCourse, TaskData
from bertie.train.task_evaluation import TaskEvaluation

FITTED_ON = 100_000  # rows that tell the labels: of more, some spread evenly
UNLIMITED = 1 << 30  # tokens of a pass
MISSPELT = 0.5  # of the rows, where there is noise: the others are learned as they are


class FinetuneOptions(Spec):
    budget: Steps
    epochs: float = Field(gt=0)
    seed: int = Field(default=0, ge=0)
    length: int = Field(default=128, ge=8)
    batch_rows: int = Field(default=32, ge=1)
    micro_tokens: int = Field(default=MICRO_TOKENS, ge=1)
    precision: Precision = "float32"
    adamw: AdamWSpec = AdamWSpec(rate=5e-5)
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
    noise: Noise | None = None  # of one row in two, drawn anew in each epoch

    @classmethod
    def of_epochs(
        cls, num_rows: Sequence[int], epochs: float, batch_rows: int, fields: Mapping[str, Any]
    ) -> "FinetuneOptions":
        """Of one or several tasks with so many rows. Measures and saves at the end of every epoch, unless `fields`
        say otherwise."""
        per_epoch = sum(steps_of(count, batch_rows) for count in num_rows)
        exact = num_rows[0] / batch_rows if len(num_rows) == 1 else per_epoch
        steps = max(1, round(epochs * exact))
        regular = {"save_every": min(per_epoch, steps), "eval_every": min(per_epoch, steps)}
        budget = {"epochs": epochs, "batch_rows": batch_rows, "budget": Steps(steps=steps)}
        return cls.parse({**regular, **fields, **budget}, where="bertie finetune")


def fit(task: Task, data: Labelled, policy: Policy) -> Task:
    """The task with what the training rows tell: labels, tags, the scale of scores."""
    needed = [role for role in data.columns if role in task.targets or role not in task.roles]
    hint = "mend the row, or pass over such rows with --skip-bad"

    def rows() -> Iterator[Values]:
        for number in fitting_rows(data):
            try:
                values, where = data.values(number)
                if missing := next((role for role in needed if role not in values), None):
                    what = f"the column {data.columns.get(missing, missing)!r} is empty"
                    raise RowError(what, where=where, kind=what, hint=hint)
            except RowError:
                if policy == "refuse":
                    raise
                continue
            yield values

    return task.fitted(rows())


def fitting_rows(data: Labelled) -> range:
    return range(0, data.rows.num_rows, max(1, data.rows.num_rows // FITTED_ON))


@dataclass(frozen=True)
class Job:
    """A fitted task, the rows that teach it, those that it is measured on, and what they are like."""

    task: Task
    train: Examples
    dev: Examples | None
    card: DataCard

    @classmethod
    def of(
        cls, task: Task, train: Labelled, dev: Labelled | None, tokenizer: Tokenizer, length: int, policy: Policy
    ) -> "Job":
        """`task` is fitted. Rows to be measured on are read now, and some of the others."""
        if not train.rows.num_rows:
            raise InputError("there are no rows to learn from", where=train.rows.name)
        fitted, task = task, task if dev is None else task.measured_on(dev.columns, dev.all())
        card = DataCard(task, length, train.rows.num_rows, dev.rows.num_rows if dev else 0)
        # What a row must have to be learned from is another matter than what it must have to be measured on.
        learned = Examples(fitted, train, tokenizer, length, policy, card.train.seen)
        measured = None if dev is None else Examples(task, dev, tokenizer, length, policy, card.dev.seen)
        card.train.sample(learned.example)
        if measured is not None and not measured.all():
            raise InputError("no row can be used", where=measured.data.rows.name)
        return cls(task, learned, measured, card)

    def facts(self) -> dict[str, Any]:
        """What of it decides a run."""
        parts = {"train": self.train.data, "dev": self.dev and self.dev.data}
        return {name: data and [data.rows.name, data.rows.num_rows, dict(data.columns)] for name, data in parts.items()}


def task_model(pretrained: Pretrained, tasks: Sequence[Task], seed: int, top: FeatureTopSpec | None = None) -> Model:
    """The encoder as it was, and a new head for each task; heads of earlier training are left behind."""
    tasks = fitting_tasks(pretrained, tasks, top)
    kinds = [task.kind for task in tasks]
    if twice := next((kind for kind in kinds if kinds.count(kind) > 1), None):
        raise SpecError(f"two tasks of the kind {twice} cannot share a model", hint="train them apart")
    model = with_recipe(pretrained.model, task_recipe(pretrained.recipe, *tasks, top=top), seed)
    begin_with(model, pretrained.settings)
    return model


def fitting_tasks(pretrained: Pretrained, tasks: Sequence[Task], top: FeatureTopSpec | None = None) -> list[Task]:
    """With the heads that suit the model; refused are those that do not."""
    encoder = pretrained.recipe.encoder.replace(top=top)
    fitting = [going_on(task, pretrained.settings, encoder.output_width) for task in tasks]
    for task in fitting:
        task.check(encoder)
    return fitting


def check_length(pretrained: Pretrained, length: int) -> Tokenizer:
    """The tokenizer that makes the rows."""
    if pretrained.tokenizer is None:
        raise TokenizerError("the folder has no tokenizer", hint="put its tokenizer.json there")
    if pretrained.limit is not None and length > pretrained.limit:
        raise SpecError(
            f"rows of {length:,} tokens are longer than the model takes",
            hint=f"--length {pretrained.limit} is the most",
        )
    return pretrained.tokenizer


def finetune(
    folder: str | Path,
    pretrained: Pretrained,
    jobs: Sequence[Job],
    options: FinetuneOptions,
    *,
    base: str | None = None,
    config: str | None = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
    ranks: Ranks = ALONE,
) -> dict[str, Any]:
    """Trains one task, or several on one encoder, or goes on; returns the summary. `base` is where others find the
    pretrained model: the folder that is written says so."""
    tokenizer = check_length(pretrained, options.length)
    if options.low_rank is not None and base is not None:
        refuse_adapter(base)
    model = task_model(pretrained, [job.task for job in jobs], options.seed, options.top)
    if options.top is not None and (options.adversary or options.noise):
        wish = "an adversary" if options.adversary else "noise"
        raise SpecError(f"{wish} would change what is read once, as features", hint="leave one of them out")
    if options.top is not None and (options.low_rank or options.learning):
        raise SpecError("features are read once, so nothing of the encoder can learn", hint="leave one of them out")
    if options.adversary is not None:
        options.adversary.check(model.recipe)
    if options.low_rank is not None:
        adapt(model.encoder, options.low_rank, options.seed)
    if options.learning is not None:
        refuse_idle(options.learning.check(model), options, any(True for _ in model.heads.parameters()))
    for job in jobs:
        refuse_alone(job.task, min(options.batch_rows, job.train.data.rows.num_rows))
    # With the heads that suit the model.
    tasks = {task.kind: task for task in model.recipe.objectives if isinstance(task, Task)}
    card = {"length": options.length, **({} if base is None else {"base": base})}
    notes = [note for task in tasks.values() for note in left_behind(task, pretrained.settings)]
    parts = [_data_of(job, tasks[job.task.kind], options, ranks, card) for job in jobs]
    parts[0] = replace(parts[0], notes=notes)
    data = parts[0] if len(parts) == 1 else SeveralTasks(parts, options.batch_rows, options.seed)
    resolved = {
        "options": options.model_dump(mode="json"),
        "recipe": model.recipe.model_dump(mode="json"),
        "from": pretrained.digest,
        "data": [job.facts() for job in jobs],
    }
    return run_in(Path(folder), model, data, tokenizer, options, resolved, config=config, tell=tell, ranks=ranks)


def refuse_alone(task: Task, num_rows: int) -> None:
    if task.compares and num_rows < 2:
        what = "rows are compared with the others of their step, and there would be none"
        raise SpecError(what, hint="give two rows or more, and a --batch of two or more")


def refuse_idle(learning: Learning, options: FinetuneOptions, has_heads: bool) -> None:
    """Wishes under which what was asked to learn never would. Vectors of a plain model have no head that could."""
    if not has_heads and learning.lowest(0) > learning.depth:
        at_first = learning.spec.unfreeze_every is not None and learning.bottom <= learning.depth
        frozen, wish = (
            ("at first all layers are", "leave out --unfreeze-every")
            if at_first
            else ("all layers are", "freeze fewer of them")
        )
        what = f"{frozen} frozen, and nothing stands above them that could learn"
        raise SpecError(what, hint=f"{wish}, or begin with a folder that bertie whiten wrote")
    every, steps = learning.spec.unfreeze_every, options.budget.steps
    if every is not None and every >= steps:
        what = f"the run's {steps:,} steps end before a layer is unfrozen, which is every {every:,} steps"
        raise SpecError(what, hint="give more --epochs, or a smaller --unfreeze-every")
    if options.low_rank is not None and learning.bottom > learning.depth:
        what = f"all {learning.depth} layers are frozen, so that adapters learn nothing"
        raise SpecError(what, hint="freeze fewer of them, or leave out --lora")


def _data_of(job: Job, task: Task, options: FinetuneOptions, ranks: Ranks, card: Mapping[str, Any]) -> TaskData:
    evaluation = None
    if job.dev is not None:
        majority = job.card.majority
        known = majority is not None and majority.metric == task.main  # of tags with spans only words are told
        evaluation = TaskEvaluation(task, job.dev.all(), majority.score if majority and known else None)
    # An adversary moves rows of one pass: those that are compared must all be in it.
    in_one_pass = options.adversary is not None and task.compares
    return TaskData(
        RowCourse(job.train, options.batch_rows, options.seed),
        job.train,
        evaluation,
        UNLIMITED if in_one_pass else options.micro_tokens,
        card=card,
        rank=ranks.rank,
        num_ranks=ranks.size,
        change=None if options.noise is None else RowNoise(options.noise, task, options.seed, share=MISSPELT),
    )
