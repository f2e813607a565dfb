"""How much a model can learn in a given time: a model and some texts enter, a pace leaves that is measured once."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bertie.data.manifest import write_whole
from bertie.models.pretrained import load

LEAST = 500  # texts to learn from, however little time there is: less teaches nothing
SAMPLE = 256  # texts that are embedded to measure it
ROUNDS = 3  # of which the fastest counts: in the first one kernels are made
LEARNING = 3.0  # how much longer a text takes to be learned from than to be embedded: 2.9 as measured


@dataclass(frozen=True)
class Pace:
    """Kept in a file, so that a stage which goes on asks for the same rows as it did when it began."""

    texts_per_second: float  # to learn from

    def num_texts(self, minutes: float) -> int:
        return max(LEAST, round(60 * minutes * self.texts_per_second))


def read_pace(file: Path, base: str, texts: Sequence[str], length: int) -> Pace:
    """That of the file, or else it is measured and written."""
    if not file.exists():
        pace = measure_pace(base, texts, length)
        write_whole(file, json.dumps(asdict(pace)).encode())
    return Pace(**json.loads(file.read_bytes()))


def measure_pace(base: str, texts: Sequence[str], length: int) -> Pace:
    model = load(base)
    chosen = texts[:: max(1, len(texts) // SAMPLE)][:SAMPLE]
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        model.encode_report(chosen, max_length=length, progress=False)
        seconds.append(time.perf_counter() - begun)
    return Pace(len(chosen) / min(seconds) / LEARNING)
