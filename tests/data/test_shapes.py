"""Shapes of sample are values that are told apart by kind."""

import pytest

from bertie.data.shapes import Pairs, Segments
from bertie.errors import SpecError
from bertie.objectives.masked_lm import MaskedLM


@pytest.mark.parametrize("shape", [Segments(length=64), Pairs(length=64)])
def test_an_objective_keeps_its_shape_through_json(shape: Segments | Pairs) -> None:
    objective = MaskedLM(samples=shape)
    assert MaskedLM.from_json(objective.to_json()).samples == shape


def test_too_short_samples_are_refused() -> None:
    with pytest.raises(SpecError, match="length: input should be greater than or equal to 8"):
        Pairs().replace(length=7)
