"""Dropout with and without the kernel."""

import pytest
import torch

from bertie.nn import dropout
from bertie.nn.dropout import Dropout


@pytest.mark.parametrize("native", [True, False])
def test_drops_in_training_alone(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(dropout, "drop", lambda states, rate, added: None)
    part, states, added = Dropout(0.5), torch.ones(100, 10), torch.full((100, 10), 3.0)
    assert set(part(states).unique().tolist()) == {0.0, 2.0}
    assert set(part(states, added).unique().tolist()) == {3.0, 5.0}
    part.eval()
    assert torch.equal(part(states), states)
    assert torch.equal(part(states, added), states + added)


def test_a_rate_of_nothing_draws_nothing() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    Dropout(0.0)(torch.ones(5))
    assert torch.equal(torch.get_rng_state(), before)
