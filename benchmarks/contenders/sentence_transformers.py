"""sentence-transformers through its own `encode`, which sorts by length itself. Settings: batch_size."""

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
from sentence_transformers import SentenceTransformer

from benchmarks.contenders.minilm import FOLDER
from benchmarks.contenders.padded import PaddedBatches
from benchmarks.contenders.protocol import serve
from benchmarks.contenders.torch_engine import peer_engine, set_up


class WithSentenceTransformers:
    def __init__(self) -> None:
        set_up()
        self.versions = {name: version(name) for name in ("sentence-transformers", "transformers", "torch")}
        self.model = SentenceTransformer(str(FOLDER), device="cpu")
        self.lengths = PaddedBatches().lengths

    def embed(self, texts: Sequence[str], settings: dict[str, int]) -> np.ndarray:
        vectors: np.ndarray = self.model.encode(
            list(texts), batch_size=settings["batch_size"], show_progress_bar=False, convert_to_numpy=True
        )
        return vectors


if __name__ == "__main__":
    serve(WithSentenceTransformers, peer_engine)
