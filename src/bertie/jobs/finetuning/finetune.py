"""The job `finetune`: trains a model for a task on labelled rows, or continues a run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import SerializeAsAny, create_model

from bertie.devices import choose_device
from bertie.errors import SpecError
from bertie.jobs.finetuning.finetune_options import (
    FRESH_RATE,
    NEW_RATE,
    RATE,
    TOP_RATE,
    AdaptationOptions,
    AlsoTask,
    DataOptions,
    ModelOptions,
    NoiseOptions,
    OutputOptions,
    Share,
    TrainingOptions,
    noise_of,
)
from bertie.jobs.finetuning.finetune_report import write_reports
from bertie.jobs.finetuning.row_notes import report_corrected_rows
from bertie.jobs.job import Job, check_name, option
from bertie.jobs.options.data import is_paths, rows_or_paths
from bertie.jobs.options.initial_model import InitialModel, check_source
from bertie.jobs.options.toml import to_toml
from bertie.jobs.training.training_run import TrainingRun, output_folder, run_stoppable
from bertie.models.pretrained import Pretrained
from bertie.plugins import use_parts
from bertie.reporting.events import OnEvent, ignore, message, warning
from bertie.tasks import TASKS, new_task
from bertie.tasks.examples import Policy
from bertie.tasks.labelled import Labelled, open_labelled, report_unmeasured
from bertie.tasks.task import Task, TaskOptions
from bertie.train.distribution import joined
from bertie.train.finetuning.feature_store import FOLDER as FEATURES
from bertie.train.finetuning.feature_store import store_features
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, fit, fitting_tasks
from bertie.train.finetuning.finetuning import finetune as run_finetuning
from bertie.train.finetuning.held_out_rows import hold_out
from bertie.train.finetuning.seeds import keep_best, refuse_other_models, seed_folder
from bertie.train.finetuning.several_tasks import steps_of
from bertie.train.folder.run_folder import begun_precision, is_finished
from bertie.train.learning.learning_rates import LearningSpec
from bertie.train.learning.precision import on_device, precision_on


@dataclass(frozen=True)
class OpenTask:
    """A task, fitted to its training rows, with its rows."""

    task: Task
    train: Labelled
    dev: Labelled | None


class FinetuneJob(Job):
    """Train a model for a task. The finished model is in OUT/model: the best of all that were measured on `dev`.

    Ctrl-C saves and stops; the same command continues, and ends in the same weights as a run that was never stopped.
    """

    verb: ClassVar[str] = "finetune"
    example: ClassVar[str] = "bertie finetune classify --base my-model --train train.tsv --dev dev.tsv --out my-task"
    exclusive: ClassVar[Any] = (("base", "recipe"),)
    requires: ClassVar[Any] = {
        "size": "recipe",
        "tokenizer": "recipe",
        "group": "dev",
        "epsilon": "adversarial",
        "confusable": "noise",
        "top": "features",
        "feature_store": "features",
        **{f"lora_{name}": "lora" for name in ("alpha", "dropout", "on")},
    }
    task: Any = option(help=f"The task: {', '.join(TASKS)}; in Python also a task of your own.")
    task_options: SerializeAsAny[TaskOptions] = TaskOptions()
    data: DataOptions
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()
    adaptation: AdaptationOptions = AdaptationOptions()
    augmentation: NoiseOptions = NoiseOptions()
    output: OutputOptions = OutputOptions()

    @classmethod
    def tasks(cls) -> dict[str, str]:
        """The names of the tasks, each with one sentence."""
        documented = {name: (task.__doc__ or "").strip().split("\n\n")[0] for name, task in TASKS.items()}
        return {name: task.about or " ".join(documented[name].split()) for name, task in TASKS.items()}

    @classmethod
    def tasks_with(cls, option: str) -> list[str]:
        """The tasks that have an option of this name."""
        return [name for name, task in TASKS.items() if option in task.Options.model_fields]

    @classmethod
    def for_task(cls, name: str) -> type["FinetuneJob"]:
        """The job with the options of one task."""
        options = TASKS[name].Options
        about = f"{cls.tasks()[name]}\n\n{cleandoc(cls.__doc__ or '')}".replace("a task. The", f"the task {name}. The")
        made = create_model(f"Finetune_{name}", __base__=cls, __doc__=about, task_options=(options, options()))
        made.example = cls.example.replace("classify", name)
        return made

    @classmethod
    def from_options(cls, options: Mapping[str, Any], where: str | None = None) -> Self:
        task = options.get("task")
        if cls is FinetuneJob and isinstance(task, str):
            check_name("task", task, TASKS)
            return cls.for_task(task).from_options(options, where)  # type: ignore[return-value]
        return super().from_options(options, where)

    def run(self, on_event: OnEvent = ignore) -> "TrainingRun | None":
        """None in all processes but the first."""
        out, temporary = output_folder(self.output.out)
        training, adaptation = self.training, self.adaptation
        device = choose_device(training.device)
        top, low_rank = adaptation.feature_top(), adaptation.low_rank()
        share, confusable = self.augmentation.noise, self.augmentation.confusable
        noise = None if share is None else noise_of(share, confusable)
        if training.seeds > 1:
            if self.data.dev is None:
                raise SpecError("`seeds` keeps the best model, and without `dev` none is measured", hint="give `dev`")
            refuse_other_models(out)
        if self.data.group is not None and not isinstance(self.data.dev, Share):
            what = "`group` keeps rows together that a share of the training rows would separate, and `dev` is a file"
            raise SpecError(what, hint="give a share, like `dev=10%`, or drop `group`")
        check_source(self.model)
        task = self.task if isinstance(self.task, Task) else self.task_options.build()
        if task is self.task:
            use_parts(task)
        opened = [self._open(task, self.data.train, self.data.dev, self.data.group, on_event)]
        opened += [self._open_other(one, on_event) for one in self.data.also]
        steps_per_epoch = sum(steps_of(one.train.rows.num_rows, training.batch) for one in opened)
        learning = adaptation.learning(steps_per_epoch)
        self._refuse_together(learning)
        if all(one.dev is None for one in opened):
            on_event(message("no rows are held out, so the model is not measured: `dev=10%` holds out a tenth of them"))
        initial = InitialModel.of(self.model, [(one.task, one.train) for one in opened], on_event)
        rate = self._rate(learning, on_event)
        max_length = self.data.max_length or max(one.task.max_length for one in opened)
        pretrained = initial.load(training.seed)
        begun = begun_precision(out if training.seeds == 1 else seed_folder(out, training.seed))
        precision, reason = precision_on(device, training.precision, pretrained.recipe.encoder.width, begun)
        on_event(message(f"computing {on_device(device)}in {precision}: {reason}"))
        tokenizer = pretrained.tokenizer_for(max_length)
        if note := initial.note(tokenizer):
            on_event(message(note))
        fitting_tasks(pretrained, [one.task for one in opened], top)  # before all rows are read
        opened = [self._continued(one, pretrained, on_event) for one in opened]
        if not training.epochs:
            on_event(message("nothing is trained: the model is measured as it is"))
        policy: Policy = "skip" if self.data.skip_bad else "refuse"
        prepared = [PreparedTask.of(one.task, one.train, one.dev, tokenizer, max_length, policy) for one in opened]
        for one in prepared:
            on_event(message("\n".join(one.card.lines())))
            for examples in (one.train, one.dev):
                if examples is not None and tokenizer.confusable.steps:
                    report_corrected_rows(examples, on_event)
            if (what_is_unknown := one.train.unknown.warning()) is not None:
                on_event(warning(what_is_unknown))
            if one.dev is not None:
                report_unmeasured(one.task, one.dev.data, on_event)
                if one.dev.faults.counts:
                    on_event(warning(str(one.dev.faults)))
        fields = {
            "length": max_length,
            "precision": precision,
            "optimizer": {"kind": "adamw", "rate": rate, "decay": training.weight_decay},
            "schedule": {"kind": "linear", "warmup": training.warmup},
            "adversary": training.adversary(),
            "top": top,
            "learning": learning,
            "low_rank": low_rank,
            "noise": noise,
            "patience": training.patience,
            **{
                name: value
                for name, value in (("eval_every", training.eval_every), ("save_every", training.save_every))
                if value is not None
            },
        }
        seeds = range(training.seed, training.seed + training.seeds)
        folders = {seed: out if len(seeds) == 1 else seed_folder(out, seed) for seed in seeds}
        if top is not None and not all(map(is_finished, folders.values())):
            store = self._feature_store(out)
            prepared = store_features(store, pretrained, prepared, top, on_event, device)
        num_rows = [one.train.num_samples for one in prepared]
        summaries: dict[int, dict[str, Any]] = {}
        with joined(device) as ranks:
            for seed, folder in folders.items():
                options = FinetuneOptions.of_epochs(num_rows, training.epochs, training.batch, {**fields, "seed": seed})
                # A run changes the model that it is given.
                model = pretrained if seed == training.seed else initial.load(seed)
                was_finished = is_finished(folder)
                with run_stoppable(folder, self.output.tensorboard, ranks.leads, on_event) as report:
                    found = run_finetuning(
                        folder,
                        model,
                        prepared,
                        options,
                        base=initial.name,
                        config=self._config(seed),
                        reading=self.data.reading(),
                        on_event=report,
                        ranks=ranks,
                        device=device,
                    )
                summaries[seed] = found.summary
                if ranks.leads:
                    for note in summaries[seed]["notes"]:
                        on_event(message(note))
                    write_reports(
                        folder,
                        prepared,
                        found,
                        on_event,
                        shown=len(seeds) == 1,
                        was_finished=was_finished,
                        device=device,
                    )
            if not ranks.leads:
                return None
        summary = summaries[training.seed] if len(seeds) == 1 else keep_best(out, summaries)
        return TrainingRun(out, summary, temporary, training.device)

    def _config(self, seed: int) -> str | None:
        """What OUT/config.toml holds: the options of this run. None where something is only in memory."""
        files = [self.data.train, self.data.dev, *(one for also in self.data.also for one in (also.train, also.dev))]
        if not all(one is None or is_paths(one) for one in files) or isinstance(self.task, Task):
            return None
        if not isinstance(self.model.recipe, str | None):
            return None
        given = self.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        given.get("output", {}).pop("out", None)
        for name in ("train", "dev"):
            if name in given["data"]:
                given["data"][name] = [str(Path(one).resolve()) for one in given["data"][name]]
        for name in ("base", "tokenizer", "corrections"):
            if (path := given.get("model", {}).get(name)) and Path(path).exists():  # else it is a name on the hub
                given["model"][name] = str(Path(path).resolve())
        given["training"] = {**given.get("training", {}), "seed": seed, "seeds": 1}
        return to_toml(given)

    def _open(self, task: Task, train: Any, dev: Any, group: str | None, on_event: OnEvent) -> OpenTask:
        """Opens the rows and fits the task to them, which gives also those that are held out of them known labels."""
        data = self.data
        read = partial(
            open_labelled,
            columns=data.column,
            format=data.format,
            header=data.header,
            encoding=data.encoding,
            on_event=on_event,
        )
        learned = read(task, rows_or_paths(train, "train"))
        measured = None if dev is None or isinstance(dev, Share) else read(task, rows_or_paths(dev, "dev"))
        if (num_read := len(learned.sample_numbers())) < learned.rows.num_rows:
            on_event(message(f"labels are taken from {num_read:,} of {learned.rows.num_rows:,} rows, evenly spaced"))
        fitted = fit(task, learned, "skip" if data.skip_bad else "refuse")
        if isinstance(dev, Share):
            learned, measured, what = hold_out(task, learned, dev.share, self.training.seed, group)
            on_event(message(what))
        if summary := fitted.summary():
            on_event(message(summary))
        for role in fitted.unread(learned.columns):
            on_event(message(f"the column {learned.columns[role]!r} is not used for training"))
        return OpenTask(fitted, learned, measured)

    def _continued(self, opened: OpenTask, pretrained: Pretrained, on_event: OnEvent) -> OpenTask:
        """With labels in the order of the base's head, where it was trained for the same ones."""
        earlier = next((one for one in pretrained.recipe.objectives if one.name == opened.task.name), None)
        task = opened.task if earlier is None else opened.task.numbered_as(earlier)
        is_kept = earlier is not None and task.has_labels_of(earlier) and self.adaptation.features is None
        if is_kept or earlier is not None or not self.training.epochs:
            reason = "" if earlier is None or is_kept else ", since the base was trained for other labels"
            on_event(message("the head is that of the base" if is_kept else f"the head is new{reason}"))
        return replace(opened, task=task)

    def _open_other(self, other: AlsoTask, on_event: OnEvent) -> OpenTask:
        task = new_task(other.task)
        return self._open(
            task if other.name is None else task.replace(name=other.name), other.train, other.dev, None, on_event
        )

    def _refuse_together(self, learning: LearningSpec | None) -> None:
        adaptation, random_weights = self.adaptation, self.model.recipe is not None
        features, lora = adaptation.features is not None, adaptation.lora is not None
        others = {"adversarial": self.training.adversarial, "noise": self.augmentation.noise}
        if features and (other := next((name for name, value in others.items() if value), None)):
            what = f"`{other}` changes rows, but with `features` the encoder reads every row once, as it is"
            raise SpecError(what, hint="drop one of them")
        if features and (learning or lora):
            other = "`lora`" if lora else "`freeze`, `unfreeze_every` or `layer_decay`"
            raise SpecError(f"`features` freezes the whole encoder, so {other} has no effect", hint="drop one of them")
        frozen = learning is not None and learning.freeze is not None
        if random_weights and (features or lora or frozen):
            name = "features" if features else "lora" if lora else "freeze"
            raise SpecError(f"`{name}` would keep random weights as they are", hint="give `base` instead of `recipe`")
        if lora and learning is not None and learning.freeze == "all":
            raise SpecError("`freeze=all` leaves nothing for `lora` to train", hint="drop one of them")

    def _rate(self, learning: LearningSpec | None, on_event: OnEvent) -> float:
        """The given learning rate, or the usual one for what is trained."""
        if self.training.lr is not None:
            return self.training.lr
        usual = {
            "frozen features": TOP_RATE if self.adaptation.features else None,
            "adapters or heads alone": NEW_RATE
            if self.adaptation.lora or (learning and learning.freeze == "all")
            else None,
            "random weights": FRESH_RATE if self.model.recipe else None,
        }
        for reason, rate in usual.items():
            if rate is not None:
                on_event(message(f"the learning rate is {rate:g}, the default for {reason}"))
                return rate
        return RATE

    def _feature_store(self, out: Path) -> Path:
        """Where features are kept: beside the run's folder, which holds nothing but the run."""
        store = self.adaptation.feature_store or out.parent / FEATURES
        if out.resolve() in (store.resolve(), *store.resolve().parents):
            what = "features cannot be stored in the run's own folder"
            raise SpecError(what, where=str(store), hint="name another folder with `feature_store`")
        return store
