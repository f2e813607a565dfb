"""Types of options for amounts as people write them: "50M", "90m", "128:0.9,512:0.1". Numbers are taken as they are."""

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from bertie.data.data_schedule import Curriculum

MULTIPLES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9}
LARGEST_COUNT, LARGEST_TIME = 10**15, 10 * 365 * 86_400  # ten years
SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def parse_count(given: Any) -> Any:
    """ "50M", "2.5k", "1_000_000"; also 500000 and 5e6."""
    if not isinstance(given, str):
        return given
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmbg]?)", given.strip().replace("_", "").replace(",", "").lower())
    amount = float(found[1]) * MULTIPLES[found[2]] if found else 0
    count = round(amount) if math.isfinite(amount) else 0
    if count < 1:
        raise ValueError(f"{given!r} is not a count; write it like 500000, 500k or 50M")
    return count


def parse_seconds(given: Any) -> Any:
    """ "90m", "1h30m", "45s". A number is seconds."""
    if not isinstance(given, str):
        return given
    text = given.strip().lower()
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text)
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or seconds <= 0:
        raise ValueError(f"{given!r} is not a time; write it like 90m, 1h30m or 45s")
    return seconds


def parse_curriculum(given: Any) -> Any:
    """ "128:0.9,512:0.1": lengths of rows, each with its share of the run."""
    if not isinstance(given, str):
        return given
    try:
        pairs = [part.split(":") for part in given.split(",")]
        return {"phases": [{"length": int(length), "share": float(share)} for length, share in pairs]}
    except ValueError:
        hint = "write lengths and shares, like 128:0.9,512:0.1"
        raise ValueError(f"{given!r} is not a curriculum; {hint}") from None


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.10g}s"


def _format_curriculum(curriculum: Curriculum) -> str:
    return ",".join(f"{phase.length}:{phase.share!r}" for phase in curriculum.phases)


Count = Annotated[int, BeforeValidator(parse_count), Field(ge=1, le=LARGEST_COUNT)]
Seconds = Annotated[
    float,
    BeforeValidator(parse_seconds),
    Field(gt=0, le=LARGEST_TIME),
    PlainSerializer(_format_seconds, when_used="json"),
]
AnyCurriculum = Annotated[
    Curriculum, BeforeValidator(parse_curriculum), PlainSerializer(_format_curriculum, when_used="json")
]
