"""Memory that was freed enters, the system gets it back: the C library would keep what lies between other blocks."""

import ctypes
from collections.abc import Callable
from functools import cache


def release_memory() -> None:
    if (trim := _trim()) is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library than GNU's: it keeps what it likes
        return None
    return trim
