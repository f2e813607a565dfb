"""How much a model can learn in a given time: a model and some texts enter, a pace leaves that is measured once."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch

from bertie.batch import Batch, Ragged
from bertie.data.manifest import write_whole
from bertie.models.pretrained import Pretrained, load
from bertie.train.optimiser import AdamWSpec, clip_gradients

LEAST = 500  # texts to learn from, however little time there is: less teaches nothing
SAMPLE, ROWS = 256, 32  # texts that are learned from to measure it, and those of a step
BESIDES = 1.2  # a run also has a head, reads its rows and measures itself: 1.05 to 1.3 times as long, as measured


@dataclass(frozen=True)
class Pace:
    """Kept in a file, so that a stage which goes on asks for the same rows as it did when it began."""

    texts_per_second: float  # to learn from

    def num_texts(self, minutes: float) -> int:
        return max(LEAST, round(60 * minutes * self.texts_per_second))


def read_pace(file: Path, base: str, texts: Sequence[str], length: int) -> Pace:
    """That of the file, or else it is measured and written."""
    if not file.exists():
        write_whole(file, json.dumps(asdict(measure_pace(load(base), texts, length))).encode())
    return Pace(**json.loads(file.read_bytes()))


def measure_pace(model: Pretrained, texts: Sequence[str], length: int) -> Pace:
    """By whole steps of the encoder. The first, in which kernels are made, is taken twice and counts once."""
    chosen = texts[:: max(1, len(texts) // SAMPLE)][:SAMPLE]
    parts = [chosen[start : start + ROWS] for start in range(0, len(chosen), ROWS)]
    _, *seconds = steps(model, [parts[0], *parts], length)
    return Pace(median(len(part) / took for part, took in zip(parts, seconds, strict=True)) / BESIDES)


def steps(model: Pretrained, parts: Sequence[Sequence[str]], length: int) -> Iterator[float]:
    """Seconds of each."""
    encoder, tokenizer = model.model.encoder.train(), model.tokenizer
    assert tokenizer is not None
    adamw = AdamWSpec()
    optimiser = adamw.build(encoder)
    for part in parts:
        begun = time.perf_counter()
        flat = tokenizer.encode_ids(part, max_length=length)
        tokens = Ragged(torch.from_numpy(flat.ids), torch.from_numpy(flat.lengths))
        encoder(Batch({"tokens": tokens})).states.values.square().mean().backward()
        clip_gradients(encoder, adamw.clip)
        optimiser.step()
        optimiser.zero_grad()
        yield time.perf_counter() - begun
