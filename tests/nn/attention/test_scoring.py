"""The reference scorer against a loop over rows and queries; the fused scorer against the reference, with gradients."""

import math
from collections.abc import Sequence
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bertie.batch import Ragged
from bertie.nn.attention.scoring import DotProduct, DotProductSpec, FusedScorer, ReferenceScorer
from bertie.nn.layout import Layout, Side
from bertie.nn.visibility import Causal, Full, Permutation, Visibility, Window

HEADS, WIDTH = 2, 4


def side_of(sizes: Sequence[int]) -> Side:
    lengths = torch.tensor(list(sizes), dtype=torch.int64)
    rows = Ragged(torch.zeros(int(lengths.sum()), dtype=torch.int64), lengths)
    order = Ragged.of([torch.arange(size - 1, -1, -1) for size in sizes])
    return Side(rows.with_values(rows.positions), {"order": order})


def states(total: int, seed: int) -> Tensor:
    return torch.randn(total, HEADS, WIDTH, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def inputs(layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
    num_queries, num_keys = len(layout.query.rows.values), len(layout.key.rows.values)
    return states(num_queries, 1), states(num_keys, 2), states(num_keys, 3)


def naive(query: Tensor, key: Tensor, value: Tensor, layout: Layout) -> Tensor:
    """One query and one head at a time."""
    allowed = layout.allowed.expand(-1, HEADS, layout.query.rows.longest, layout.key.rows.longest)
    mixed = torch.zeros_like(query)
    start_q = start_k = 0
    for row, (size_q, size_k) in enumerate(zip(layout.query.rows.sizes, layout.key.rows.sizes, strict=True)):
        for i in range(size_q):
            for head in range(HEADS):
                seen = [start_k + j for j in range(size_k) if allowed[row, head, i, j]]
                scores = [float(query[start_q + i, head] @ key[j, head]) / math.sqrt(WIDTH) for j in seen]
                total = sum(math.exp(score) for score in scores)
                for j, score in zip(seen, scores, strict=True):
                    mixed[start_q + i, head] += math.exp(score) / total * value[j, head]
        start_q, start_k = start_q + size_q, start_k + size_k
    return mixed


def fused_and_reference() -> tuple[FusedScorer, ReferenceScorer]:
    return FusedScorer(DotProduct()), ReferenceScorer(DotProduct())


def check_equal(layout: Layout, training: bool) -> None:
    fused, reference = fused_and_reference()
    fused.train(training)
    assert fused.recognizes(layout)
    given_states = inputs(layout)
    ours, theirs = fused(*given_states, layout), reference(*given_states, layout)
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)
    with torch.inference_mode():  # may take another way, where no gradient is wanted
        torch.testing.assert_close(fused(*given_states, layout), theirs.detach(), atol=2e-6, rtol=1e-5)
    weights = torch.randn(theirs.shape, generator=torch.Generator().manual_seed(4))
    gradients = [torch.autograd.grad((mixed * weights).sum(), given_states) for mixed in (ours, theirs)]
    for own, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(own, expected, atol=5e-6, rtol=1e-5)


row_sizes = st.lists(st.integers(1, 60), min_size=1, max_size=40)


@settings(max_examples=40)
@given(row_sizes, st.booleans(), st.sampled_from([Full(), Causal(), Window(reach=3), Window(reach=20)]), st.booleans())
def test_fused_equals_reference_within_rows(
    sizes: list[int], in_order: bool, visibility: Visibility, training: bool
) -> None:
    side = side_of(sorted(sizes) if in_order else sizes)
    check_equal(Layout(side, side, visibility), training)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=40), st.booleans())
def test_fused_equals_reference_across_sequences(sizes: list[tuple[int, int]], training: bool) -> None:
    query, key = side_of([q for q, _ in sizes]), side_of([k for _, k in sizes])
    if len(query.rows.values):
        check_equal(Layout(query, key), training)


@pytest.mark.parametrize("sizes", [[300, 290, 1, 5, 5, 5], [1], [0, 3, 0], [128] * 4 + [3] * 40])
@pytest.mark.parametrize("visibility", [Full(), Causal(), Window(reach=2)])
def test_fused_equals_reference_on_odd_batches(sizes: list[int], visibility: Visibility) -> None:
    side = side_of(sizes)
    check_equal(Layout(side, side, visibility), training=True)


@pytest.mark.parametrize("visibility", [Full(), Causal(), Window(reach=1), Permutation(strict=True)])
def test_reference_equals_a_loop(visibility: Visibility) -> None:
    side = side_of([4, 1, 6, 0, 2])
    layout = Layout(side, side, visibility)
    query, key, value = (tensor.detach() for tensor in inputs(layout))
    torch.testing.assert_close(
        ReferenceScorer(DotProduct())(query, key, value, layout), naive(query, key, value, layout)
    )


def test_reference_equals_a_loop_across_sequences() -> None:
    layout = Layout(side_of([3, 2, 0, 2]), side_of([1, 5, 2, 0]))
    query, key, value = (tensor.detach() for tensor in inputs(layout))
    torch.testing.assert_close(
        ReferenceScorer(DotProduct())(query, key, value, layout), naive(query, key, value, layout)
    )


@pytest.mark.parametrize("fused", [False, True])
def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients(fused: bool) -> None:
    scorer = DotProductSpec(fused=fused).build(HEADS, WIDTH)
    side = side_of([3, 1])
    layout = Layout(side, side, Permutation(strict=True))  # the last of each row is first in the order
    given_states = inputs(layout)
    mixed = scorer(*given_states, layout)
    assert (mixed[[2, 3]] == 0).all()
    assert (mixed[[0, 1]] != 0).all()
    for gradient in torch.autograd.grad(mixed.square().sum(), given_states):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("fused", [False, True])
def test_a_row_without_any_key_gets_zeros_and_finite_gradients(fused: bool) -> None:
    scorer = DotProductSpec(fused=fused).build(HEADS, WIDTH)
    layout = Layout(side_of([2, 2]), side_of([0, 3]))
    given_states = inputs(layout)
    mixed = scorer(*given_states, layout)
    assert (mixed[:2] == 0).all()
    for gradient in torch.autograd.grad(mixed.square().sum(), given_states):
        assert gradient.isfinite().all()


class Doubled(DotProduct):
    def forward(self, query: Tensor, key: Tensor, layout: Layout) -> Tensor:
        return 2 * super().forward(query, key, layout)


def calls_of_reference(
    layout: Layout, score: DotProduct | None = None, dropout: float = 0.0, train: bool = False
) -> int:
    fused = FusedScorer(score or DotProduct(), dropout).train(train)
    given_states = inputs(layout)
    expected = ReferenceScorer(score or DotProduct())(*given_states, layout)
    with mock.patch.object(ReferenceScorer, "forward", autospec=True, side_effect=ReferenceScorer.forward) as reference:
        mixed = fused(*given_states, layout)
    if not (dropout and train):
        torch.testing.assert_close(mixed, expected, atol=2e-6, rtol=1e-5)
    return int(reference.call_count)


def test_what_the_fused_scorer_does_not_know_goes_to_the_reference() -> None:
    side, twin, other = side_of([3, 5]), side_of([3, 5]), side_of([2, 4])
    assert calls_of_reference(Layout(side, side)) == 0
    assert calls_of_reference(Layout(side, side, Causal())) == 0
    assert calls_of_reference(Layout(side, other)) == 0
    assert calls_of_reference(Layout(side, side, Window(reach=1))) == 0
    assert calls_of_reference(Layout(side, twin, Window(reach=1))) == 1
    assert calls_of_reference(Layout(side, side, Window(reach=1, dilation=2))) == 1
    assert calls_of_reference(Layout(side, side, Causal() & Window(reach=1))) == 1
    assert calls_of_reference(Layout(side, twin, Causal())) == 1  # where keys begin is not known
    assert calls_of_reference(Layout(side, side), score=Doubled()) == 1
    assert calls_of_reference(Layout(side, side, observed=[])) == 1
    assert calls_of_reference(Layout(side, side), dropout=0.5, train=True) == 1
    assert calls_of_reference(Layout(side, side), dropout=0.5, train=False) == 0


class Turned(DotProduct):
    """A score that moves queries and keys before they meet."""

    def prepare(self, query: Tensor, key: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        return query * (1 + layout.query.rows.values[:, None, None]), key - 0.5


def test_what_a_score_prepares_is_prepared_once_by_both() -> None:
    side = side_of([4, 2])
    assert calls_of_reference(Layout(side, side), score=Turned()) == 0
    assert calls_of_reference(Layout(side, side, Window(reach=1)), score=Turned()) == 0
    assert calls_of_reference(Layout(side, side, Permutation()), score=Turned()) == 1


def test_observed_weights_are_those_of_each_query_and_sum_to_one() -> None:
    observed: list[Tensor] = []
    side = side_of([3, 2])
    layout = Layout(side, side, Causal(), observed)
    DotProductSpec().build(HEADS, WIDTH)(*inputs(layout), layout)
    (weights,) = observed
    assert weights.shape == (2, HEADS, 3, 3)
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(HEADS, 3))
    torch.testing.assert_close(weights[1, :, :2].sum(-1), torch.ones(HEADS, 2))
    assert (weights[:, :, 0, 1:] == 0).all()
    assert (weights[1, :, :, 2] == 0).all()


def test_dropout_drops_in_training_only() -> None:
    scorer = DotProductSpec(dropout=0.5).build(HEADS, WIDTH)
    side = side_of([20])
    layout = Layout(side, side)
    given_states = inputs(layout)
    torch.manual_seed(0)
    first, second = (scorer.train()(*given_states, layout) for _ in range(2))
    assert not first.equal(second)
    still, again = (scorer.eval()(*given_states, layout) for _ in range(2))
    assert still.equal(again)


def test_nothing_to_do_is_done() -> None:
    side = side_of([0, 0])
    layout = Layout(side, side)
    assert DotProductSpec().build(HEADS, WIDTH)(*inputs(layout), layout).shape == (0, HEADS, WIDTH)
