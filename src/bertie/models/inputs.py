"""Checks the texts and token ids that users give to a model."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bertie.errors import InputError
from bertie.text import Tokens
from bertie.text.tokenizers.tokens import UnknownCount


class TruncationWarning(UserWarning):
    """Texts were longer than the limit and were truncated."""


def given_ids(ids: Sequence[int] | np.ndarray, vocab_size: int) -> Tokens:
    """Token ids that a user gives, as tokens without offsets or special tokens."""
    try:
        array = np.asarray(ids)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim == 1 and not len(array):
        raise InputError("there are no tokens")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError("ids must be one row of whole numbers")
    array = array.astype(np.int64)
    if len(array) and (array.min() < 0 or array.max() >= vocab_size):
        wrong = int(array[(array < 0) | (array >= vocab_size)][0])
        raise InputError(f"id {wrong} is outside the vocabulary of {vocab_size:,}")
    blank = np.zeros_like(array)
    return Tokens(array, np.zeros((len(array), 2), np.int64), blank - 1, blank, np.zeros(len(array), bool))


def listed_texts(texts: Iterable[str], prompt: str) -> list[str]:
    """Texts that a user gives, each after the prompt."""
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise InputError(f"texts must be a list of texts, not {type(texts).__name__}")
    return [prompt + text for text in texts] if prompt else list(texts)


class UnknownWarning(UserWarning):
    """Many tokens of the texts are unknown to the vocabulary."""


def warn_of_unknown(count: UnknownCount, stacklevel: int = 3) -> None:
    if (what := count.warning()) is not None:
        warnings.warn(what, UnknownWarning, stacklevel=stacklevel)


def warn_of_cuts(num_texts: int, num_all: int, num_tokens: int, stacklevel: int = 3) -> None:
    if num_texts:
        what = f"{num_texts:,} of {num_all:,} texts were too long and were cut: {num_tokens:,} tokens were not read"
        warnings.warn(what, TruncationWarning, stacklevel=stacklevel)
