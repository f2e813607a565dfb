"""A shape and a corpus enter, numbered samples leave."""

from collections.abc import Callable
from typing import Any

from bertie.data.samples.frame import Frame
from bertie.data.samples.packed import PackedSamples
from bertie.data.samples.pairs import PairSamples
from bertie.data.samples.parallel import ParallelSamples
from bertie.data.samples.segments import SegmentSamples
from bertie.data.samples.source import Documents, Samples
from bertie.data.samples.streams import StreamSamples
from bertie.data.samples.windows import WindowSamples
from bertie.data.shapes import Parallel, SampleShape
from bertie.errors import InputError, SpecError

BUILDERS: dict[str, Callable[[Any, Documents, Frame], Samples]] = {
    "segments": SegmentSamples,
    "pairs": PairSamples,
    "packed": PackedSamples,
    "streams": StreamSamples,
    "windows": WindowSamples,
}


def build_samples(
    shape: SampleShape, documents: Documents, frame: Frame, translations: Documents | None = None
) -> Samples:
    """`translations` is the other side of parallel text."""
    if isinstance(shape, Parallel):
        if translations is None:
            raise SpecError("samples of parallel text need a second corpus with the translations")
        samples: Samples = ParallelSamples(shape, documents, translations, frame)
    else:
        samples = BUILDERS[shape.kind](shape, documents, frame)
    if samples.num_samples == 0:
        raise InputError("the corpus has no token, so there is no sample in it")
    return samples
