"""Turns a shape and a corpus into numbered samples."""

from collections.abc import Callable, Sequence

from bertie.data.samples.frame import Frame
from bertie.data.samples.packed import PackedSamples
from bertie.data.samples.pairs import PairSamples
from bertie.data.samples.parallel import ParallelSamples
from bertie.data.samples.sample_protocols import Documents, Samples
from bertie.data.samples.segments import SegmentSamples
from bertie.data.samples.streams import StreamSamples
from bertie.data.samples.windows import WindowSamples
from bertie.data.shapes import Parallel, SampleShape
from bertie.errors import InputError, SpecError

BUILDERS: dict[str, Callable[..., Samples]] = {
    "segments": SegmentSamples,
    "pairs": PairSamples,
    "packed": PackedSamples,
    "streams": StreamSamples,
    "windows": WindowSamples,
    "parallel": ParallelSamples,
}


def build_samples(shape: SampleShape, documents: Documents | Sequence[Documents], frame: Frame) -> Samples:
    """Parallel text has two sides, anything else one."""
    sides = documents if isinstance(documents, Sequence) else [documents]
    wanted = 2 if isinstance(shape, Parallel) else 1
    if len(sides) != wanted:
        needed, action = ("parallel text", "give") if wanted == 2 else (f"one text ({shape.kind})", "leave out")
        hint = f"{action} `translations`, the corpus of the other language"
        raise SpecError(f"the model learns from {needed}", hint=hint)
    samples = BUILDERS[shape.kind](shape, *sides, frame)
    if samples.num_samples == 0:
        raise InputError("the corpus has no token, so there is no sample in it")
    return samples
