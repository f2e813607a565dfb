"""Formats seconds, bytes, FLOPs, counts and lists of names for people."""

from collections.abc import Iterable

SHOWN = 10  # names of a list
LONGEST = 60  # characters of a name


def format_duration(seconds: float) -> str:
    """ "42 s", "12 min 30 s", "3 h 05 min", "2 d 4 h": two units, as more are noise."""
    whole = round(seconds)
    if whole < 10:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def format_bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def format_flops(count: float) -> str:
    for unit, size in (("EFLOPs", 1e18), ("PFLOPs", 1e15), ("TFLOPs", 1e12), ("GFLOPs", 1e9), ("MFLOPs", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,.0f} FLOPs"


def format_count(count: int) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:,.1f}{unit}"
    return str(count)


def list_few(names: Iterable[str], shown: int = SHOWN) -> str:
    """The first names in quotes, and how many more there are; "none" for none."""
    every = list(names)
    few = [repr(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…") for name in every[:shown]]
    more = f" and {len(every) - shown:,} more" if len(every) > shown else ""
    return ", ".join(few) + more or "none"
