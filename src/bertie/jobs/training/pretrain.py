"""The job `pretrain`: trains a model on a corpus, or continues a run."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

from bertie.data.corpus import Corpus
from bertie.data.frozen_corpus import FrozenCorpus
from bertie.data.parallel_corpus import ParallelCorpus
from bertie.devices import CPU, DeviceName, choose_device
from bertie.devices import HELP as DEVICE_HELP
from bertie.errors import SpecError
from bertie.inspection.costs import pace_at_peak
from bertie.jobs.job import LARGEST_SEED, Group, Job, option
from bertie.jobs.options.amounts import AnyCurriculum, Count, Seconds
from bertie.jobs.options.data import Folder, ModelSource
from bertie.jobs.options.recipe_choice import AnyRecipe, choose_recipe
from bertie.jobs.options.toml import to_toml
from bertie.jobs.text.corpus_jobs import open_training_corpus
from bertie.jobs.training.training_run import TrainingRun, output_folder, run_stoppable
from bertie.models.model import Model
from bertie.models.pretrained import load
from bertie.models.recipes import DEFAULT, SETTINGS, Settings
from bertie.models.teacher import Taught, give_teacher, learns_from_teacher
from bertie.models.variant import vary, with_recipe
from bertie.nn.native.attention_kernel import kernel as attention_kernel
from bertie.reporting.events import OnEvent, ignore, message
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import AnyBudget, Steps, Time, Tokens
from bertie.train.distribution import joined
from bertie.train.folder.run_folder import begun_precision
from bertie.train.learning.optimizer import GroupedSpec, choose_optimizer
from bertie.train.learning.precision import on_device, precision_on
from bertie.train.pretraining.corpus_data import AnyCorpus
from bertie.train.pretraining.options import MICRO_TOKENS, PretrainOptions
from bertie.train.run import pretrain as run_pretraining

LENGTH = 128
BERT, QUICK = Settings(), SETTINGS[DEFAULT]
WARMUP, LONGEST_WARMUP = 0.1, 10_000  # a share of the run; steps


class DataOptions(Group):
    title: ClassVar[str] = "Data"
    corpus: Folder = option(help="A corpus folder; a frozen one too.", metavar="FOLDER")
    tokenizer: Folder | None = option(None, "The tokenizer, if the corpus has none of its own.", metavar="FOLDER")
    translations: Folder | None = option(
        None, "A corpus whose documents translate those of the corpus, in the same order (xlm).", metavar="FOLDER"
    )
    held_out: int = option(100, "Hold out one document in N for evaluation; 0 for none.", ge=0)


class ModelOptions(Group):
    title: ClassVar[str] = "Model"
    recipe: AnyRecipe | None = option(
        None, f"The recipe to train from random weights, {DEFAULT} by default; see bertie recipes.", common=True
    )
    size: str = option("mini", "Size of the recipe: tiny, mini, small, medium, base, large.", common=True)
    base: ModelSource | None = option(None, "A model folder to continue from, instead of a recipe.", common=True)
    teacher: ModelSource | None = option(None, "The model folder that a student (distilbert) learns from.")
    mask: Literal["token", "whole-word", "span", "n-gram"] | None = option(
        None, "What is masked: token, whole-word, span or n-gram; the recipe decides by default.", common=True
    )
    mask_rate: float | None = option(
        None, "Share of tokens that are masked; the recipe decides by default.", gt=0, lt=1
    )
    sentences: Literal["nsp", "sop", "none"] | None = option(
        None, "The task on pairs of sentences: nsp, sop or none; the recipe decides by default."
    )
    static_masks: int | None = option(None, "Use only N different masks per sample, in turn.", ge=1)


class TrainingOptions(Group):
    title: ClassVar[str] = "Training"
    steps: int | None = option(None, "Number of optimizer steps.", common=True, ge=1)
    tokens: Count | None = option(None, "Number of tokens to train on, like 50M.", common=True, metavar="COUNT")
    time: Seconds | None = option(None, "Train for so long, like 90m.", common=True, metavar="TIME")
    max_length: int | None = option(None, f"Tokens per row; {LENGTH} by default.", common=True, ge=8)
    curriculum: AnyCurriculum | None = option(
        None, "Lengths and their shares of the run, like 128:0.9,512:0.1.", metavar="LENGTH:SHARE,..."
    )
    batch_tokens: int | None = option(
        None,
        f"Tokens per step; {BERT.batch_tokens:,} by default, {QUICK.batch_tokens:,} with {DEFAULT}.",
        common=True,
        ge=1,
    )
    micro_tokens: int = option(
        MICRO_TOKENS, "Tokens computed at once, at most those of a step; fewer need less memory.", ge=1
    )
    ramp_from: int | None = option(None, "Tokens of the first step; they grow to `batch_tokens`.", ge=1)
    ramp_share: float = option(0.1, "Share of the run over which they grow.", gt=0, le=1)
    optimizer: Literal["adamw", "muon"] = option(
        "adamw", "adamw, or muon: Muon for the matrices of the layers, AdamW for all else."
    )
    lr: float | None = option(
        None, f"Highest learning rate; {BERT.rate:g} by default, {QUICK.rate:g} with {DEFAULT}.", common=True, gt=0
    )
    warmup: float | None = option(
        None, "Share of the run, or steps of a run in steps; a tenth, at most 10,000 steps, by default.", ge=0
    )
    schedule: Literal["linear", "cosine", "inverse-root", "constant"] = option(
        "linear", "How the learning rate falls after the warm-up: linear, cosine, inverse-root, constant."
    )
    weight_decay: float = option(0.01, "Weight decay, not applied to biases and norms.", ge=0)
    clip: float = option(1.0, "Clip gradients to this norm.", gt=0)
    seed: int = option(0, "Random seed of weights, order, masks and dropout.", common=True, ge=0, le=LARGEST_SEED)
    precision: Literal["auto", "float32", "bfloat16"] = option(
        "auto", "Precision of matrix products; auto picks the fastest as measured."
    )
    device: DeviceName = option("auto", DEVICE_HELP)


class OutputOptions(Group):
    title: ClassVar[str] = "Output"
    out: Path | None = option(None, "Run folder; an unfinished run in it is continued.", needed=True, metavar="FOLDER")
    save_every: int = option(200, "Steps between checkpoints.", ge=1)
    keep: int = option(2, "Checkpoints to keep, beside the best one.", ge=1)
    eval_every: int | None = option(None, "Steps between evaluations; as checkpoints by default.", ge=1)
    eval_rows: int = option(256, "Rows of an evaluation.", ge=1)
    log_every: int = option(1, "Steps per line of log.jsonl.", ge=1)
    tensorboard: bool = option(False, "Also write figures for TensorBoard.")


@dataclass(frozen=True)
class Prepared:
    """What a run needs, opened and checked."""

    model: Model
    base: str | None  # the digest of the model that it continues
    teacher: Taught | None
    corpus: AnyCorpus
    tokenizer: Tokenizer
    options: PretrainOptions
    notes: tuple[str, ...]


class PretrainJob(Job):
    """Train a model on a corpus. The finished model is in OUT/model.

    Without `recipe` and `base` it is the recipe quick, which learns more than bert in little time. The recipes of
    papers learn with the settings of BERT unless told otherwise.

    Ctrl-C saves and stops; the same command continues, and ends in the same weights as a run that was never stopped
    (nearly the same with `time`, where the clock decides the learning rate).

    torchrun --nproc-per-node 2 -m bertie pretrain ... shares the rows of every step between processes.
    OUT/config.toml holds all options: bertie pretrain --config OUT/config.toml --out NEW repeats the run.
    """

    verb: ClassVar[str] = "pretrain"
    example: ClassVar[str] = "bertie pretrain --recipe bert --size mini --corpus my-corpus --steps 2000 --out my-run"
    exclusive: ClassVar[Any] = (
        ("steps", "tokens", "time"),
        ("recipe", "base"),
        ("size", "base"),
        ("max_length", "curriculum"),
    )
    requires: ClassVar[Any] = {"ramp_share": "ramp_from"}
    data: DataOptions
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()
    output: OutputOptions = OutputOptions()

    def run(self, on_event: OnEvent = ignore) -> TrainingRun | None:
        """None in all processes but the first."""
        out, temporary = output_folder(self.output.out)
        device = choose_device(self.training.device)
        prepared = self.prepare()
        with joined(device) as ranks, run_stoppable(out, self.output.tensorboard, ranks.leads, on_event) as report:
            for note in prepared.notes:
                report(message(note))
            summary = run_pretraining(
                out,
                prepared.model,
                prepared.corpus,
                prepared.tokenizer,
                prepared.options,
                base=prepared.base,
                teacher=prepared.teacher and prepared.teacher.digest,
                config=to_toml(self.repeatable(prepared.options)),
                peak=pace_at_peak(prepared.model, prepared.options.precision, ranks.size) if device == CPU else None,
                on_event=report,
                ranks=ranks,
                device=device,
            )
            for note in summary["notes"]:
                report(message(note))
            return TrainingRun(out, summary, temporary, self.training.device) if ranks.leads else None

    def prepare(self) -> Prepared:
        """Opens all that the run needs. What cannot work is refused here, before anything is written."""
        data, training = self.data, self.training
        device = choose_device(training.device)
        if self.output.tensorboard and find_spec("tensorboard") is None:
            raise SpecError("TensorBoard is not installed", hint="pip install tensorboard, or drop `tensorboard`")
        budget = self._budget()
        opened, tokenizer = open_training_corpus(data.corpus, data.tokenizer)
        corpus: AnyCorpus = opened
        if data.translations is not None:
            if not isinstance(opened, Corpus):
                raise SpecError("a frozen corpus has no translations beside it", hint="drop `translations`")
            corpus = ParallelCorpus(opened, Corpus.open(data.translations, tokenizer))
        length = training.max_length or LENGTH
        if isinstance(corpus, FrozenCorpus) and training.max_length is None:
            length = corpus.about["samples"]["length"]
        model, base = self._model(tokenizer)
        begun = None if self.output.out is None else begun_precision(self.output.out)
        precision, reason = precision_on(device, training.precision, model.recipe.encoder.width, begun)
        options = self._options(
            budget, length, precision, SETTINGS.get(model.recipe.name, BERT) if base is None else BERT
        )
        teacher = self._teacher(model, tokenizer, options)
        notes = [f"computing {on_device(device)}in {precision}: {reason}"]
        if tokenizer.kind != model.recipe.tokenizer:
            expected = f"{model.recipe.name} is meant for a {model.recipe.tokenizer} vocabulary"
            notes.append(f"{expected}; the corpus has {tokenizer.kind}")
        if device == CPU and attention_kernel() is None:
            notes.append("no C compiler (cc) was found for bertie's own kernels: training is slower")
        return Prepared(model, base, teacher, corpus, tokenizer, options, (*notes, *(teacher.notes if teacher else ())))

    def _budget(self) -> AnyBudget:
        training = self.training
        if training.steps is not None:
            return Steps(steps=training.steps)
        if training.tokens is not None:
            return Tokens(tokens=training.tokens)
        if training.time is not None:
            return Time(seconds=training.time)
        raise SpecError("say how long to train", hint="give `steps`, `tokens` or `time`")

    def _options(self, budget: AnyBudget, length: int, precision: Any, usual: Settings) -> PretrainOptions:
        training, output = self.training, self.output
        batch_tokens, rate = training.batch_tokens or usual.batch_tokens, training.lr or usual.rate
        curriculum = training.curriculum
        ramp = training.ramp_from and {"begin": training.ramp_from, "share": training.ramp_share}
        fields = {
            "budget": budget,
            "seed": training.seed,
            "length": curriculum.phases[-1].length if curriculum else length,
            "curriculum": curriculum,
            "batch_tokens": batch_tokens,
            "ramp": ramp,
            "micro_tokens": min(training.micro_tokens, batch_tokens),
            "precision": precision,
            "static_masks": self.model.static_masks,
            "optimizer": choose_optimizer(training.optimizer, rate, training.weight_decay),
            "clip": training.clip,
            "schedule": {"kind": training.schedule, "warmup": self._warmup(budget)},
            "save_every": output.save_every,
            "keep": output.keep,
            "held_out": self.data.held_out,
            "eval_every": output.eval_every or output.save_every,
            "eval_rows": output.eval_rows,
            "log_every": output.log_every,
        }
        return PretrainOptions.parse(fields, where="bertie pretrain")

    def _warmup(self, budget: AnyBudget) -> float:
        """As a share of the run; from 1 on, `warmup` is meant in steps."""
        warmup, steps = self.training.warmup, budget.steps if isinstance(budget, Steps) else None
        if warmup is None:
            return WARMUP if steps is None else min(steps // 10, LONGEST_WARMUP) / steps
        if warmup < 1:
            return warmup
        if steps is None:
            hint = "give a share of the run, like 0.1"
            raise SpecError(f"`warmup={warmup:g}` is in steps, but the run is not", hint=hint)
        if warmup > steps:
            raise SpecError(f"a warm-up of {warmup:,.0f} steps does not fit into {steps:,} steps")
        return warmup / steps

    def _model(self, tokenizer: Tokenizer) -> tuple[Model, str | None]:
        """The model to start with, and the digest of the one that it continues."""
        chosen, seed = self.model, self.training.seed
        wishes: Any = {"mask": chosen.mask, "mask_rate": chosen.mask_rate, "sentences": chosen.sentences}
        if chosen.base is None:
            recipe = choose_recipe(chosen.recipe or DEFAULT, chosen.size, tokenizer.size)
            return Model.new(vary(recipe, **wishes), seed), None
        pretrained = load(chosen.base)
        if pretrained.tokenizer is not None and pretrained.tokenizer.digest != tokenizer.digest:
            what = f"its tokenizer ({pretrained.tokenizer.digest}) is not the corpus's ({tokenizer.digest})"
            raise SpecError(what, where=chosen.base, hint="build the corpus with the model's own tokenizer")
        varied = vary(pretrained.recipe, **wishes)
        return with_recipe(pretrained.model, varied, seed), pretrained.digest

    def _teacher(self, model: Model, tokenizer: Tokenizer, options: PretrainOptions) -> Taught | None:
        teacher, name = self.model.teacher, model.recipe.name
        if learns_from_teacher(model) and teacher is None:
            raise SpecError(f"the recipe {name!r} learns from a teacher", hint="give a model folder as `teacher`")
        if teacher is None:
            return None
        if not learns_from_teacher(model):
            raise SpecError(f"the recipe {name!r} does not learn from a teacher", hint="drop `teacher`")
        length = max(phase.length for phase in options.lengths.phases)
        return give_teacher(model, teacher, tokenizer, self.model.base is None, length)

    def repeatable(self, options: PretrainOptions) -> dict[str, Any]:
        """All options as they were decided, without the place of the results: what OUT/config.toml holds."""
        given = self.model_dump(mode="json", exclude_none=True)
        given["output"].pop("out", None)
        for group, name in (
            *(("data", name) for name in ("corpus", "tokenizer", "translations")),
            *(("model", name) for name in ("base", "teacher")),
        ):
            if (path := given[group].get(name)) and Path(path).exists():  # else it is a name on the hub
                given[group][name] = str(Path(path).resolve())
        if self.model.base is not None:
            given["model"].pop("size", None)
        elif self.model.recipe is None:
            given["model"]["recipe"] = DEFAULT
        if self.training.ramp_from is None:
            given["training"].pop("ramp_share", None)
        training = given["training"]
        training |= {"micro_tokens": options.micro_tokens, "precision": options.precision}
        usual = (
            options.optimizer.groups[-1].optimizer if isinstance(options.optimizer, GroupedSpec) else options.optimizer
        )
        training |= {"batch_tokens": options.batch_tokens, "lr": usual.rate}
        if options.curriculum is None:
            training["max_length"] = options.length
        # A warm-up of 1 would be one step.
        training["warmup"] = self.training.steps if options.schedule.warmup == 1 else options.schedule.warmup
        given["output"]["eval_every"] = options.eval_every
        # In the order of the fields, whatever was given.
        return {
            group: {name: values[name] for name in type(getattr(self, group)).model_fields if name in values}
            for group, values in given.items()
        }
