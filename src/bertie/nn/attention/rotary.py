"""Rotary positions: queries and keys are turned by angles that grow with their place, so that a score depends on their
distance alone. Su et al., 2021, section 3.2."""

from functools import lru_cache, partial
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from bertie.errors import SpecError
from bertie.nn.attention.scoring import DotProduct, ScorerSpec
from bertie.nn.layout import Layout
from bertie.nn.native import rotary_kernel as native


class Rotary(DotProduct):
    """Number i of the first half and number i of the second half of a head are one point of a plane."""

    def __init__(self, base: float):
        super().__init__()
        self.base = base

    def prepare(self, query: Tensor, key: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        places, key_places = layout.query.rows.values, layout.key.rows.values
        table = partial(turn_table, self.base, query.shape[-1])
        turned, turned_key = native.rotate(query, places, table), native.rotate(key, key_places, table)
        if turned is not None and turned_key is not None:
            return turned, turned_key
        turn = self.turn(places, query)
        return rotate(query, *turn), rotate(key, *(turn if key_places is places else self.turn(key_places, key)))

    def turn(self, positions: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """[T, 1, D/2] cosines and sines."""
        angles = angles_of(positions, self.base, states.shape[-1])[:, None]
        return angles.cos().to(states.dtype), angles.sin().to(states.dtype)


def angles_of(positions: Tensor, base: float, width: int) -> Tensor:
    """[T, D/2]"""
    steps = torch.arange(0, width, 2, dtype=torch.float32, device=positions.device)
    return positions[:, None].float() * (1.0 / base ** (steps / width))


@lru_cache(maxsize=16)  # one for all layers and batches
def turn_table(base: float, width: int, length: int) -> tuple[Tensor, Tensor]:
    """[length, D/2] cosines and sines of all positions below a length."""
    with torch.inference_mode(False):  # the table is also used in training
        angles = angles_of(torch.arange(length), base, width)
        return angles.cos(), angles.sin()


def rotate(states: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    left, right = states.chunk(2, -1)
    return torch.cat([left * cosines - right * sines, right * cosines + left * sines], -1)


class RotarySpec(ScorerSpec):
    kind: Literal["rotary"] = "rotary"
    base: float = Field(default=10_000.0, gt=1)

    def score(self, num_heads: int, head_width: int) -> Rotary:
        if head_width % 2:
            raise SpecError(f"rotary positions need heads of even width, not {head_width}")
        return Rotary(self.base)
