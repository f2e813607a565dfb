"""What several workers keep for later adds up: caches are bounded, and freed memory goes back to the system."""

import ctypes
import importlib
import os
from collections.abc import Callable
from functools import cache

import pyarrow as pa

CACHED_WORDS = 1 << 15  # of the native tokenizer; it would keep a million of each kind


def bound_caches() -> None:
    """Once in each worker, before its first work. A worker has one thread: there is a worker for each core."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        importlib.import_module("nanotoken").set_cache_entries(CACHED_WORDS)
    except (ImportError, AttributeError):
        return


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library than GNU's: it keeps what it likes
        return None
    return trim


def release_memory() -> None:
    pa.default_memory_pool().release_unused()
    if (trim := _trim()) is not None:
        trim(0)
