"""AdamW: what is decayed, and that its state survives."""

from collections.abc import Callable

import pytest
import torch

from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.train.optimiser import AdamWSpec, clip_gradients, decay_groups, set_state_tensors, state_tensors


def test_biases_and_norms_are_not_decayed_and_tied_weights_come_once(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe())
    decayed, plain = decay_groups(model)
    assert all("norm" in name or name.endswith("bias") for name in plain)
    assert all(name.endswith("weight") and "norm" not in name for name in decayed)
    assert "encoder.embeddings.tables.tokens.weight" in decayed
    parameters = [*decayed.values(), *plain.values()]
    assert len({id(one) for one in parameters}) == len(parameters) == len(list(model.parameters()))
    assert sum("weight" in name and name.startswith("heads.masked-lm") for name in decayed) == 1, "the output is tied"


def test_without_a_gradient_only_the_decayed_shrink(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe())
    torch.nn.init.ones_(model.get_parameter("heads.masked-lm.bias"))
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    optimiser = AdamWSpec(rate=0.1, decay=0.5).build(model)
    for one in model.parameters():
        one.grad = torch.zeros_like(one)
    optimiser.step()
    decayed, _ = decay_groups(model)
    for name, one in model.named_parameters():
        torch.testing.assert_close(one.detach(), before[name] * (0.95 if name in decayed else 1.0))


def test_the_step_is_that_of_the_plain_optimiser(recipe: Callable[..., Recipe]) -> None:
    ours, theirs = Model.new(recipe()), Model.new(recipe())
    spec = AdamWSpec(rate=0.01, decay=0.0)
    fused = spec.build(ours)
    plain = torch.optim.AdamW(theirs.parameters(), lr=0.01, betas=spec.betas, eps=spec.eps, weight_decay=0, fused=False)
    for step in range(3):
        for model, optimiser in ((ours, fused), (theirs, plain)):
            torch.manual_seed(step)
            for one in model.parameters():
                one.grad = torch.randn_like(one)
            optimiser.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=1e-5)


def test_clipping_is_by_the_norm_of_all(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe())
    for one in model.parameters():
        one.grad = torch.full_like(one, 0.5)
    size = sum(one.numel() for one in model.parameters())
    assert float(clip_gradients(model, 2.0)) == pytest.approx(0.5 * size**0.5)
    norms = torch.stack([one.grad.norm() for one in model.parameters() if one.grad is not None])
    assert float(norms.norm()) == pytest.approx(2.0, rel=1e-4)


def test_what_was_frozen_is_not_the_optimisers(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe())
    model.encoder.requires_grad_(False)
    names = {name for group in decay_groups(model) for name in group}
    assert names and not any(name.startswith("encoder.") for name in names)


def test_state_goes_out_and_in(recipe: Callable[..., Recipe]) -> None:
    model, other = Model.new(recipe()), Model.new(recipe())
    optimiser, second = AdamWSpec().build(model), AdamWSpec().build(other)
    assert state_tensors(model, optimiser) == {}
    for one in model.parameters():
        one.grad = torch.ones_like(one)
    optimiser.step()
    kept = state_tensors(model, optimiser)
    assert {key.rsplit(":", 1)[1] for key in kept} == {"step", "exp_avg", "exp_avg_sq"}
    set_state_tensors(other, second, kept)
    again = state_tensors(other, second)
    assert kept.keys() == again.keys()
    assert all(torch.equal(kept[key], again[key]) and kept[key] is not again[key] for key in kept)
