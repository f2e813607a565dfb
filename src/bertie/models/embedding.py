"""Many texts to vectors: flat ids enter, one vector a text leaves, in the order of the texts.

Texts of similar length run together under a budget of tokens; a vector does not depend on its neighbours.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from bertie.batch import Batch, Ragged
from bertie.data.batching import batches_by_length
from bertie.nn.encoder import Encoder
from bertie.nn.pooling import Pooling
from bertie.text.tokens import FlatIds

BATCH_TOKENS = 2048  # measured: below it calls cost, above it states fall out of the cache


@dataclass(frozen=True)
class Encoding:
    """Vectors, and what happened to the texts on the way."""

    vectors: np.ndarray  # [texts, width] float32
    num_tokens: int
    num_truncated: int  # texts that were cut
    num_cut: int  # tokens that were cut off
    num_empty: int  # texts without a single token of their own


def embed_ids(
    encoder: Encoder, flat: FlatIds, pooling: Pooling, width: int, max_tokens: int, advance: Callable[[int], None]
) -> np.ndarray:
    """[texts, width]; a text without any token, not even a special one, gets zeros."""
    vectors = np.zeros((len(flat.lengths), width), np.float32)
    starts = np.cumsum(flat.lengths) - flat.lengths
    for rows in batches_by_length(flat.lengths, max_tokens):
        lengths = flat.lengths[rows]
        if not lengths.all():
            rows, lengths = rows[lengths > 0], lengths[lengths > 0]
        if len(rows):
            tokens = Ragged(torch.from_numpy(flat.ids[_indices(starts[rows], lengths)]), torch.from_numpy(lengths))
            encoded = encoder(Batch({"tokens": tokens}), keep_layers=pooling.needs_layers)
            vectors[rows] = pooling(encoded.states, encoded.layers).numpy()
        advance(len(rows))
    return vectors


def _indices(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Flat indices of rows that begin at `starts`, one row after another."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
