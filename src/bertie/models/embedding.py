"""Many texts to vectors: flat ids enter, one vector a text leaves, in the order of the texts.

Texts of similar length run together under a budget of tokens; a vector does not depend on its neighbours.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from bertie.batch import Batch, Ragged
from bertie.data.batching import batches_by_length
from bertie.nn.encoder import Encoder
from bertie.nn.pooling import Pooling, Projection
from bertie.text.tokens import FlatIds

BATCH_TOKENS = 1024  # measured: below it calls cost, above it states fall out of a core's cache
LEAST_TOKENS = 256  # a batch smaller than this is not worth a thread of its own

RAW_VECTORS = (
    "this model never learned to have its vectors compared: they crowd around one direction, so that cosines are high "
    "between any two texts and say little; train it with `bertie finetune similarity --siamese`, or let "
    "`bertie whiten` spread its vectors"
)


class RawVectorsWarning(UserWarning):
    """Vectors of a model that was not made for comparing them."""


@cache
def warn_of_raw_vectors() -> None:
    """Once a process."""
    warnings.warn(RAW_VECTORS, RawVectorsWarning, stacklevel=3)


@dataclass(frozen=True)
class Encoding:
    """Vectors, and what happened to the texts on the way."""

    vectors: np.ndarray  # [texts, width] float32
    num_tokens: int
    num_truncated: int  # texts that were cut
    num_cut: int  # tokens that were cut off
    num_empty: int  # texts without a single token of their own
    num_replaced: int = 0  # words that the tokenizer's table put right


def embed_ids(
    encoder: Encoder,
    flat: FlatIds,
    pooling: Pooling,
    width: int,
    max_tokens: int,
    advance: Callable[[int], None],
    projection: Projection | None = None,
) -> np.ndarray:
    """[texts, width]; a text without any token, not even a special one, gets zeros.

    Each thread takes whole batches: cores that share a batch wait for each other after every layer's every step.
    """
    vectors = np.zeros((len(flat.lengths), width), np.float32)
    starts = np.cumsum(flat.lengths) - flat.lengths
    num_threads, device = torch.get_num_threads(), next(encoder.parameters()).device
    share = -(-int(flat.lengths.sum()) // num_threads)  # of one thread, rounded up
    batches = list(batches_by_length(flat.lengths, min(max_tokens, max(share, LEAST_TOKENS))))

    def embed(rows: np.ndarray) -> int:
        lengths, num_texts = flat.lengths[rows], len(rows)
        rows, lengths = rows[lengths > 0], lengths[lengths > 0]
        if len(rows):
            tokens = Ragged(torch.from_numpy(flat.ids[_indices(starts[rows], lengths)]), torch.from_numpy(lengths))
            with torch.inference_mode():
                encoded = encoder(
                    Batch({"tokens": tokens.to(device)}),
                    keep_layers=pooling.needs_layers,
                    wanted=tokens.starts.to(device) if pooling.tokens == "first" else None,
                )
                vectors[rows] = pooling(encoded.states, encoded.layers, projection).cpu().numpy()
        return num_texts

    if len(batches) < num_threads or num_threads == 1 or device.type != "cpu":
        for rows in batches:
            advance(embed(rows))
        return vectors
    threads = ThreadPoolExecutor(num_threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        for done in as_completed([threads.submit(embed, rows) for rows in batches]):
            advance(done.result())
    finally:
        threads.shutdown(cancel_futures=True)  # Ctrl-C waits for the batches under way, not for all
        torch.set_num_threads(num_threads)  # what the pool's threads set is also the default of every new thread
    return vectors


def _indices(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Flat indices of rows that begin at `starts`, one row after another."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
