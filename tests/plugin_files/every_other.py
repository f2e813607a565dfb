"""A visibility from a plugin: a token sees those at an even distance."""

from typing import Literal

from torch import Tensor

from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.visibility import Facts, Visibility


class EveryOther(Visibility):
    kind: Literal["every-other"] = "every-other"
    step: int = 2

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return (query["positions"] - key["positions"]) % self.step == 0


def every_other(size: Size = SIZES["base"], vocab_size: int = 30_522) -> Recipe:
    return bert(size, vocab_size).changed({"name": "every-other", "encoder.stack.visibility": (EveryOther(),)})


RECIPES = {"every-other": every_other}
