"""Two stacks over one sequence: the one looks back, the other ahead, each with half of the width, and they never meet.

What a bidirectional language model was before deep ones: Peters et al., 2018, section 3.1, with attention for LSTMs.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bertie.errors import SpecError
from bertie.nn.attention import Memory
from bertie.nn.layout import Layout
from bertie.nn.stack import Context, Stack, Stacked, StackSpec
from bertie.nn.visibility import Causal, Following
from bertie.spec import Spec


class TwoDirections(nn.Module):
    def __init__(self, ahead: Stack, back: Stack):
        super().__init__()
        self.ahead, self.back = ahead, back

    def forward(
        self,
        states: Tensor,
        layout: Layout,
        memory: Sequence[Memory | None] | None = None,
        context: Context | None = None,
        keep_layers: bool = False,
        wanted: Tensor | None = None,
    ) -> Stacked:
        """What the backward direction would remember lies ahead, so nothing is remembered."""
        halves = zip((self.ahead, self.back), (Causal(), Following()), states.chunk(2, -1), strict=True)
        read = [
            stack(half, layout.seen_by(visibility), None, context, keep_layers, wanted)
            for stack, visibility, half in halves
        ]
        layers = tuple(torch.cat(pair, -1) for pair in zip(*(one.layers for one in read), strict=True))
        return Stacked(torch.cat([one.states for one in read], -1), layers, (None,) * len(self.ahead.blocks))


class TwoDirectionsSpec(Spec):
    kind: Literal["two-directions"] = "two-directions"
    stack: StackSpec  # of each direction

    @property
    def depth(self) -> int:
        return self.stack.depth

    def build(self, width: int) -> TwoDirections:
        if width % 2:
            raise SpecError(f"a width of {width} cannot be split into two directions")
        return TwoDirections(self.stack.build(width // 2), self.stack.build(width // 2))


AnyStack = Annotated[StackSpec | TwoDirectionsSpec, Field(discriminator="kind")]
