"""A contender for tests: counts words, prints where it should not, and dies when asked to embed the word `die`."""

import os
from collections.abc import Sequence

import numpy as np
from benchmarks.contenders.protocol import serve


class Loud:
    def __init__(self) -> None:
        self.versions = {"loud": "1"}

    def embed(self, texts: Sequence[str], settings: dict[str, int]) -> np.ndarray:
        print("noise on stdout", flush=True)  # noqa: T201
        if "die" in texts:
            os.write(2, b"it hurts\n")
            os._exit(3)
        return np.full((len(texts), settings["width"]), len(texts), np.float32)

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text.split()) for text in texts])


if __name__ == "__main__":
    serve(Loud)
