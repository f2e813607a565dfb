"""Two-direction LM: each token is predicted from its two neighbours, and each direction sees only its side."""

import numpy as np
import pytest
import torch

from bertie.batch import Places, collate
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import bert, twoway_lm
from bertie.objectives.objective import Vocabulary
from bertie.objectives.two_way_lm import TwoWayHead, TwoWayLM

VOCABULARY = Vocabulary(size=50, mask=4, special=frozenset({0, 1, 2, 3, 4}))
TINY = Size(depth=2, width=32, num_heads=2)
ROW = {"tokens": np.array([2, 10, 11, 12, 3])}


def test_every_token_is_predicted_from_both_neighbours() -> None:
    sample = TwoWayLM().corrupt(ROW, VOCABULARY, np.random.default_rng(0))
    places = sample["neighbours"]
    assert isinstance(places, Places)
    assert places.positions.tolist() == [0, 1, 2, 2, 3, 4]
    assert np.asarray(sample["neighbour_targets"]).tolist() == [10, 11, 12, 10, 11, 12]
    assert np.asarray(sample["neighbour_after"]).tolist() == [0, 0, 0, 1, 1, 1]
    assert np.array_equal(np.asarray(sample["tokens"]), ROW["tokens"])


def test_a_row_without_tokens_around_it_predicts_what_has_a_neighbour() -> None:
    sample = TwoWayLM().corrupt({"tokens": np.array([10, 11])}, VOCABULARY, np.random.default_rng(0))
    assert np.asarray(sample["neighbour_targets"]).tolist() == [11, 10]
    alone = TwoWayLM().corrupt({"tokens": np.array([10])}, VOCABULARY, np.random.default_rng(0))
    assert len(np.asarray(alone["neighbour_targets"])) == 0


@pytest.mark.parametrize("backward", [False, True])
def test_a_prediction_depends_on_one_side_only(backward: bool) -> None:
    model = Model.new(twoway_lm(TINY, 50)).eval()
    objective, head = model.recipe.objectives[0], model.heads["two-way-lm"]
    assert isinstance(head, TwoWayHead)
    batch = collate([objective.corrupt(ROW, VOCABULARY, np.random.default_rng(0))])
    seen: list[torch.Tensor] = []

    def keep(_module: torch.nn.Module, _inputs: object, states: torch.Tensor) -> torch.Tensor:
        seen.append(states.detach().requires_grad_())
        return seen[0]

    hook = model.encoder.embeddings.register_forward_hook(keep)
    states = model.encoder(batch).states.values
    hook.remove()
    position = 3 if backward else 1  # of the neighbour from which token 2 is predicted
    transformed = head.transformed(states[[position]], torch.tensor([backward]))
    (transformed * torch.arange(32.0)).sum().backward()  # their plain sum is constant after a norm
    gradient = seen[0].grad
    assert gradient is not None
    sides = [False, False, False, True, True] if backward else [True, True, False, False, False]
    assert (gradient.abs().sum(-1) > 0).tolist() == sides


def test_the_loss_is_that_of_the_naive_loop() -> None:
    model = Model.new(twoway_lm(TINY, 50)).eval()
    objective, head = model.recipe.objectives[0], model.heads["two-way-lm"]
    assert isinstance(head, TwoWayHead)
    rows = [ROW, {"tokens": np.array([2, 20, 21, 22, 23, 24, 3])}]
    batch = collate([objective.corrupt(row, VOCABULARY, np.random.default_rng(0)) for row in rows])
    total = 0.0
    for row in rows:
        tokens = torch.from_numpy(row["tokens"])
        states = model.encoder(collate([row])).states.values
        for place in range(1, len(tokens) - 1):
            for neighbour, after in ((place - 1, False), (place + 1, True)):
                state = head.transformed(states[[neighbour]], torch.tensor([after]))
                total -= head.output(state).log_softmax(-1)[0, tokens[place]].item()
    figure = model.loss(batch).losses["two_way_lm"]
    assert figure.count == 16
    assert float(figure.sum) == pytest.approx(total, rel=1e-5)


def test_other_stacks_are_refused() -> None:
    with pytest.raises(SpecError, match="a stack of each direction"):
        TwoWayLM().build(bert(TINY, 50).encoder, VOCABULARY)
