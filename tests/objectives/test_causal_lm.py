"""Causal LM: what is predicted from what, and that no token knows a later one."""

import numpy as np
import pytest
import torch

from bertie.batch import collate
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import RECIPES, bert
from bertie.objectives.causal_lm import CausalLM
from bertie.objectives.objective import Vocabulary

TINY = Size(depth=2, width=16, num_heads=2)
RNG = np.random.default_rng(0)


def test_every_token_but_the_first_is_predicted_from_the_one_before() -> None:
    sample = CausalLM().corrupt({"tokens": np.array([1, 7, 8, 2])}, Vocabulary(size=9, special=frozenset({1, 2})), RNG)
    batch = collate([sample, CausalLM().corrupt({"tokens": np.array([5])}, Vocabulary(size=9), RNG)])
    assert batch.tensor("tokens").tolist() == [1, 7, 8, 2, 5]
    assert batch.tensor("before_next").tolist() == [0, 1, 2]
    assert batch.tensor("next_targets").tolist() == [7, 8, 2]
    assert CausalLM().counts(batch) == {"causal_lm": 3}


@pytest.mark.parametrize("name", ["gpt", "gpt2"])
def test_no_state_depends_on_a_later_token(name: str) -> None:
    model = Model.new(RECIPES[name](TINY, 50)).eval()
    rows = [{"tokens": np.array([3, 4, 5, 6, 7])}, {"tokens": np.array([3, 4, 5, 30, 31])}]
    with torch.inference_mode():
        one, other = (model.encoder(collate([row])).states.values for row in rows)
    torch.testing.assert_close(one[:3], other[:3])
    assert not torch.allclose(one[3:], other[3:])


def test_a_stack_that_sees_later_tokens_is_refused() -> None:
    with pytest.raises(SpecError, match="no token sees a later one"):
        Model.new(bert(TINY, 50).changed({"encoder.pooler": None, "objectives": (CausalLM(),)}))
