"""Losses of vectors against their formulas, written out number by number."""

import math

import pytest
import torch
from torch import Tensor

from bertie.batch import Ragged
from bertie.tasks.siamese.vector_losses import (
    Candidates,
    cosent_loss,
    cosine_loss,
    ranking_loss,
    relation,
    triplet_loss,
)

SCALE = 20.0


def drawn(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))


def cosine(one: Tensor, other: Tensor) -> float:
    return float(one @ other / (one.norm() * other.norm()))


def rows_of(lengths: list[int], seed: int = 0) -> Ragged:
    return Ragged(drawn(sum(lengths), seed), torch.tensor(lengths))


def digests_of(lengths: list[int], *names: int) -> Ragged:
    """Texts of the same name are the same text."""
    return Ragged(torch.tensor(names or range(sum(lengths))), torch.tensor(lengths))


def test_cosine_loss_is_the_squared_distance_from_the_score() -> None:
    left, right, wanted = drawn(3), drawn(3, 1), torch.tensor([0.0, 0.4, 1.0])
    expected = [(cosine(left[row], right[row]) - float(wanted[row])) ** 2 for row in range(3)]
    torch.testing.assert_close(cosine_loss(left, right, wanted), torch.tensor(expected))


def test_cosent_loss_is_over_all_two_pairs_of_different_score() -> None:
    left, right, scores = drawn(4), drawn(4, 1), torch.tensor([0.5, 0.1, 0.5, 0.9])
    cosines = [cosine(left[row], right[row]) for row in range(4)]
    gaps = [
        math.exp(SCALE * (cosines[low] - cosines[high]))
        for low in range(4)
        for high in range(4)
        if scores[low] < scores[high]
    ]
    assert len(gaps) == 5, "equal scores have no order"
    expected = math.log(1 + sum(gaps))
    assert float(cosent_loss(left, right, scores, SCALE)) == pytest.approx(expected, rel=1e-4)


def test_cosent_loss_of_equal_scores_is_nothing() -> None:
    loss = cosent_loss(drawn(3).requires_grad_(), drawn(3, 1), torch.ones(3), SCALE)
    assert float(loss.detach()) == 0.0
    loss.sum().backward()


def test_triplet_loss_stops_at_the_margin() -> None:
    anchors, near, far = drawn(2), drawn(2), drawn(2, 3)
    gaps = [cosine(anchors[row], far[row]) - 1.0 + 0.5 for row in range(2)]
    expected = torch.tensor([max(0.0, gap) for gap in gaps])
    torch.testing.assert_close(triplet_loss(anchors, near, far, 0.5), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(triplet_loss(anchors, near, near, 0.5), torch.full((2,), 0.5))


def test_labels_are_told_from_both_vectors_and_their_distance() -> None:
    left, right = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 0.5]])
    assert relation(left, right).tolist() == [[1.0, -2.0, 3.0, 0.5, 2.0, 2.5]]


def test_ranking_loss_looks_for_the_second_text_among_those_of_all_rows() -> None:
    lengths = [2, 3, 2]  # the second row has a text that is wrong for sure
    vectors = rows_of(lengths)
    flat, anchors, candidates, right = vectors.values, [0, 2, 5], [1, 3, 4, 6], [0, 1, 3]
    losses = ranking_loss(vectors, digests_of(lengths), SCALE)
    for row, anchor in enumerate(anchors):
        logits = [SCALE * cosine(flat[anchor], flat[place]) for place in candidates]
        expected = math.log(sum(map(math.exp, logits))) - logits[right[row]]
        assert float(losses[row]) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("names", "masked"),
    [
        ((0, 1, 2, 3, 4, 5), []),
        ((0, 1, 2, 1, 4, 5), [(0, 1), (1, 0)]),  # the same answer
        ((0, 1, 0, 3, 4, 5), [(0, 1), (1, 0)]),  # the same question
        ((0, 1, 1, 3, 4, 5), [(1, 0)]),  # one's question is the other's answer
        ((0, 0, 1, 1, 1, 1), [(1, 2), (2, 1)]),  # every text is its own answer, and one is there twice
    ],
)
def test_texts_that_are_right_by_accident_are_no_wrong_answers(
    names: tuple[int, ...], masked: list[tuple[int, int]]
) -> None:
    lengths = [2, 2, 2]
    vectors, digests = rows_of(lengths), digests_of(lengths, *names)
    found = Candidates.of(vectors).right_by_accident(digests.values)
    assert [(int(row), int(column)) for row, column in found.nonzero()] == masked
    losses = ranking_loss(vectors, digests, SCALE)
    flat = vectors.values
    for row in range(3):
        logits = {place: SCALE * cosine(flat[2 * row], flat[2 * place + 1]) for place in range(3)}
        kept = [logits[place] for place in range(3) if (row, place) not in masked]
        assert float(losses[row]) == pytest.approx(math.log(sum(map(math.exp, kept))) - logits[row], rel=1e-4, abs=1e-5)


def test_a_third_text_of_the_own_row_counts_unless_it_is_the_second() -> None:
    lengths = [3, 3]
    found = Candidates.of(rows_of(lengths)).right_by_accident(torch.tensor([0, 1, 2, 3, 4, 4]))
    assert found.nonzero().tolist() == [[1, 3]], "a wrong answer that is the right one"


def test_a_row_alone_has_nothing_to_be_told_from() -> None:
    assert float(ranking_loss(rows_of([2]), digests_of([2]), SCALE)) == 0.0
