"""Masked sentence pairs in one file for all contenders; nothing but numpy, as each has an environment of its own."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Instances:
    """Flat arrays: what stands in the rows, and what was masked in them."""

    lengths: np.ndarray  # [B]
    tokens: np.ndarray  # [T]
    segments: np.ndarray  # [T]
    partners: np.ndarray  # [B] 0: the true neighbour
    num_masked: np.ndarray  # [B]
    masked: np.ndarray  # [P] places in their rows
    targets: np.ndarray  # [P]

    @classmethod
    def read(cls, path: Path | str) -> "Instances":
        with np.load(path) as arrays:
            return cls(*(arrays[name] for name in cls.__dataclass_fields__))

    def write(self, path: Path) -> None:
        np.savez(path, **{name: getattr(self, name) for name in self.__dataclass_fields__})

    def rows(self) -> list[dict[str, np.ndarray]]:
        ends, places = np.cumsum(self.lengths)[:-1], np.cumsum(self.num_masked)[:-1]
        columns = {
            "tokens": np.split(self.tokens, ends),
            "segments": np.split(self.segments, ends),
            "masked": np.split(self.masked, places),
            "targets": np.split(self.targets, places),
            "partner": list(self.partners),
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
