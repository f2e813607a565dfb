"""The options of fine-tuning, in groups, and what they stand for: specs of training/."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, PlainSerializer

from bertie.devices import HELP as DEVICE_HELP
from bertie.devices import DeviceName
from bertie.errors import SpecError
from bertie.jobs.job import LARGEST_SEED, Group, option
from bertie.jobs.options.data import Data, Folder, ModelSource, as_data, plain_data
from bertie.jobs.options.recipe_choice import AnyRecipe
from bertie.jobs.options.text_sources import ENCODING_HELP, Encoding
from bertie.nn.feature_top import LAYER_CHOICES, FeatureTopSpec, LSTMLayersSpec
from bertie.nn.low_rank import LowRankSpec, Target
from bertie.spec import Spec
from bertie.tasks.labelled import Reading
from bertie.text.noise import Noise, read_groups
from bertie.train.learning.learning_rates import LearningSpec

TARGETS: tuple[str, ...] = get_args(Target)
EPOCH = "epoch"
SHARE = re.compile(r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*%|(-?0?\.[0-9]{1,9})")
COUNT = re.compile(r"[0-9]{1,9}")
# Learning rates where none is given: of trained weights, of random ones, of what is new over trained ones.
RATE, FRESH_RATE, NEW_RATE, TOP_RATE = 5e-5, 1e-3, 1e-3, 1e-3


def as_columns(given: Any) -> Any:
    """["text=review", ...] as a mapping."""
    if isinstance(given, Mapping):
        return given
    columns = {}
    for word in [given] if isinstance(given, str) else given:
        role, sign, column = str(word).partition("=")
        if not sign or not role or not column:
            raise ValueError(f"{word!r} is not of the form ROLE=NAME, like text=review")
        columns[role] = column
    return columns


Columns = Annotated[dict[str, str], BeforeValidator(as_columns)]


class Share(Spec):
    """So many of the training rows, held out: "10%" or 0.1."""

    share: float = Field(gt=0, lt=1)


def _is_share(word: str | Path) -> re.Match[str] | None:
    return None if Path(word).exists() else SHARE.fullmatch(str(word))


def as_held_out(given: Any) -> Any:
    """A share of the training rows, or data. A file may have a number as its name."""
    word = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
    if isinstance(word, list | tuple) and any(isinstance(one, Path) and _is_share(one) for one in word):
        raise ValueError("give one share, or files")
    if isinstance(word, str | Path) and (found := _is_share(word)):
        share = float(found[1]) / 100 if found[1] else float(found[2])
    elif isinstance(word, int | float) and not isinstance(word, bool):
        share = float(word)
    elif isinstance(word, str | Path) and str(word).isdecimal() and not Path(word).exists():
        raise ValueError(f"{word} is neither a file nor a share of the training rows; did you mean {word}%?")
    else:
        return as_data(given)
    if not 0 < share < 1:
        raise ValueError(f"{word} is not a share of the training rows, like 10%")
    return Share(share=share)


def _plain_held_out(held_out: Any) -> Any:
    return f"{100 * held_out.share:.6g}%" if isinstance(held_out, Share) else plain_data(held_out)


HeldOut = Annotated[Any, BeforeValidator(as_held_out), PlainSerializer(_plain_held_out, when_used="json")]


class AlsoTask(Spec):
    """Another task on the same encoder."""

    task: str
    train: Data
    dev: HeldOut = None
    name: str | None = None


def _as_paths(given: Any) -> Any:
    is_names = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
    return [Path(one) for one in given] if is_names else given


def as_also(given: Any) -> Any:
    """["tag:train.conll:dev.conll", ...] as specs."""
    tasks: list[Any] = []
    for one in [given] if isinstance(given, str | Mapping | Spec) else given:
        if isinstance(one, Mapping):  # a list of strings is paths, as a config file has them
            tasks.append({name: _as_paths(value) if name in ("train", "dev") else value for name, value in one.items()})
            continue
        if not isinstance(one, str):
            tasks.append(one)
            continue
        task, *files = one.split(":")
        if len(files) not in (1, 2) or not all(files):
            raise ValueError(f"{one!r} is not of the form TASK:TRAIN[:DEV], like tag:train.conll:dev.conll")
        tasks.append({"task": task, "train": files[0], "dev": files[1] if len(files) == 2 else None})
    return tasks


Also = Annotated[tuple[AlsoTask, ...], BeforeValidator(as_also)]
COLUMN_HELP = "Which column has which role, like text=review; guessed by default."
FORMAT_HELP = (
    "Format of the files, if it is not guessed right: csv, tsv, quoted-tsv, jsonl, json, conll, squad, parquet, arrow, "
    "lines, label-text (LABEL, a space, a text), label-prefix (fastText's __label__X before a text)."
)
HEADER_HELP = "Whether csv and tsv files start with column names; guessed by default."


class DataOptions(Group):
    title: ClassVar[str] = "Data"
    train: Data = option(help="Labelled rows to train on.", many=True, paths=True, metavar="FILE")
    dev: HeldOut = option(
        None,
        "Rows to evaluate on; the best model on them is kept. 10% holds out a tenth of the training rows.",
        common=True,
        many=True,
        paths=True,
        metavar="FILE|SHARE",
    )
    group: str | None = option(
        None, "With `dev=10%`: rows with the same value in this column stay together.", metavar="COLUMN"
    )
    column: Columns = option({}, COLUMN_HELP, common=True, many=True, metavar="ROLE=NAME")
    format: str | None = option(None, FORMAT_HELP)
    header: bool | None = option(None, HEADER_HELP)
    encoding: Encoding | None = option(None, ENCODING_HELP)
    max_length: int | None = option(None, "Tokens per row; 128, for answer 384, by default.", common=True, ge=8)
    skip_bad: bool = option(False, "Skip rows that cannot be used, and count them.", common=True)
    also: Also = option((), "Another task on the same encoder.", many=True, metavar="TASK:TRAIN[:DEV]")

    def reading(self) -> Reading:
        return Reading(column=self.column, format=self.format, header=self.header, encoding=self.encoding)


class ModelOptions(Group):
    title: ClassVar[str] = "Model"
    base: ModelSource | None = option(
        None, "A model folder, a run folder, or a name on the hub.", common=True, metavar="MODEL"
    )
    recipe: AnyRecipe | None = option(
        None, "Start from random weights of this recipe instead; see bertie recipes.", common=True
    )
    size: str = option("mini", "Size of the recipe: tiny, mini, small, medium, base, large.", common=True)
    tokenizer: Folder | None = option(
        None, "Vocabulary for the recipe; trained on the training rows by default.", common=True, metavar="FOLDER"
    )
    corrections: Path | None = option(
        None,
        "A table of words to correct before a text is read, like 花呗: 花被, 花钗; saved with the model.",
        metavar="FILE",
    )


class TrainingOptions(Group):
    title: ClassVar[str] = "Training"
    epochs: float = option(3.0, "Passes over the training rows; 0 only measures the model.", common=True, ge=0)
    batch: int = option(
        32, "Rows per step; a question with all windows of its passage is one row.", common=True, ge=1, le=65_536
    )
    lr: float | None = option(
        None,
        "Highest learning rate; 5e-5 by default, but 1e-3 with `recipe`, `lora`, `features` or `freeze=all`.",
        common=True,
        gt=0,
        le=10,
    )
    warmup: float = option(0.1, "Share of the run in which the rate rises.", ge=0, le=1)
    weight_decay: float = option(0.01, "Weight decay, not applied to biases and norms.", ge=0)
    seed: int = option(0, "Random seed of new weights, order and dropout.", common=True, ge=0, le=LARGEST_SEED)
    seeds: int = option(1, "Train N times with different seeds, and keep the best.", ge=1, le=1000)
    patience: int | None = option(None, "Stop after N evaluations without improvement.", ge=1)
    eval_every: int | None = option(None, "Steps between evaluations; an epoch by default.", ge=1)
    save_every: int | None = option(None, "Steps between checkpoints; an epoch by default.", ge=1)
    precision: Literal["auto", "float32", "bfloat16"] = option(
        "auto", "Precision of matrix products; auto picks the fastest as measured."
    )
    device: DeviceName = option("auto", DEVICE_HELP)
    adversarial: Literal["fgm", "vat"] | None = option(
        None, "Also train on embeddings moved against the model: fgm, or vat, which needs no labels."
    )
    epsilon: float | None = option(None, "How far they are moved; 1 for fgm, 5 for vat by default.", ge=0)

    def adversary(self) -> dict[str, Any] | None:
        if self.adversarial is None:
            return None
        return {"kind": self.adversarial, **({} if self.epsilon is None else {"epsilon": self.epsilon})}


class AdaptationOptions(Group):
    title: ClassVar[str] = "What is trained"
    features: str | None = option(
        None, f"Freeze the encoder and train on these of its layers: {', '.join(LAYER_CHOICES)}.", common=True
    )
    top: Literal["linear", "lstm"] | None = option(None, "What is trained on features: linear (default) or lstm.")
    feature_store: Path | None = option(
        None, "Where features are kept for reuse; the folder next to OUT named features by default.", metavar="FOLDER"
    )
    freeze: str | None = option(
        None, "What to freeze: embeddings; N, for these and the N lowest layers; or all, for everything but the heads."
    )
    unfreeze_every: str | None = option(
        None,
        "Train the heads first, then unfreeze one more layer from the top every N steps, or every epoch.",
        metavar="STEPS",
    )
    layer_decay: float | None = option(
        None, "Each layer learns at this share of the rate of the one above, like 0.9.", gt=0, le=1
    )
    lora: int | None = option(
        None, "Train low-rank adapters of this rank instead of the encoder.", common=True, ge=1, le=4096
    )
    lora_alpha: float | None = option(
        None, "Adapters are scaled by alpha / rank; alpha is twice the rank by default.", gt=0
    )
    lora_dropout: float | None = option(None, "Dropout before adapters; 0 by default.", ge=0, lt=1)
    lora_on: str | None = option(None, f"What is adapted, of {','.join(TARGETS)}; all by default.")

    def feature_top(self) -> FeatureTopSpec | None:
        if self.features is None:
            return None
        if self.features not in LAYER_CHOICES:
            raise SpecError(f"`features`: {self.features!r} is not one of {', '.join(LAYER_CHOICES)}")
        return FeatureTopSpec(layers=self.features, lstm=LSTMLayersSpec() if self.top == "lstm" else None)

    def low_rank(self) -> LowRankSpec | None:
        if self.lora is None:
            return None
        # For the same number of weights, adapting all matrices works better than queries and values (docs/log.md).
        on = TARGETS if self.lora_on is None else tuple(word.strip() for word in self.lora_on.split(","))
        if unknown := next((word for word in on if word not in TARGETS), None):
            raise SpecError(f"`lora_on`: {unknown!r} is not one of {', '.join(TARGETS)}")
        given = {"rank": self.lora, "alpha": self.lora_alpha, "dropout": self.lora_dropout, "on": on}
        return _named("lora_", LowRankSpec, {name: value for name, value in given.items() if value is not None})

    def learning(self, steps_per_epoch: int) -> LearningSpec | None:
        fields: dict[str, Any] = {}
        if self.freeze is not None:
            if not COUNT.fullmatch(self.freeze) and self.freeze not in ("embeddings", "all"):
                raise SpecError(f"`freeze`: {self.freeze!r} is not embeddings, all or a number of layers")
            fields["freeze"] = int(self.freeze) if COUNT.fullmatch(self.freeze) else self.freeze
        if self.unfreeze_every is not None:
            if self.unfreeze_every != EPOCH and not COUNT.fullmatch(self.unfreeze_every):
                raise SpecError(
                    f"`unfreeze_every`: {self.unfreeze_every!r} is not a number of steps", hint=f"or {EPOCH}"
                )
            fields["unfreeze_every"] = steps_per_epoch if self.unfreeze_every == EPOCH else int(self.unfreeze_every)
        if self.layer_decay is not None:
            fields["layer_decay"] = self.layer_decay
        return _named("", LearningSpec, fields) if fields else None


class NoiseOptions(Group):
    title: ClassVar[str] = "Noise"
    noise: float | None = option(
        None, "Misspell this share of the words in every second row, differently each time.", common=True, ge=0, le=1
    )
    confusable: Path | None = option(
        None, "Chinese characters that are easily confused, one group per line.", metavar="FILE"
    )


class OutputOptions(Group):
    title: ClassVar[str] = "Output"
    out: Path | None = option(None, "Run folder; an unfinished run in it is continued.", needed=True, metavar="FOLDER")
    tensorboard: bool = option(False, "Also write figures for TensorBoard.")


def noise_of(rate: float, confusable: Path | None) -> Noise:
    return Noise.parse({"rate": rate, "groups": () if confusable is None else read_groups(confusable)}, where="`noise`")


def _named(prefix: str, spec: type[Any], fields: dict[str, Any]) -> Any:
    """The spec; a mistake in one of its fields is reported under the option's name."""
    try:
        return spec.parse(fields)
    except SpecError as error:
        field, _, what = error.what.partition(": ")
        if field not in spec.model_fields:
            raise
        raise SpecError(f"`{prefix}{field}`: {what}", hint=error.hint) from None
