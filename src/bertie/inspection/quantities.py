"""Quantities for people: seconds, bytes, FLOPs and counts enter, words leave."""


def duration_told(seconds: float) -> str:
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


def bytes_told(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def flops_told(count: float) -> str:
    for unit, size in (("EFLOPs", 1e18), ("PFLOPs", 1e15), ("TFLOPs", 1e12), ("GFLOPs", 1e9), ("MFLOPs", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,.0f} FLOPs"


def count_told(count: int) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:,.1f}{unit}"
    return str(count)
