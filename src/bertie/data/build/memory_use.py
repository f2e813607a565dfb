"""Bounds the caches of workers and gives freed memory back to the system, since what many workers keep adds up."""

import importlib
import os

import pyarrow as pa

from bertie.freed_memory import release_memory

CACHED_WORDS = 1 << 15  # of the native tokenizer; it would keep a million of each kind


def bound_caches() -> None:
    """Once in each worker, before its first work. A worker has one thread: there is a worker for each core."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        importlib.import_module("nanotoken").set_cache_entries(CACHED_WORDS)
    except (ImportError, AttributeError):
        return


def release_all() -> None:
    """Arrow's freed memory, too."""
    pa.default_memory_pool().release_unused()
    release_memory()
