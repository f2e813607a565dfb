"""From turns to a verdict: what the commands of a run took enters, speeds, shares and bars leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.corpus_turns import Turn

PEER, LEAN_PEER = "datasets.map", "datasets.map, ids alone"
ALIKE, SENTENCES = "bertie like datasets.map", "bertie, sentences"
EVERYTHING, CHINESE = "bertie, all on", "bertie, Chinese"
OURS = (ALIKE, SENTENCES, EVERYTHING, CHINESE)

TIMES, SPEED, DISK, MEMORY = 8.0, 10.0, 1.1, 1.0  # what the bars ask for: ratio, MB/s, of the text, GB
MEGA, GIGA = 1e6, 1e9
# Control characters that one side drops and the other keeps; more than that is another text or another tokenizer.
TOKEN_SHARE = 0.001


@dataclass(frozen=True)
class Row:
    """All turns of one contender. MB are those of the raw text in UTF-8."""

    best: float  # MB/s
    middle: float
    slowest: float
    inside: float  # MB/s without the start of the interpreter and its imports, as the program itself counted
    processor_seconds: float  # of the best turn
    memory: float | None  # GB, the most of all turns
    disk: float  # of the text, the most at one time
    disk_left: float  # of the text, in the end

    @classmethod
    def of(cls, num_bytes: int, turns: Sequence[Turn], inside: Sequence[float]) -> "Row":
        size, seconds = num_bytes / MEGA, [turn.seconds for turn in turns]
        known = [turn.memory for turn in turns if turn.memory is not None]
        return cls(
            best=size / min(seconds),
            middle=size / median(seconds),
            slowest=size / max(seconds),
            inside=size / min(inside),
            processor_seconds=min(turns, key=lambda turn: turn.seconds).processor_seconds,
            memory=max(known) / GIGA if known else None,
            disk=max(turn.disk for turn in turns) / num_bytes,
            disk_left=max(turn.disk_left for turn in turns) / num_bytes,
        )

    @property
    def spread(self) -> float:
        """How much slower the slowest round was than the best, as a share."""
        return 1 - self.slowest / self.best


@dataclass(frozen=True)
class Bar:
    """What must be reached, or must not be passed."""

    name: str
    value: float
    limit: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    def __str__(self) -> str:
        wanted = f"at {'most' if self.at_most else 'least'} {self.limit:.1f}"
        return f"{self.name:<52} {self.value:6.2f}   {wanted}: {'holds' if self.holds else 'BROKEN'}"


def judge(rows: Mapping[str, Row]) -> list[Bar]:
    """Best round against best round; the rows that were not run have no bar."""
    bars = []
    if ALIKE in rows and PEER in rows:
        bars.append(Bar(f"times {PEER}", rows[ALIKE].best / rows[PEER].best, TIMES))
    if SENTENCES in rows:
        bars.append(Bar(f"MB/s of {SENTENCES}", rows[SENTENCES].best, SPEED))
    for name in (name for name in OURS if name in rows):
        bars.append(Bar(f"disk of {name}, times the text", rows[name].disk, DISK, at_most=True))
        memory = rows[name].memory
        if memory is not None:
            bars.append(Bar(f"memory of {name}, GB", memory, MEMORY, at_most=True))
    return bars


def different_tokens(own: int, peer: int, most_dropped: int) -> bool:
    """Whether the two tokenised different text. `most_dropped` may be missing from the peer's: ends of its batches."""
    return not -TOKEN_SHARE * own <= own - peer <= TOKEN_SHARE * own + most_dropped
