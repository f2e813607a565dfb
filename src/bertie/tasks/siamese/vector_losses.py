"""Losses of vectors: small where vectors of texts that belong together are near each other and others are not.

Only directions count, but for `relation`. Axes: N rows, V texts of all rows, M candidates, W numbers of a vector.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bertie.batch import Ragged
from bertie.devices import copied


def cosine_loss(left: Tensor, right: Tensor, wanted: Tensor) -> Tensor:
    """[N] how far each pair's cosine is from the one that is wanted, squared. Reimers and Gurevych, 2019, section 3."""
    return (F.cosine_similarity(left, right) - wanted).square()


def cosent_loss(left: Tensor, right: Tensor, scores: Tensor, scale: float) -> Tensor:
    """[1] small where pairs of a higher score have the higher cosine, by whatever distance: log(1 + sum of
    exp(scale * (cosine of the lower - cosine of the higher))) over all two pairs of different score. Huang et al.,
    CoSENT, 2024. The scores are on the CPU."""
    cosines = scale * F.cosine_similarity(left, right)
    gaps = cosines[:, None] - cosines[None]  # [N, N] of a row and a column
    gaps = gaps[tuple(copied(one, gaps.device) for one in (scores[:, None] < scores[None]).nonzero().unbind(-1))]
    return torch.cat([gaps.new_zeros(1), gaps]).logsumexp(0, keepdim=True)


def triplet_loss(anchors: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """[N] 0 where the positive's cosine is higher than the negative's by the margin."""
    return F.relu(F.cosine_similarity(anchors, negatives) - F.cosine_similarity(anchors, positives) + margin)


def relation(left: Tensor, right: Tensor) -> Tensor:
    """[N, 3 W] what a label is predicted from: u, v and |u - v|. Reimers and Gurevych, 2019, section 3."""
    return torch.cat([left, right, (left - right).abs()], -1)


def ranking_loss(vectors: Ragged, digests: Ragged, scale: float) -> Tensor:
    """[N] the cross entropy of finding each row's second text by its first, among the other texts of all rows; a third
    text is a candidate that is wrong for sure. Henderson et al., 2017, section 4.4; with a text as its own second one
    under another dropout it is Gao et al., SimCSE, 2021, section 3.

    A candidate that would be wrong by accident does not count: the text that is asked for, or the asking one, as some
    other row has it, and the second text of a row that asks the same. Equal texts have equal `digests`.
    """
    found = Candidates.of(vectors)
    anchors, candidates = F.normalize(vectors.values[found.anchors]), F.normalize(vectors.values[found.places])
    logits = (scale * anchors @ candidates.T).masked_fill(found.right_by_accident(digests.values), -torch.inf)
    return F.cross_entropy(logits, found.right, reduction="none")


@dataclass(frozen=True)
class Candidates:
    """Who asks and who may be the answer, as places among all texts."""

    anchors: Tensor  # [N] each row's first text
    places: Tensor  # [M] all others
    right: Tensor  # [N] which of the candidates is the row's second text

    @classmethod
    def of(cls, texts: Ragged) -> "Candidates":
        rows = texts.layout
        is_candidate = rows.positions > 0  # [V]
        numbers = is_candidate.cumsum(0) - 1  # of a candidate
        places = rows.starts, is_candidate.nonzero().squeeze(-1), numbers[rows.starts + 1]
        return cls(*(copied(one, texts.device) for one in places))

    def right_by_accident(self, digests: Tensor) -> Tensor:
        """[N, M]"""
        asking, wanted = digests[self.anchors], digests[self.anchors + 1]  # [N]
        offered = digests[self.places]  # [M]
        found = (offered == asking[:, None]) | (offered == wanted[:, None])
        found[:, self.right] |= asking[:, None] == asking  # where another row asks the same
        found[torch.arange(len(self.right), device=found.device), self.right] = False
        return found
