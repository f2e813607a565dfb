"""Losses of vectors beside those of `sentence-transformers`, whose formulas everybody trains with."""

from typing import Any

import pytest
import torch
from torch import Tensor

from bertie.batch import Ragged
from bertie.tasks.siamese.vector_losses import cosent_loss, cosine_loss, ranking_loss, triplet_loss

losses = pytest.importorskip(
    "sentence_transformers.sentence_transformer.losses", reason="sentence-transformers is not installed"
)
ROWS = 7


def drawn(seed: int) -> Tensor:
    return torch.randn(ROWS, 12, generator=torch.Generator().manual_seed(seed))


def theirs(name: str, embeddings: list[Tensor], labels: Tensor | None = None, **options: Any) -> Tensor:
    found: Tensor = getattr(losses, name)(None, **options).compute_loss_from_embeddings(embeddings, labels)
    return found


def together(*columns: Tensor) -> Ragged:
    """Texts of a row one after another."""
    return Ragged(torch.stack(columns, 1).flatten(0, 1), torch.full((ROWS,), len(columns)))


def different(rows: Ragged) -> Ragged:
    return rows.with_values(torch.arange(len(rows.values)))


def test_scored_pairs() -> None:
    left, right, scores = drawn(0), drawn(1), torch.tensor([0.0, 0.2, 0.2, 0.5, 0.8, 1.0, 1.0])
    torch.testing.assert_close(
        cosine_loss(left, right, scores).mean(), theirs("CosineSimilarityLoss", [left, right], scores)
    )
    torch.testing.assert_close(cosent_loss(left, right, scores, 20.0)[0], theirs("CoSENTLoss", [left, right], scores))


@pytest.mark.parametrize("num_texts", [2, 3])
def test_negatives_of_the_batch(num_texts: int) -> None:
    columns = [drawn(seed) for seed in range(num_texts)]
    rows = together(*columns)
    ours = ranking_loss(rows, different(rows), 20.0).mean()
    torch.testing.assert_close(ours, theirs("MultipleNegativesRankingLoss", columns))


def test_triplets() -> None:
    columns = [drawn(seed) for seed in range(3)]
    metric = losses.TripletDistanceMetric.COSINE
    expected = theirs("TripletLoss", columns, distance_metric=metric, triplet_margin=0.5)
    torch.testing.assert_close(triplet_loss(columns[0], columns[1], columns[2], 0.5).mean(), expected)
