"""Predicts whether two neighbouring segments are in order (sentence-order prediction). ALBERT, section 3.1."""

from typing import Literal

from pydantic import field_validator

from bertie.data.shapes import Pairs
from bertie.objectives.pair_relation import PairRelation


class SentenceOrder(PairRelation):
    """`partner` is 0 where the segments are in order, 1 where they are swapped."""

    kind: Literal["sentence-order"] = "sentence-order"
    samples: Pairs = Pairs(order=True)

    @field_validator("samples")
    @classmethod
    def _swapped(cls, samples: Pairs) -> Pairs:
        if not samples.order:
            raise ValueError("the pairs must be swapped (order), not from another document")
        return samples
