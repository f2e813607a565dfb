"""Amounts as people write them: "50M", "90m", "128:0.9,512:0.1" enter, numbers leave."""

import re

from bertie.data.course import Curriculum
from bertie.errors import SpecError

MULTIPLES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9}
SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def count_of(text: str, option: str) -> int:
    """ "50M", "2.5k", "1_000_000"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmbg]?)", text.strip().replace("_", "").replace(",", "").lower())
    count = round(float(found[1]) * MULTIPLES[found[2]]) if found else 0
    if count < 1:
        raise SpecError(f"{option} {text!r} is no count", hint="write it like 500000, 500k or 50M")
    return count


def seconds_of(text: str, option: str) -> float:
    """ "90m", "1h30m", "45s"."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text.strip().lower())
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text.strip().lower() or seconds <= 0:
        raise SpecError(f"{option} {text!r} is no time", hint="write it like 90m, 1h30m or 45s")
    return seconds


def curriculum_of(text: str, option: str) -> Curriculum:
    """ "128:0.9,512:0.1": lengths with their shares."""
    try:
        pairs = [part.split(":") for part in text.split(",")]
        phases = [{"length": int(length), "share": float(share)} for length, share in pairs]
    except ValueError:
        hint = "write lengths and shares, like 128:0.9,512:0.1"
        raise SpecError(f"{option} {text!r} is no curriculum", hint=hint) from None
    return Curriculum.parse({"phases": phases}, where=f"{option} {text}")
