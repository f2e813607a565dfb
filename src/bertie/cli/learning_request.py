"""The words of `finetune` about what learns, and how fast, enter; specs and the usual learning rate leave."""

from typing import Any, get_args

from bertie.cli.choices import check, told_by_flags
from bertie.errors import SpecError
from bertie.nn.low_rank import LowRankSpec, Target
from bertie.train.learning_rates import LearningSpec

EPOCH = "epoch"
TARGETS: tuple[str, ...] = get_args(Target)
# Where --lr is not given: what is new begins at zero or at random, and has further to go than trained weights.
NEW_RATE = 1e-3


def low_rank_of(rank: int | None, alpha: float | None, dropout: float | None, on: str | None) -> LowRankSpec | None:
    """--lora and what belongs to it."""
    parts = None if on is None else [word.strip() for word in on.split(",")]
    given = {"alpha": alpha, "dropout": dropout, "on": parts}
    told: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if rank is None:
        if told:
            name = f"--lora-{next(iter(told))}"
            raise SpecError(f"{name} says nothing without --lora", hint=f"give --lora RANK, or leave out {name}")
        return None
    for word in told.get("on", ()):
        check("part of a layer", word, TARGETS)
    with told_by_flags({name: f"--lora-{name}" for name in given}):
        # Of as many weights, those in all matrices learn more than those in queries and values (docs/log.md).
        return LowRankSpec.parse({"rank": rank, "on": TARGETS, **told}, where="bertie finetune")


def learning_of(
    freeze: str | None, unfreeze_every: str | None, layer_decay: float | None, epoch: int
) -> LearningSpec | None:
    """`epoch` is how many steps it has."""
    fields: dict[str, Any] = {}
    if freeze is not None:
        if not freeze.isdecimal():
            check("level to freeze", freeze, ("embeddings", "all", "a number of layers"))
        fields["freeze"] = int(freeze) if freeze.isdecimal() else freeze
    if unfreeze_every is not None:
        if unfreeze_every != EPOCH and not unfreeze_every.isdecimal():
            raise SpecError(f"--unfreeze-every {unfreeze_every!r} is no number of steps", hint=f"or say {EPOCH}")
        fields["unfreeze_every"] = epoch if unfreeze_every == EPOCH else int(unfreeze_every)
    if layer_decay is not None:
        fields["layer_decay"] = layer_decay
    with told_by_flags({name: f"--{name.replace('_', '-')}" for name in LearningSpec.model_fields}):
        return LearningSpec.parse(fields, where="bertie finetune") if fields else None


def refuse_together(learning: LearningSpec | None, low_rank: LowRankSpec | None, features: bool, fresh: bool) -> None:
    """`fresh`: the model begins with random weights."""
    if features and (learning or low_rank):
        wish = "--lora" if low_rank else "--freeze, --unfreeze-every or --layer-decay"
        raise SpecError(f"--features freezes the whole encoder, so {wish} says nothing", hint="leave one of them out")
    if fresh and (features or low_rank or (learning and learning.freeze is not None)):
        wish = "--features" if features else "--lora" if low_rank else "--freeze"
        raise SpecError(f"{wish} would keep random weights as they are", hint="give --base FOLDER instead of --recipe")
    if low_rank and learning and learning.freeze == "all":
        raise SpecError("--freeze all leaves nothing for --lora to learn", hint="leave one of them out")


def usual_rate(learning: LearningSpec | None, low_rank: LowRankSpec | None) -> float | None:
    """None: that of a model that learns as a whole."""
    is_new_alone = low_rank is not None or (learning is not None and learning.freeze == "all")
    return NEW_RATE if is_new_alone else None
