"""Pooling against numpy, row by row."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.pooling import Activation, FirstDenseSpec, Pooling, Projection, TokenPooling, last_token

NUMPY: dict[TokenPooling, Callable[[np.ndarray], np.ndarray]] = {
    "first": lambda rows: rows[0],
    "mean": lambda rows: rows.mean(0),
    "max": lambda rows: rows.max(0),
}
sizes_of_rows = st.lists(st.integers(1, 9), min_size=1, max_size=7)


def layers_of(sizes: list[int], depth: int = 5) -> tuple[Ragged, tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(sum(sizes))
    layers = tuple(torch.randn(sum(sizes), 6, generator=generator) for _ in range(depth + 1))
    return Ragged(layers[-1], torch.tensor(sizes)), layers


@given(
    sizes_of_rows, st.sampled_from(["first", "mean", "max"]), st.sampled_from(["last", "sum4", "concat4", 0, 2, -1, -6])
)
def test_every_choice_equals_numpy(sizes: list[int], tokens: TokenPooling, layers: str | int) -> None:
    states, all_layers = layers_of(sizes)
    plain = [layer.double().numpy() for layer in all_layers]
    mixed = {
        "last": lambda: plain[-1],
        "sum4": lambda: plain[2] + plain[3] + plain[4] + plain[5],
        "concat4": lambda: np.concatenate(plain[2:], axis=1),
    }.get(str(layers), lambda: plain[int(layers)])()
    expected = [NUMPY[tokens](rows) for rows in np.split(mixed, np.cumsum(sizes)[:-1])]
    pooling = Pooling.parse({"tokens": tokens, "layers": layers})
    vectors = pooling(states, all_layers)
    np.testing.assert_allclose(vectors.numpy(), expected, atol=1e-5)
    assert vectors.shape[1] == pooling.width(6)
    unit = pooling.replace(normalize=True)(states, all_layers).numpy()
    np.testing.assert_allclose(unit, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)


def test_which_choices_need_all_layers() -> None:
    assert not Pooling().needs_layers
    assert Pooling(layers="sum4").needs_layers
    assert Pooling(layers=-1).needs_layers
    assert Pooling(layers=0).needs_layers


@pytest.mark.parametrize("layer", [6, -7, 100])
def test_a_layer_that_is_not_there(layer: int) -> None:
    with pytest.raises(SpecError, match=f"there is no layer {layer}; choose 0 to 5"):
        Pooling(layers=layer)(*layers_of([2]))


@pytest.mark.parametrize("layers", ["sum4", "concat4"])
def test_four_layers_are_needed_beside_the_embeddings(layers: str) -> None:
    pooling = Pooling.parse({"layers": layers})
    with pytest.raises(SpecError, match=f"{layers} needs four layers, this model has 3"):
        pooling(*layers_of([2], depth=3))
    assert pooling(*layers_of([2], depth=4)).isfinite().all()


@pytest.mark.parametrize("wrong", [{"tokens": "median"}, {"layers": "sum3"}, {"layers": 1.5}, {"normalise": True}])
def test_a_choice_that_does_not_exist(wrong: dict[str, object]) -> None:
    with pytest.raises(SpecError, match=next(iter(wrong))):
        Pooling().replace(**wrong)


@pytest.mark.parametrize("tokens", ["first", "mean", "max"])
@pytest.mark.parametrize("sizes", [[0, 2], [2, 0, 1], [2, 0]])
def test_a_row_without_tokens_gets_zeros_and_nothing_of_its_neighbours(tokens: TokenPooling, sizes: list[int]) -> None:
    states, layers = layers_of(sizes)
    vectors = Pooling(tokens=tokens)(states, layers)
    assert (vectors[sizes.index(0)] == 0).all()
    assert (vectors[sizes.index(2)] != 0).all()


@pytest.mark.parametrize("sizes", [[3, 1, 2], [0, 2], [2, 0, 1]])
def test_the_last_token_of_each_row(sizes: list[int]) -> None:
    states, _ = layers_of(sizes)
    expected = [row[-1] if len(row) else torch.zeros(6) for row in states.rows()]
    assert torch.equal(last_token(states), torch.stack(expected))


def test_first_dense_is_its_formula() -> None:
    part, states = FirstDenseSpec().build(6), torch.randn(3, 6)
    torch.testing.assert_close(part(states), torch.tanh(states @ part.dense.weight.T + part.dense.bias))


def test_the_first_numbers_of_a_vector_are_normalised_anew() -> None:
    states, layers = layers_of([2, 3])
    whole = Pooling()(states, layers)
    cut = Pooling(size=4, normalize=True)(states, layers)
    torch.testing.assert_close(cut, whole[:, :4] / whole[:, :4].norm(dim=-1, keepdim=True))
    with pytest.raises(SpecError, match="size"):
        Pooling().replace(size=0)


@pytest.mark.parametrize(("activation", "function"), [("identity", lambda value: value), ("tanh", torch.tanh)])
def test_a_projection_stands_between_pooling_and_normalisation(
    activation: Activation, function: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    states, layers = layers_of([2, 3])
    bias = torch.randn(5)
    projection = Projection(torch.randn(5, 6), bias, activation)
    expected = function(Pooling()(states, layers) @ projection.weight.T + bias)
    torch.testing.assert_close(Pooling()(states, layers, projection), expected)
    cut = Pooling(size=3, normalize=True)(states, layers, projection)
    torch.testing.assert_close(cut, expected[:, :3] / expected[:, :3].norm(dim=-1, keepdim=True))


def test_projections_are_equal_by_their_numbers() -> None:
    weight = torch.randn(2, 3)
    assert Projection(weight) == Projection(weight.clone()) != Projection(weight + 1)
    assert Projection(weight) != Projection(weight, torch.zeros(2)) != Projection(weight, torch.ones(2))
    assert Projection(weight) != Projection(weight, activation="tanh")
