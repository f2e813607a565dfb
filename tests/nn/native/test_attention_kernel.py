"""The kernel for short rows against the reference scorer, and where it must step back."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertie.batch import Ragged
from bertie.nn.attention.scoring import DotProduct, FusedScorer, ReferenceScorer
from bertie.nn.layout import Layout, Side
from bertie.nn.native.attention_kernel import LONGEST, attend, kernel
from bertie.nn.visibility import Causal, Window

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


def test_never_for_another_visibility() -> None:
    q = states(6, 1, 16)
    scorer, reference = FusedScorer(DotProduct()), ReferenceScorer(DotProduct())
    causal = Layout.within(side([6])).seen_by(Causal())
    torch.testing.assert_close(scorer(q, q, q, causal), reference(q, q, q, causal))


@needs_kernel
@given(pairs=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 50)), min_size=1, max_size=6), same=st.booleans())
def test_gradients_equal_the_references(pairs: list[tuple[int, int]], same: bool) -> None:
    keys = side([key for _, key in pairs])
    queries = keys if same else side([query for query, _ in pairs])
    layout = Layout(queries, keys)
    q = states(len(queries.rows.values), 2, 16)
    k, v = (states(len(keys.rows.values), 2, 16, seed) for seed in (1, 2))
    toward = states(len(q), 2, 16, 3)
    found = gradients(lambda q, k, v: attend(q, k, v, layout), (q, k, v), toward)
    expected = gradients(lambda *given: ReferenceScorer(DotProduct())(*given, layout), (q, k, v), toward)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, atol=5e-6, rtol=1e-5)


@needs_kernel
def test_gradients_of_rows_too_long_for_one_block() -> None:
    lengths = [LONGEST, 201]
    layout = Layout.within(side(lengths))
    given = tuple(states(sum(lengths), 2, 32, seed) for seed in range(3))
    toward = states(sum(lengths), 2, 32, 3)
    found = gradients(lambda q, k, v: attend(q, k, v, layout), given, toward)
    expected = gradients(lambda *given: ReferenceScorer(DotProduct())(*given, layout), given, toward)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-5)


@needs_kernel
@pytest.mark.parametrize(
    ("lengths", "reach"), [([5, 30, 1, 17], None), ([LONGEST + 44], None), ([5, 30, 1, 17], 6), ([LONGEST + 44], 70)]
)
def test_dropout_is_dropout_of_the_weights(lengths: list[int], reach: int | None) -> None:
    """What was dropped is read off with values that are the unit vectors; the rest must then follow from it."""
    rate, longest = 0.3, max(lengths)
    width = -(-longest // 16) * 16
    layout = Layout.within(side(lengths))
    near = layout if reach is None else layout.seen_by(Window(reach=reach))
    q, k, toward = (states(sum(lengths), 1, width, seed) for seed in range(3))
    units = torch.cat([torch.eye(length, width) for length in lengths])[:, None]
    torch.manual_seed(5)
    seen = attend(q, k, units, layout, rate, reach)
    assert seen is not None
    kept = layout.query.rows.with_values(seen[:, 0, :longest]).pad()[:, None] != 0  # [B, 1, L, L]

    def by_hand(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        rows = layout.query.rows
        a, b, c = (rows.with_values(each).pad().transpose(1, 2) for each in (query, key, value))
        scores = (a @ b.transpose(-1, -2) * width**-0.5).masked_fill(~near.allowed, -torch.inf)
        return rows.unpad((scores.softmax(-1) * kept / (1 - rate) @ c).transpose(1, 2)).values

    def by_kernel(query: Tensor, key: Tensor, value: Tensor) -> Tensor | None:
        torch.manual_seed(5)
        return attend(query, key, value, layout, rate, reach)

    given = (q, k, states(sum(lengths), 1, width, 7))
    torch.testing.assert_close(by_kernel(*given), by_hand(*given), atol=5e-6, rtol=1e-5)
    for own, other in zip(gradients(by_kernel, given, toward), gradients(by_hand, given, toward), strict=True):
        torch.testing.assert_close(own, other, atol=2e-5, rtol=1e-5)


@needs_kernel
def test_dropout_takes_its_share_and_other_weights_each_time() -> None:
    layout = Layout.within(side([200, 200]))
    q = torch.zeros(400, 2, 208)
    units = torch.eye(200, 208).repeat(2, 1)[:, None].expand(-1, 2, -1).contiguous()
    torch.manual_seed(1)
    first, second = (attend(q, q, units, layout, 0.1) for _ in range(2))
    assert first is not None
    assert second is not None
    a, b = (weights[..., :200] != 0 for weights in (first, second))
    spread = (0.1 * 0.9 / a.numel()) ** 0.5
    assert abs(a.float().mean() - 0.9) < 4 * spread
    assert abs((a & b).float().mean() - 0.81) < 8 * spread
    # Heads and rows are independent of each other.
    assert abs((a[:, 0] & a[:, 1]).float().mean() - 0.81) < 8 * spread
    assert abs((a[:200] & a[200:]).float().mean() - 0.81) < 8 * spread
    torch.manual_seed(1)
    again = attend(q, q, units, layout, 0.1)
    assert again is not None
    assert torch.equal(first, again)


def gradients(call: Callable[..., Tensor | None], given: tuple[Tensor, ...], toward: Tensor) -> tuple[Tensor, ...]:
    leaves = [each.clone().requires_grad_() for each in given]
    result = call(*leaves)
    assert result is not None
    return torch.autograd.grad(result, leaves, toward)


reaches = st.sampled_from([0, 1, 5, 17, 30])


@needs_kernel
@given(lengths=Lengths, reach=reaches, width=st.sampled_from([16, 48]))
def test_a_reach_is_a_window(lengths: list[int], reach: int, width: int) -> None:
    layout = Layout.within(side(lengths))
    q, k, v = given = tuple(states(sum(lengths), 2, width, seed) for seed in range(3))
    toward = states(sum(lengths), 2, width, 3)
    near = layout.seen_by(Window(reach=reach))
    reference = ReferenceScorer(DotProduct())
    mixed = attend(q, k, v, layout, reach=reach)
    torch.testing.assert_close(mixed, reference(*given, near), atol=2e-6, rtol=1e-5)
    found = gradients(lambda q, k, v: attend(q, k, v, layout, reach=reach), given, toward)
    expected = gradients(lambda *given: reference(*given, near), given, toward)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, atol=5e-6, rtol=1e-5)


@needs_kernel
@pytest.mark.parametrize("reach", [3, 64, 150])
def test_a_reach_in_rows_too_long_for_one_block(reach: int) -> None:
    """Such rows are taken in blocks of queries, each with the keys that it sees."""
    lengths = [700, 201, LONGEST]
    layout = Layout.within(side(lengths))
    given = tuple(states(sum(lengths), 1, 32, seed) for seed in range(3))
    toward = states(sum(lengths), 1, 32, 3)
    near = layout.seen_by(Window(reach=reach))
    reference = ReferenceScorer(DotProduct())
    found = gradients(lambda q, k, v: attend(q, k, v, layout, reach=reach), given, toward)
    expected = gradients(lambda *given: reference(*given, near), given, toward)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-5)


@needs_kernel
def test_a_reach_keeps_what_is_not_finite_away() -> None:
    q, k = states(40, 1, 16), states(40, 1, 16, 1)
    k[39] = float("nan")
    found = attend(q, k, q, Layout.within(side([40])), reach=4)
    assert found is not None
    assert found[:35].isfinite().all()
    assert not found[35:].isfinite().any()


def test_a_reach_needs_queries_that_are_the_keys() -> None:
    q = states(6, 1, 16)
    assert attend(q, q, q, Layout(side([6]), side([6])), reach=2) is None
