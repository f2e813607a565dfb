"""Turns many texts into vectors, in the order of the texts.

Texts of similar length share a batch with a budget of tokens; a vector does not depend on the others in its batch.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypedDict

import numpy as np
import torch

from bertie.batch import Batch, Ragged
from bertie.data.batching import batches_by_length
from bertie.devices import CPU, device_of
from bertie.nn.encoder import Encoder
from bertie.nn.pooling import Pooling, Projection, TokenPooling
from bertie.nn.products.choice import Precision, products_in
from bertie.nn.products.engines import StillWeights
from bertie.text.tokenizers.tokens import FlatIds, UnknownCount

BATCH_TOKENS = 1024  # measured: fewer cost more calls, with more the states do not fit into a core's cache
WORTH_PACKING = 8 * BATCH_TOKENS  # tokens for which weights are put into a faster layout
LEAST_TOKENS = 256  # a batch smaller than this is not worth a thread of its own

Layers = Literal["last", "sum4", "concat4"] | int

RAW_VECTORS = (
    "this model was not trained to compare vectors: they all point in similar directions, so the cosine of any two "
    "texts is high and means little; fine-tune it on `similarity` with `siamese`, or apply `bertie whiten`"
)


class RawVectorsWarning(UserWarning):
    """Vectors of a model that was not trained to compare them."""


@cache
def warn_of_raw_vectors() -> None:
    """Warns once per process."""
    warnings.warn(RAW_VECTORS, RawVectorsWarning, stacklevel=3)


@dataclass(frozen=True)
class Encoding:
    """Vectors, and what happened to their texts."""

    vectors: np.ndarray  # [texts, width] float32
    num_tokens: int
    num_truncated: int  # texts that were cut
    num_cut: int  # tokens that were cut off
    num_empty: int  # texts without any token of their own
    num_replaced: int = 0  # words that the tokenizer corrected
    num_unknown: int = 0  # tokens that the vocabulary does not have
    num_text_tokens: int = 0  # tokens without those around the texts, among which they are counted

    @property
    def unknown(self) -> UnknownCount:
        return UnknownCount(self.num_unknown, self.num_text_tokens)


class EncodeOptions(TypedDict, total=False):
    """The options of `encode` and `encode_report`. What is not given is as the model's folder states, or else the mean
    over the last layer."""

    pooling: TokenPooling | None  # how the states of tokens become one vector
    layers: Layers | None  # "last", the number of a layer, or the "sum4" or "concat4" of the last four
    normalize: bool | None  # whether vectors have length 1
    size: int | None  # how many numbers of each vector are kept
    max_length: int | None  # tokens at which a text is cut
    batch_tokens: int  # tokens of a batch
    precision: Precision  # of matrix products; "bfloat16" is taken where it is faster, and rounds
    progress: bool | None  # whether to show progress; by default only in a terminal


def embed_ids(
    encoder: Encoder,
    flat: FlatIds,
    pooling: Pooling,
    width: int,
    max_tokens: int,
    advance: Callable[[int], None],
    projection: Projection | None = None,
    precision: Precision = "float32",
) -> np.ndarray:
    """Vectors [texts, width]; a text without any token, not even a special one, gets zeros.

    Each thread takes whole batches: cores that share a batch wait for each other after every step of every layer.
    """
    vectors = np.zeros((len(flat.lengths), width), np.float32)
    starts = np.cumsum(flat.lengths) - flat.lengths
    device = device_of(encoder)
    num_threads = torch.get_num_threads() if device == CPU else 1
    share = -(-int(flat.lengths.sum()) // num_threads)  # of one thread, rounded up
    still = StillWeights() if int(flat.lengths.sum()) >= WORTH_PACKING else nullcontext
    batches = list(batches_by_length(flat.lengths, min(max_tokens, max(share, LEAST_TOKENS))))

    def embed(rows: np.ndarray) -> int:
        lengths, num_texts = flat.lengths[rows], len(rows)
        rows, lengths = rows[lengths > 0], lengths[lengths > 0]
        if len(rows):
            ids = torch.from_numpy(flat.ids[_indices(starts[rows], lengths)])
            with torch.inference_mode(), products_in(precision), still():
                tokens = Ragged(ids, torch.from_numpy(lengths)).to(device)
                encoded = encoder(
                    Batch({"tokens": tokens}),
                    keep_layers=pooling.needs_layers,
                    positions=tokens.starts if pooling.tokens == "first" else None,
                )
                vectors[rows] = pooling(encoded.states, encoded.layers, projection).cpu().numpy()
        return num_texts

    if len(batches) < num_threads or num_threads == 1:
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
    """Flat indices of rows that start at `starts`, one row after another."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
