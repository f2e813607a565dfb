"""Decides which weights learn at a step, and at which share of the learning rate.

Weights have levels: 0 for the embeddings, then one for each layer, the highest for heads and pooler. A final norm
belongs to the last layer. What learns is a pure function of the step, so that there is nothing to save.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, model_validator
from torch import nn

from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.nn.stack import LayerStack
from bertie.spec import Spec

Levels = Mapping[nn.Parameter, tuple[int, ...]]  # several where layers share their weights


class LearningSpec(Spec):
    """Howard and Ruder, 2018, section 3.2: one more layer from the top learns every so many steps; lower layers learn
    more slowly."""

    freeze: Literal["embeddings", "all"] | Annotated[int, Field(ge=0)] | None = None  # embeddings and so many layers
    unfreeze_every: int | None = Field(default=None, ge=1)  # steps; at first only heads learn
    layer_decay: float = Field(default=1.0, gt=0, le=1)  # of the rate, from a layer to the one below it

    @model_validator(mode="after")
    def _leaves_something(self) -> "LearningSpec":
        if self.freeze == "all" and (self.unfreeze_every is not None or self.layer_decay < 1):
            raise ValueError(
                "where all layers are frozen, none can be unfrozen or have a rate of its own: freeze fewer"
            )
        return self

    def build(self, model: Model) -> "Learning":
        """Freezes what will never learn. What was frozen before stays so."""
        learning = self.check(model)
        bottom = learning.lowest()
        for parameter, own in learning.levels.items():
            parameter.requires_grad_(own[0] >= bottom)
        return learning

    def check(self, model: Model) -> "Learning":
        """Refuses what does not fit the model, and changes nothing."""
        levels, depth = levels_of(model)
        if isinstance(self.freeze, int) and self.freeze > depth:
            hint = "with `freeze=all` only heads learn"
            raise SpecError(f"{self.freeze} layers cannot be frozen, the model has {depth}", hint=hint)
        learning = Learning(self, {one: levels[one] for one in levels if one.requires_grad}, depth)
        learning.refuse_shared()
        return learning


@dataclass(frozen=True)
class Learning:
    """Without levels all weights learn at one rate."""

    spec: LearningSpec = field(default_factory=LearningSpec)
    levels: Levels = field(default_factory=dict)  # of what was not frozen before
    depth: int = 0

    def lowest(self, step: int | None = None) -> int:
        """The lowest level that learns at a step, from 0; or ever, without a step."""
        match self.spec.freeze:
            case None:
                bottom = 0
            case "embeddings":
                bottom = 1
            case "all":
                bottom = self.depth + 1
            case int(count):
                bottom = count + 1
        if step is None or self.spec.unfreeze_every is None:
            return bottom
        return max(bottom, self.depth + 1 - step // self.spec.unfreeze_every)

    def begin(self, step: int) -> None:
        """Lets exactly the weights that learn at this step have gradients."""
        if self.spec.unfreeze_every is not None:
            lowest = self.lowest(step)
            for parameter, own in self.levels.items():
                parameter.requires_grad_(own[0] >= lowest)

    def factor(self, parameter: nn.Parameter) -> float:
        """The share of the rate at which it learns: all of it for heads and the last layer."""
        level = self.levels[parameter][0] if parameter in self.levels else self.depth
        return float(self.spec.layer_decay ** max(0, self.depth - level))

    def refuse_shared(self) -> None:
        """Refuses to treat weights differently that layers share."""
        apart = self.spec.unfreeze_every is not None or self.spec.layer_decay < 1
        bottom = self.lowest()
        for own in self.levels.values():
            if own[0] < bottom <= own[-1] or (apart and len(own) > 1):
                first, last = (format_level(level, self.depth) for level in (own[0], own[-1]))
                what = f"{first} and {last} share weights, so they cannot learn differently"
                raise SpecError(what, hint="use `freeze=embeddings` or `freeze=all`, and one rate for all layers")

    def describe(self, model: nn.Module) -> str | None:
        """A sentence on how many weights learn; None where all do."""
        learned, whole = self.count(model)
        if learned == whole and self.spec.unfreeze_every is None:
            return None
        if self.spec.unfreeze_every is None:
            return f"learning {learned:,} of {whole:,} weights ({learned / whole:.2%})"
        first = sum(one.numel() for one, own in self.levels.items() if own[0] >= self.lowest(0))
        then = f"every {self.spec.unfreeze_every:,} steps the next layer from the top joins them"
        return f"learning {first:,} of {whole:,} weights at first; {then}"

    def count(self, model: nn.Module, step: int | None = None) -> tuple[int, int]:
        """Weights that learn, at a step or ever, and all weights."""
        lowest = self.lowest(step)
        learned = [
            one
            for one in model.parameters()
            if (self.levels[one][0] >= lowest if one in self.levels else one.requires_grad)
        ]
        return sum(one.numel() for one in learned), sum(one.numel() for one in model.parameters())


def levels_of(model: Model) -> tuple[Levels, int]:
    """The levels of all weights, lowest first, and how many layers there are."""
    stack: nn.Module = model.encoder.stack
    if not isinstance(stack, LayerStack):
        raise SpecError(f"a {type(stack).__name__} has no layers that could learn differently")
    layers = stack.layers()
    depth = len(layers)
    found: dict[nn.Parameter, set[int]] = {}

    def put(part: nn.Module, level: int) -> None:
        for parameter in part.parameters():
            found.setdefault(parameter, set()).add(level)

    put(model.encoder.embeddings, 0)
    for number, layer in enumerate(layers, 1):
        for one in layer:
            put(one.block, number)
    for parameter in stack.parameters():
        found.setdefault(parameter, {depth})  # of no layer, such as a final norm
    put(model.heads, depth + 1)
    return {one: tuple(sorted(found.get(one, {depth + 1}))) for one in model.parameters()}, depth


def format_level(level: int, depth: int) -> str:
    return "the embeddings" if level == 0 else "heads" if level > depth else f"layer {level}"
