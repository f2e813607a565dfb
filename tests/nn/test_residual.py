"""Residual layouts against their formulas."""

import pytest
import torch

from bertie.nn.residual import PostNormSpec, PreNormSpec

STATES, OUTPUT = torch.randn(5, 8), torch.randn(5, 8)


def norm(states: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(states, (8,), eps=1e-12)


def test_post_norm() -> None:
    part = PostNormSpec(dropout=0).build(8)
    assert part.enter(STATES) is STATES
    torch.testing.assert_close(part.leave(STATES, OUTPUT), norm(STATES + OUTPUT))
    assert isinstance(PostNormSpec().build_final(8), torch.nn.Identity)


def test_pre_norm() -> None:
    part = PreNormSpec(dropout=0).build(8)
    torch.testing.assert_close(part.enter(STATES), norm(STATES))
    torch.testing.assert_close(part.leave(STATES, OUTPUT), STATES + OUTPUT)
    torch.testing.assert_close(PreNormSpec().build_final(8)(STATES), norm(STATES))


@pytest.mark.parametrize("spec", [PostNormSpec(dropout=0.5), PreNormSpec(dropout=0.5)])
def test_only_the_sub_layer_is_dropped_and_only_in_training(spec: PostNormSpec | PreNormSpec) -> None:
    part = spec.build(8)
    part.norm = torch.nn.Identity()
    torch.manual_seed(0)
    added = part.train().leave(STATES, OUTPUT) - STATES
    torch.testing.assert_close(added[added != 0], (2 * OUTPUT)[added != 0], atol=1e-6, rtol=1e-5)
    assert 0 < (added == 0).sum() < 40
    torch.testing.assert_close(part.eval().leave(STATES, OUTPUT), STATES + OUTPUT)


def test_a_norm_without_a_bias_only_scales() -> None:
    spec = PreNormSpec(bias=False)
    for part in (spec.build(8), spec.build_final(8)):
        assert [name.rpartition(".")[2] for name, _ in part.named_parameters()] == ["weight"]
    torch.testing.assert_close(spec.build(8).enter(STATES), norm(STATES))
