"""The options of `bertie pretrain` enter as they were given; what is to be trained, on what and how, leaves."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from bertie.cli.amounts import count_of, curriculum_of, seconds_of
from bertie.cli.choices import check, choose_recipe, told_by_flags
from bertie.cli.config_file import FILE, settle, write_toml
from bertie.cli.corpus_opening import open_training_corpus
from bertie.data.corpus import Corpus
from bertie.data.frozen_corpus import FrozenCorpus
from bertie.data.parallel_corpus import ParallelCorpus
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.pretrained import load
from bertie.models.teacher import Taught, give_teacher, learns_from_teacher
from bertie.models.variant import MASKS, SENTENCES, vary, with_recipe
from bertie.nn.native.attention import kernel as attention_kernel
from bertie.text.tokenizer import Tokenizer
from bertie.train.budget import AnyBudget, Steps, Time, Tokens
from bertie.train.options import PretrainOptions
from bertie.train.precision import CHOICES, choose_precision
from bertie.train.run_data import AnyCorpus
from bertie.train.schedule import SCHEDULES

Given = dict[str, Any]  # options by the names of the function's parameters

BUDGETS = ("steps", "tokens", "time")
GROUPS = (BUDGETS, ("recipe", "base"), ("length", "curriculum"))  # one of each at most
DEPENDENT = (("ramp_share", "ramp_from"), ("size", "recipe"))
CHOSEN = (("schedule", SCHEDULES), ("mask", MASKS), ("sentences", SENTENCES), ("precision", CHOICES))
FLAGS = {  # of what a user may get wrong in ways that only the options as a whole can tell
    "rate": "--lr",
    "decay": "--weight-decay",
    "clip": "--clip",
    "warmup": "--warmup",
    "begin": "--ramp-from",
    "share": "--ramp-share",
}
LENGTH = 128
WARMUP, LONGEST_WARMUP = 0.1, 10_000  # a share of the run; steps
NOT_KEPT = (FILE, "out")  # in the file of options: it says what is done, not where


@dataclass(frozen=True)
class Request:
    model: Model
    base: str | None  # the digest of the model that it continues
    teacher: str | None  # that of the one it learns from
    corpus: AnyCorpus
    tokenizer: Tokenizer
    options: PretrainOptions
    config: str  # all options, as a file for --config
    told: str  # what was chosen for the user
    tensorboard: bool


def read_request(ctx: typer.Context) -> Request:
    given = settle(ctx, GROUPS, DEPENDENT)
    for name, known in CHOSEN:
        if given[name] is not None:
            check(name, given[name], known)
    if given["tensorboard"] and find_spec("tensorboard") is None:
        raise SpecError("TensorBoard is not installed", hint="pip install tensorboard, or leave out --tensorboard")
    budget = choose_budget(given)
    found, tokenizer = open_training_corpus(Path(given["corpus"]), given["tokenizer"] and Path(given["tokenizer"]))
    corpus = with_translations(found, given["translations"], tokenizer)
    if isinstance(corpus, FrozenCorpus) and given["length"] is None and given["curriculum"] is None:
        given["length"] = corpus.about["samples"]["length"]
    model, digest = choose_model(given, tokenizer)
    given["precision"], why = choose_precision(given["precision"], model.recipe.encoder.width)
    options = choose_options(given, budget)
    taught = choose_teacher(given, model, tokenizer, options)
    told = f"computing in {options.precision}: {why}"
    if tokenizer.kind != model.recipe.tokenizer:
        told += (
            f"; {model.recipe.name} is meant for a {model.recipe.tokenizer} vocabulary, the corpus has {tokenizer.kind}"
        )
    if attention_kernel() is None:
        told += "; without kernels of our own, which need a C compiler (cc): slower"
    told = "; ".join([told, *(taught.notes if taught else ())])
    config = config_text(ctx, given, options)
    return Request(
        model, digest, taught and taught.digest, corpus, tokenizer, options, config, told, given["tensorboard"]
    )


def choose_budget(given: Given) -> AnyBudget:
    if given["steps"] is not None:
        return Steps(steps=given["steps"])
    if given["tokens"] is not None:
        return Tokens(tokens=count_of(given["tokens"], "--tokens"))
    if given["time"] is not None:
        return Time(seconds=seconds_of(given["time"], "--time"))
    raise SpecError("how long to train is not said", hint="give --steps, --tokens or --time")


def choose_options(given: Given, budget: AnyBudget) -> PretrainOptions:
    curriculum = given["curriculum"] and curriculum_of(given["curriculum"], "--curriculum")
    ramp = given["ramp_from"] and {"begin": given["ramp_from"], "share": given["ramp_share"]}
    same = (
        "seed",
        "batch_tokens",
        "precision",
        "static_masks",
        "save_every",
        "keep",
        "held_out",
        "eval_rows",
        "log_every",
    )
    fields = {
        **{name: given[name] for name in same},
        "budget": budget,
        "length": curriculum.phases[-1].length if curriculum else given["length"] or LENGTH,
        "curriculum": curriculum,
        "ramp": ramp,
        "micro_tokens": min(given["micro_tokens"], given["batch_tokens"]),
        "adamw": {"kind": "adamw", "rate": given["lr"], "decay": given["weight_decay"], "clip": given["clip"]},
        "schedule": {"kind": given["schedule"], "warmup": warmup_share(given["warmup"], budget)},
        "eval_every": given["eval_every"] or given["save_every"],
    }
    with told_by_flags(FLAGS):
        return PretrainOptions.parse(fields, where="bertie pretrain")


def warmup_share(warmup: float | None, budget: AnyBudget) -> float:
    """From 1 on it is meant in steps."""
    steps = budget.steps if isinstance(budget, Steps) else None
    if warmup is None:
        return WARMUP if steps is None else min(steps // 10, LONGEST_WARMUP) / steps
    if warmup < 1:
        return warmup
    if steps is None:
        raise SpecError(f"--warmup {warmup:g} is in steps, the run is not", hint="give a share of the run, like 0.1")
    if warmup > steps:
        raise SpecError(f"a warm-up of {warmup:,.0f} steps does not fit into {steps:,} steps")
    return warmup / steps


def choose_model(given: Given, tokenizer: Tokenizer) -> tuple[Model, str | None]:
    """The model to begin with, and the digest of the one that it continues."""
    wishes = {name: given[name] for name in ("mask", "mask_rate", "sentences")}
    if given["recipe"] is not None:
        recipe = choose_recipe(given["recipe"], given["size"], tokenizer.size)
        return Model.new(vary(recipe, **wishes), given["seed"]), None
    if given["base"] is None:
        raise SpecError("what to train is not said", hint="give --recipe or --from")
    pretrained = load(given["base"])
    if pretrained.tokenizer is not None and pretrained.tokenizer.digest != tokenizer.digest:
        raise SpecError(
            f"its tokenizer ({pretrained.tokenizer.digest}) is not the corpus's ({tokenizer.digest})",
            where=given["base"],
            hint="build the corpus with the model's own tokenizer",
        )
    varied = vary(pretrained.recipe, **wishes)
    return with_recipe(pretrained.model, varied, given["seed"]), pretrained.digest


def choose_teacher(given: Given, model: Model, tokenizer: Tokenizer, options: PretrainOptions) -> Taught | None:
    """Gives the model its teacher."""
    if learns_from_teacher(model) != (given["teacher"] is not None):
        what = "learns from no teacher" if given["teacher"] else "learns from a teacher"
        hint = "leave out --teacher" if given["teacher"] else "give a model folder with --teacher"
        raise SpecError(f"the model {model.recipe.name!r} {what}", hint=hint)
    if given["teacher"] is None:
        return None
    begin, length = given["recipe"] is not None, max(phase.length for phase in options.lengths.phases)
    return give_teacher(model, given["teacher"], tokenizer, begin, length)


def with_translations(corpus: AnyCorpus, translations: str | None, tokenizer: Tokenizer) -> AnyCorpus:
    if translations is None:
        return corpus
    if not isinstance(corpus, Corpus):
        raise SpecError("a frozen corpus has no translations beside it", hint="leave out --translations")
    return ParallelCorpus(corpus, Corpus.open(translations, tokenizer))


def config_text(ctx: typer.Context, given: Given, options: PretrainOptions) -> str:
    """All options as they were decided, under the names of their flags."""
    decided = {
        **given,
        "length": None if options.curriculum else options.length,
        "micro_tokens": options.micro_tokens,
        "eval_every": options.eval_every,
        "warmup": given["steps"] if options.schedule.warmup == 1 else options.schedule.warmup,  # 1 would be one step
        "size": given["size"] if given["recipe"] else None,
        "ramp_share": given["ramp_share"] if given["ramp_from"] else None,
        **{name: _absolute(given[name]) for name in ("corpus", "base", "tokenizer", "teacher", "translations")},
    }
    flags = {option.name: option.opts[0].lstrip("-") for option in ctx.command.params}
    return write_toml({flags[name]: decided[name] for name in flags if name in decided and name not in NOT_KEPT})


def _absolute(path: str | Path | None) -> str | None:
    """What is no path here is a name on the hub."""
    if path is None:
        return None
    return str(Path(path).resolve() if Path(path).exists() else path)
