"""bertie as a user calls it. Settings: batch_tokens."""

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

import bertie
from benchmarks.contenders.minilm import FOLDER, LIMIT
from benchmarks.contenders.protocol import serve
from benchmarks.contenders.torch_engine import own_engine, set_up


class WithBertie:
    def __init__(self) -> None:
        set_up()
        self.versions = {name: version(name) for name in ("bertie", "torch")}
        self.model = bertie.load(FOLDER)

    def embed(self, texts: Sequence[str], settings: dict[str, int]) -> np.ndarray:
        return self.model.encode_report(texts, progress=False, batch_tokens=settings["batch_tokens"]).vectors

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        assert self.model.tokenizer is not None
        return self.model.tokenizer.encode_ids(texts, max_length=LIMIT).lengths


if __name__ == "__main__":
    serve(WithBertie, own_engine)
