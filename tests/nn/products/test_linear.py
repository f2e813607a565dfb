"""Linear layers by every engine, against torch's own in double precision."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertie.nn.products import Linear, engines, linear
from bertie.nn.products.choice import Role, use_engine
from bertie.nn.products.engines import ENGINES, StillWeights
from bertie.nn.products.linear import forward_product, multiply

EXACT = [name for name, engine in ENGINES.items() if engine.exact]
SHORT = [name for name in ENGINES if name not in EXACT]


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with use_engine(request.param):
        yield request.param


def tolerance(engine: str) -> float:
    return 2e-6 if engine in EXACT else 2e-2


def distance(found: Tensor, exact: Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize("shape", [(7, 32), (3, 5, 32), (1, 32), (300, 32)])
def test_all_engines_compute_the_same(engine: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    states, layer = torch.randn(shape), Linear(32, 48)
    with torch.no_grad(), StillWeights()():
        found = layer(states)
    exact = F.linear(states.double(), layer.weight.double(), layer.bias.double()).detach()
    assert found.shape == exact.shape
    assert found.dtype == torch.float32
    assert distance(found, exact) < tolerance(engine)


@pytest.mark.parametrize("bias", [True, False])
def test_gradients(engine: str, bias: bool) -> None:
    torch.manual_seed(0)
    layer = Linear(32, 48, bias=bias)
    states = torch.randn(5, 9, 32, requires_grad=True)
    layer(states).square().sum().backward()
    twin = nn.Linear(32, 48, bias=bias).double()
    twin.load_state_dict(layer.state_dict())
    wide = states.detach().double().requires_grad_()
    twin(wide).square().sum().backward()
    pairs = [(states.grad, wide.grad), (layer.weight.grad, twin.weight.grad)]
    pairs += [(layer.bias.grad, twin.bias.grad)] if bias else []
    for found, exact in pairs:
        assert found is not None
        assert exact is not None
        assert distance(found, exact) < 3 * tolerance(engine)


def test_a_frozen_weight_gets_no_gradient(engine: str) -> None:
    layer, states = Linear(32, 48).requires_grad_(False), torch.randn(4, 32, requires_grad=True)
    layer(states).sum().backward()
    assert layer.weight.grad is None
    assert states.grad is not None


@pytest.mark.parametrize("name", ["onednn-packed", "bfloat16"])
def test_a_kept_layout_follows_its_weight(name: str) -> None:
    """Weights change by an optimizer, by loading, and by replacing the parameter."""
    torch.manual_seed(0)
    layer, states = Linear(64, 64), torch.randn(8, 64)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)

    def check() -> None:
        exact = F.linear(states, layer.weight, layer.bias).detach()
        with torch.no_grad(), use_engine(name), StillWeights()():
            assert distance(layer(states), exact.double()) < 1e-2

    check()
    layer(states).square().sum().backward()
    optimizer.step()
    check()
    layer.load_state_dict(Linear(64, 64).state_dict())
    check()
    layer.weight = nn.Parameter(torch.randn(64, 64))
    check()


@pytest.mark.parametrize("learning", [True, False])
def test_weights_that_may_change_are_not_kept_in_another_layout(learning: bool) -> None:
    layer, states = Linear(64, 64), torch.randn(8, 64)
    with use_engine("bfloat16"), torch.set_grad_enabled(learning), StillWeights()() if learning else nullcontext():
        assert torch.equal(layer(states), F.linear(states, layer.weight, layer.bias))


def test_a_weight_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Tensor] = []

    def pack(weight: Tensor) -> Tensor:
        calls.append(weight)
        return weight.clone()

    monkeypatch.setattr(engines, "_pack", pack)
    layer, states = Linear(64, 64), torch.randn(8, 64)
    for _ in range(2):
        with torch.no_grad(), use_engine("onednn-packed"), StillWeights()():
            layer(states)
            layer(states)
    assert len(calls) == 1


def test_other_types_and_autocast_are_left_to_torch() -> None:
    layer = Linear(16, 16).double()
    with use_engine("onednn"):
        assert layer(torch.randn(2, 16, dtype=torch.float64)).dtype == torch.float64
        with torch.autocast("cpu", torch.bfloat16):
            assert Linear(16, 16)(torch.randn(2, 16)).dtype == torch.bfloat16


@pytest.mark.parametrize("name", SHORT)
def test_torchs_settings_are_as_they_were(name: str) -> None:
    before = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
    with use_engine(name):
        Linear(16, 16)(torch.randn(2, 16)).sum().backward()
    assert torch.backends.mkldnn.matmul.fp32_precision == before  # type: ignore[attr-defined]


def test_no_rows() -> None:
    for name in ENGINES:
        with use_engine(name):
            assert linear(torch.empty(0, 16), torch.randn(8, 16)).shape == (0, 8)


def test_products_for_gradients_of_others(engine: str) -> None:
    torch.manual_seed(0)
    states, weight, gradient = torch.randn(20, 32), torch.randn(48, 32), torch.randn(20, 48)
    assert distance(forward_product(states, weight, True), states.double() @ weight.double().t()) < tolerance(engine)
    found = multiply(Role.STATES_GRADIENT, gradient, weight, weight)
    assert distance(found, gradient.double() @ weight.double()) < tolerance(engine)
    found = multiply(Role.WEIGHT_GRADIENT, gradient.t(), states, weight)
    assert distance(found, gradient.double().t() @ states.double()) < tolerance(engine)
