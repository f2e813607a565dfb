"""TensorBoard beside the log: records of a run enter, event files in RUN/tensorboard leave.

Without the package `tensorboard` nothing is written and nothing is said: log.jsonl has it all.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertie.train.log import BEGINNINGS

FOLDER = "tensorboard"
GROUPS = {"step": "training", "evaluation": "held out"}  # events that have figures, and what theirs are called
PLACES = {"step", "time"}  # where a figure belongs, not figures


class TensorBoard:
    """Give `tell` to the run, and `close` it afterwards."""

    def __init__(self, folder: Path):
        self.folder = folder / FOLDER
        self._writer: Any = None

    def tell(self, record: Mapping[str, Any]) -> None:
        event = record["event"]
        if event in BEGINNINGS:
            self._open(record["step"])
        elif self._writer is None:
            return
        elif event in GROUPS:
            for name, value in record.items():
                if name not in PLACES and isinstance(value, int | float) and math.isfinite(value):
                    self._writer.add_scalar(f"{GROUPS[event]}/{name}", value, record["step"])
        elif event == "saved":
            self._writer.flush()  # a run that is killed goes on from here, and does not write these again

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self, step: int) -> None:
        """What was written of later steps, before a kill, is taken back."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self.close()
        self._writer = SummaryWriter(str(self.folder), purge_step=step + 1)
