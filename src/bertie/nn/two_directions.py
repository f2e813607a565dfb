"""Two stacks over one sequence: one sees what comes before, the other what follows, each with half of the width.

How language models read in both directions before masking: Peters et al., 2018, section 3.1, with attention for LSTMs.
"""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from bertie.errors import SpecError
from bertie.nn.layout import Layout
from bertie.nn.memory import Memory
from bertie.nn.stack import BlockSpec, Context, Layer, LayerStack, Stack, Stacked, StackSpec
from bertie.nn.visibility import AntiCausal, Causal, Visibility
from bertie.spec import Spec


class TwoDirections(LayerStack):
    def __init__(self, ahead: Stack, back: Stack):
        super().__init__()
        self.ahead, self.back = ahead, back

    def layers(self) -> list[tuple[Layer, ...]]:
        return [
            (Layer(ahead.block, Causal() & ahead.visibility), Layer(back.block, AntiCausal() & back.visibility))
            for (ahead,), (back,) in zip(self.ahead.layers(), self.back.layers(), strict=True)
        ]

    def forward(
        self,
        states: Tensor,
        layout: Layout,
        memory: Memory | None = None,
        context: Context | None = None,
        keep_layers: bool = False,
        positions: Tensor | None = None,
    ) -> Stacked:
        """Nothing is remembered: the backward direction would have to remember what follows."""
        halves = zip((self.ahead, self.back), (Causal(), AntiCausal()), states.chunk(2, -1), strict=True)
        read = [
            stack(half, layout.seen_by(visibility), None, context, keep_layers, positions)
            for stack, visibility, half in halves
        ]
        layers = tuple(torch.cat(pair, -1) for pair in zip(*(one.layers for one in read), strict=True))
        return Stacked(torch.cat([one.states for one in read], -1), layers, None)


class TwoDirectionsSpec(Spec):
    kind: Literal["two-directions"] = "two-directions"
    stack: StackSpec  # of each direction

    @property
    def depth(self) -> int:
        return self.stack.depth

    def layer_spec(self, layer: int) -> BlockSpec:
        """Of each direction."""
        return self.stack.layer_spec(layer)

    def visibility_of(self, layer: int) -> Visibility:
        """In addition to the direction."""
        return self.stack.visibility_of(layer)

    def stacks(self, width: int) -> dict[str, tuple[StackSpec, int]]:
        return {"ahead": (self.stack, width // 2), "back": (self.stack, width // 2)}

    def build(self, width: int) -> TwoDirections:
        if width % 2:
            raise SpecError(f"a width of {width} cannot be split into two directions")
        return TwoDirections(self.stack.build(width // 2), self.stack.build(width // 2))


AnyStack = Annotated[StackSpec | TwoDirectionsSpec, Field(discriminator="kind")]
