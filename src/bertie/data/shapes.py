"""Shapes of sample: what an objective wants to eat, said as a value. The builders of samples read it."""

from typing import Annotated, Literal

from pydantic import Field

from bertie.spec import Spec


class Segments(Spec):
    """One stretch of one document: `tokens`."""

    kind: Literal["segments"] = "segments"
    length: int = Field(default=128, ge=8)


class Pairs(Spec):
    """Two stretches with their relation: `tokens`, `segments` (0 or 1) and the label `partner` (0 true, 1 not)."""

    kind: Literal["pairs"] = "pairs"
    length: int = Field(default=128, ge=8)


SampleShape = Annotated[Segments | Pairs, Field(discriminator="kind")]
