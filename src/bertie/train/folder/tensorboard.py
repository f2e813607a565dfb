"""Writes the figures of a run for TensorBoard, into RUN/tensorboard.

Without the package `tensorboard` nothing is written, and there is no message: log.jsonl has everything.
"""

import math
from pathlib import Path
from typing import Any

from bertie.reporting.events import Event
from bertie.train.folder.log import BEGINNINGS

FOLDER = "tensorboard"
GROUPS = {"step": "training", "evaluation": "held out"}  # events that have figures, and their heading
PLACES = {"step", "time"}  # where a figure belongs, not figures


class TensorBoard:
    """Give `on_event` to the run, and `close` it afterwards."""

    def __init__(self, folder: Path):
        self.folder = folder / FOLDER
        self._writer: Any = None

    def on_event(self, event: Event) -> None:
        record = event.data
        if event.kind in BEGINNINGS:
            self._open(record["step"])
        elif self._writer is None:
            return
        elif event.kind in GROUPS:
            for name, value in record.items():
                if name not in PLACES and isinstance(value, int | float) and math.isfinite(value):
                    self._writer.add_scalar(f"{GROUPS[event.kind]}/{name}", value, record["step"])
        elif event.kind == "saved":
            self._writer.flush()  # a run that is killed continues from here, and does not write these again

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self, step: int) -> None:
        """Figures of later steps, written before a kill, are removed."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self.close()
        self._writer = SummaryWriter(str(self.folder), purge_step=step + 1)
