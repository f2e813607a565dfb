"""A visibility from a plugin: a token sees those at an even distance."""

from typing import Literal

from torch import Tensor

from bertie.nn.visibility import Facts, Visibility


class EveryOther(Visibility):
    kind: Literal["every-other"] = "every-other"
    step: int = 2

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return (query["positions"] - key["positions"]) % self.step == 0
