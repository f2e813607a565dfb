"""Whitening: computes a dense layer that spreads the vectors of texts evenly in all directions.

Su et al., Whitening Sentence Representations for Better Semantics and Faster Retrieval, 2021: with the mean m of the
vectors and their covariance U D U', the layer is (x - m) U D^(-1/2), of which the first columns may be enough. Axes: N
texts, W numbers of a vector.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch

from bertie.errors import CapabilityError, InputError
from bertie.models.pretrained import Pretrained
from bertie.models.sentence import SentenceSettings
from bertie.nn.pooling import Pooling, Projection

AT_ONCE = 2048  # texts
# The texts say nothing about a direction with less spread than this share of the largest, or of the rounding error.
LEAST_SHARE, ROUNDING = 1e-9, 1e-13


class Moments:
    """The mean and covariance of vectors, in constant memory."""

    def __init__(self, width: int):
        self.count = 0
        self._sum, self._products = np.zeros(width), np.zeros((width, width))

    def add(self, vectors: np.ndarray) -> None:
        wide = vectors.astype(np.float64)
        self.count += len(wide)
        self._sum += wide.sum(0)
        self._products += wide.T @ wide

    @property
    def mean(self) -> np.ndarray:
        return self._sum / max(1, self.count)

    @property
    def mean_square(self) -> float:
        """The mean square of the vectors' lengths."""
        return float(np.trace(self._products)) / max(1, self.count)

    @property
    def covariance(self) -> np.ndarray:
        return self._products / max(1, self.count) - np.outer(self.mean, self.mean)


def whitening(moments: Moments, size: int | None = None) -> Projection:
    """Computes the layer; directions in which vectors differ most come first. The default size is that of the vectors,
    or one less: after a layer norm there is a direction in which nothing differs."""
    spread, directions = np.linalg.eigh(moments.covariance)
    spread, directions = spread[::-1], directions[:, ::-1]
    if size is not None and size > len(spread):
        what = f"vectors of {len(spread):,} numbers cannot become vectors of {size:,}"
        raise InputError(what, hint=f"`size={len(spread)}` is the most")
    least = max(LEAST_SHARE * spread[0], ROUNDING * moments.mean_square)
    num_known = int((spread > least).sum())
    size = size or max(num_known, len(spread) - 1)
    if num_known < size:
        what = f"{moments.count:,} texts determine {num_known:,} directions, but {size:,} are needed"
        raise InputError(what, hint="give more texts, or a smaller `size`")
    weight = (directions[:, :size] / np.sqrt(spread[:size])).T  # [size, W]
    return Projection(torch.from_numpy(weight).float(), torch.from_numpy(-weight @ moments.mean).float())


@dataclass(frozen=True)
class Whitened:
    """A model with such a layer after its pooling, and how many texts it was computed from."""

    model: Pretrained
    num_texts: int
    num_truncated: int  # texts that were cut
    num_replaced: int  # words that the model's tokenizer corrected


def whitened(
    model: Pretrained, texts: Iterable[str], size: int | None = None, max_length: int | None = None
) -> Whitened:
    """Returns the model with a layer that whitens its vectors. Texts are cut at `max_length` tokens, now and whenever
    vectors are compared; by default where the folder says, and never later."""
    limit = max_length or model.stated_limit or model.limit
    if limit is not None and model.tokenizer is not None and limit > (model.tokenizer.max_length or limit):
        what = f"texts of {limit:,} tokens are longer than the folder takes"
        raise InputError(what, hint=f"`max_length={model.tokenizer.max_length}` is the most")
    own = model.settings or SentenceSettings(Pooling(), limit)
    if own.projection is not None:
        what = "the model already has a dense layer after its pooling"
        raise CapabilityError(what, hint="give a folder without one")
    moments: Moments | None = None
    num_truncated = num_replaced = 0
    remaining = iter(texts)
    while some := list(islice(remaining, AT_ONCE)):
        report = model.encode_report(some, normalize=False, max_length=limit, progress=False)
        moments = moments or Moments(report.vectors.shape[1])
        moments.add(report.vectors)
        num_truncated += report.num_truncated
        num_replaced += report.num_replaced
    if moments is None:
        raise InputError("there are no texts to compute the layer from", hint="give a few thousand")
    pooling = own.pooling.replace(normalize=True)
    settings = replace(
        own, pooling=pooling, max_length=max_length or own.max_length, projection=whitening(moments, size)
    )
    made = Pretrained(model.model, model.tokenizer, settings, model.report, model.card, model.source)
    return Whitened(made, moments.count, num_truncated, num_replaced)
