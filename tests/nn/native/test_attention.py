"""The kernel for short rows against the reference scorer, and where it must step back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertie.batch import Ragged
from bertie.nn.layout import Layout, Side
from bertie.nn.native.attention import LONGEST, attend, kernel
from bertie.nn.scoring import DotProduct, FusedScorer, ReferenceScorer
from bertie.nn.visibility import Causal

needs_kernel = pytest.mark.skipif(kernel() is None, reason="no C compiler with OpenMP here")
Lengths = st.lists(st.integers(1, 70), min_size=1, max_size=12)


def side(lengths: list[int]) -> Side:
    return Side(Ragged.of([torch.arange(length) for length in lengths]))


def states(num_tokens: int, num_heads: int, width: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(num_tokens, num_heads, width, generator=torch.Generator().manual_seed(seed))


@needs_kernel
@given(lengths=Lengths, num_heads=st.integers(1, 3), width=st.sampled_from([16, 32, 48, 64]))
def test_equals_the_reference(lengths: list[int], num_heads: int, width: int) -> None:
    layout = Layout.within(side(lengths))
    q, k, v = (states(sum(lengths), num_heads, width, seed) for seed in range(3))
    with torch.inference_mode():
        found = attend(q, k, v, layout)
        assert found is not None
        torch.testing.assert_close(found, ReferenceScorer(DotProduct())(q, k, v, layout), atol=2e-6, rtol=1e-5)


@needs_kernel
@given(pairs=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 40)), min_size=1, max_size=8))
def test_queries_and_keys_of_different_lengths(pairs: list[tuple[int, int]]) -> None:
    layout = Layout(side([query for query, _ in pairs]), side([key for _, key in pairs]))
    q = states(sum(query for query, _ in pairs), 2, 16)
    k, v = (states(sum(key for _, key in pairs), 2, 16, seed) for seed in (1, 2))
    with torch.inference_mode():
        found = attend(q, k, v, layout)
        assert found is not None
        torch.testing.assert_close(found, ReferenceScorer(DotProduct())(q, k, v, layout), atol=2e-6, rtol=1e-5)


@needs_kernel
def test_large_scores_do_not_overflow() -> None:
    layout = Layout.within(side([20]))
    q, k, v = (states(20, 1, 16, seed) * 60 for seed in range(3))
    with torch.inference_mode():
        found = attend(q, k, v, layout)
        assert found is not None
        torch.testing.assert_close(found, ReferenceScorer(DotProduct())(q, k, v, layout), atol=1e-3, rtol=1e-4)


@needs_kernel
def test_slices_of_a_wider_matrix_are_taken_without_a_copy() -> None:
    together = torch.randn(9, 3, 2, 16, generator=torch.Generator().manual_seed(0))
    q, k, v = together.unbind(1)
    layout = Layout.within(side([4, 5]))
    with torch.inference_mode():
        found = attend(q, k, v, layout)
        assert found is not None
        expected = attend(q.contiguous(), k.contiguous(), v.contiguous(), layout)
    assert expected is not None
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("lengths", "width", "dtype"),
    [([LONGEST + 1], 16, torch.float32), ([4], 12, torch.float32), ([4], 16, torch.float64)],
)
def test_steps_back_where_it_is_not_made_for(lengths: list[int], width: int, dtype: torch.dtype) -> None:
    q = torch.zeros(sum(lengths), 1, width, dtype=dtype)
    with torch.inference_mode():
        assert attend(q, q, q, Layout.within(side(lengths))) is None


@needs_kernel
@pytest.mark.parametrize("spoilt", [float("nan"), 1e30])
def test_what_is_not_finite_stays_so(spoilt: float) -> None:
    q = states(6, 1, 16)
    q[2] = spoilt
    with torch.inference_mode():
        found = attend(q, q, q, Layout.within(side([6])))
    assert found is not None
    assert not found[2].isfinite().any()


def test_lengths_that_do_not_fit_the_states_are_never_walked() -> None:
    q = states(6, 1, 16)
    with torch.inference_mode():
        assert attend(q, q, q, Layout.within(side([7]))) is None
        assert attend(q, q[:, :, :8], q, Layout.within(side([6]))) is None
        short = Ragged(torch.arange(6), torch.tensor([6], dtype=torch.int32))
        assert attend(q, q, q, Layout.within(Side(short))) is None


def test_never_with_gradients_or_another_visibility() -> None:
    layout = Layout.within(side([6]))
    q = states(6, 1, 16).requires_grad_()
    assert attend(q, q, q, layout) is None
    scorer, reference = FusedScorer(ReferenceScorer(DotProduct())), ReferenceScorer(DotProduct())
    scorer(q, q, q, layout).sum().backward()
    assert q.grad is not None
    causal = layout.seen_by(Causal())
    with torch.inference_mode():
        torch.testing.assert_close(scorer(q, q, q, causal), reference(q, q, q, causal))
