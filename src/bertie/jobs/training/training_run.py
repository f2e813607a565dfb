"""What the training jobs share: stopping, TensorBoard, and the run that they return."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bertie.errors import Interrupted
from bertie.jobs.loaded_model import LoadedModel, load
from bertie.jobs.result import Result
from bertie.reporting.events import Event, OnEvent, ignore, message
from bertie.train.folder.run_folder import MODEL, is_finished
from bertie.train.folder.tensorboard import TensorBoard
from bertie.train.run_events import format_figures
from bertie.train.stopping import Stopped

if TYPE_CHECKING:
    from bertie.jobs.finetuning.evaluate import Evaluation
    from bertie.jobs.finetuning.predict import Predictions


@contextmanager
def run_stoppable(folder: Path, tensorboard: bool, leads: bool, on_event: OnEvent) -> Iterator[OnEvent]:
    """Gives the `on_event` of a run. Only the leading process reports. A stopped run says how to continue."""
    was_finished = is_finished(folder)
    board = TensorBoard(folder) if tensorboard and leads else None

    report = on_event if leads else ignore
    try:
        if board is None:
            yield report
        else:
            with closing(board):
                yield partial(_report_both, report, board.on_event)
    except Stopped as stopped:
        what = f"Stopped after {stopped.step:,} steps; all is saved in {folder}. The same command, or call, continues."
        raise Interrupted(what if leads else "", stopped.exit_code) from None
    if was_finished:
        report(message(f"{folder} was finished before; nothing was trained"))


def _report_both(first: OnEvent, second: OnEvent, event: Event) -> None:
    first(event)
    second(event)


def output_folder(out: Path | None) -> tuple[Path, "TemporaryDirectory[str] | None"]:
    """The folder of a run; a temporary one, which lives as long as its object, where none is given."""
    if out is not None:
        return out, None
    temporary = TemporaryDirectory(prefix="bertie-run-")
    return Path(temporary.name) / "run", temporary


class TrainingRun(Result):
    """A finished run: its folder, its summary, and the model that it ended in."""

    def __init__(
        self,
        folder: Path,
        summary: Mapping[str, Any],
        temporary: TemporaryDirectory[str] | None = None,
        device: str = "auto",
    ):
        self.folder, self.summary, self.device = folder, summary, device
        self._temporary = temporary  # lives as long as the run

    @cached_property
    def model(self) -> LoadedModel:
        return load(self.folder, device=self.device)

    @property
    def metrics(self) -> Mapping[str, float]:
        """The last evaluation on held-out data; empty where there was none."""
        return self.summary.get("evaluation") or {}

    def predict(self, rows: Any, **options: Any) -> "Predictions":
        """As `LoadedModel.predict`."""
        return self.model.predict(rows, **options)

    def evaluate(self, rows: Any, **options: Any) -> "Evaluation":
        """As `LoadedModel.evaluate`."""
        return self.model.evaluate(rows, **options)

    def encode(self, texts: str | Iterable[str], **options: Any) -> np.ndarray:
        """As `LoadedModel.encode`."""
        return self.model.encode(texts, **options)

    def fill(self, text: str, **options: Any) -> Any:
        """As `LoadedModel.fill`."""
        return self.model.fill(text, **options)

    def parts(self) -> Iterable[Any]:
        if "seeds" in self.summary:
            spread = [
                f"{name} {one['mean']:.4f} ± {one['deviation']:.4f}" for name, one in self.summary["spread"].items()
            ]
            best, count = self.summary["best_seed"], len(self.summary["seeds"])
            yield f"{self.folder / MODEL}: seed {best}, the best of {count}; {', '.join(spread)}"
            return
        measured = f"; held out: {format_figures(self.metrics)}" if self.metrics else ""
        tokens = f", {self.summary['tokens']:,} tokens" if "tokens" in self.summary else ""
        yield f"{self.folder / MODEL}: {self.summary['steps']:,} steps{tokens}{measured}"

    def to_json(self) -> Any:
        return {"model": str(self.folder / MODEL), **self.summary}
