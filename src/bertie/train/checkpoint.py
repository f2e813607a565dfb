"""Checkpoints: the state of a run enters and leaves, through folders that are there whole or not at all.

`checkpoints/step-00000200` is the state after 200 steps: weights, the optimiser's memory and a few facts, with the
checksums of all three in the manner of `sha256sum`. A folder that fails them is passed over for the one before it.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertie.data.manifest import sha256_of, sync_folder
from bertie.errors import FolderError
from bertie.models.filling import kept_tensors
from bertie.models.model import Model
from bertie.train.optimiser import set_state_tensors, state_tensors

PREFIX, PART = "step-", ".part-"
WEIGHTS, OPTIMISER, STATE, SUMS = "weights.safetensors", "optimiser.safetensors", "state.json", "SHA256SUMS"


@dataclass(frozen=True)
class Restored:
    """Where a run goes on. `step` is the number of steps done."""

    step: int
    facts: dict[str, Any]
    damaged: tuple[str, ...] = ()  # newer checkpoints that could not be used, with why


@dataclass
class Checkpoints:
    """The checkpoints of a run: the last `keep` of them, and the one that was best on held-out text."""

    folder: Path
    keep: int = 2
    best: int | None = field(default=None)  # its step

    def steps(self) -> list[int]:
        """Those there are, oldest first."""
        names = [path.name.removeprefix(PREFIX) for path in self.folder.glob(f"{PREFIX}*")]
        return sorted(int(name) for name in names if name.isdigit())

    def path(self, step: int) -> Path:
        return self.folder / f"{PREFIX}{step:08d}"

    def save(self, step: int, model: Model, optimiser: torch.optim.Optimizer, facts: Mapping[str, Any]) -> Path:
        """The state after `step` steps. When this returns, a power cut cannot take it away."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        part = self.folder / f"{PART}{step:08d}"
        part.mkdir()
        try:
            _write_tensors(part / WEIGHTS, changing_tensors(model))
            _write_tensors(part / OPTIMISER, state_tensors(model, optimiser))
            _write_text(part / STATE, json.dumps({"step": step, **facts}, indent=1) + "\n")
            sums = "".join(f"{sha256_of(part / name)}  {name}\n" for name in (WEIGHTS, OPTIMISER, STATE))
            _write_text(part / SUMS, sums)
            sync_folder(part)
            target = self.path(step)
            if target.exists():  # a damaged one, or the same state again
                shutil.rmtree(target)
            part.rename(target)
            sync_folder(self.folder)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(part, ignore_errors=True)
            reason = getattr(error, "strerror", None) or error
            hint = "the checkpoints before it are untouched; mend that and run the same command: it continues"
            raise FolderError(
                f"the checkpoint cannot be written ({reason})", where=str(self.folder), hint=hint
            ) from None
        self._prune(step)
        return target

    def restore(self, model: Model, optimiser: torch.optim.Optimizer, before: int | None = None) -> Restored | None:
        """Puts the newest whole checkpoint, of those before a step, into model and optimiser; None where none is."""
        damaged: list[str] = []
        steps = [step for step in self.steps() if before is None or step < before]
        for step in reversed(steps):
            path = self.path(step)
            if fault := find_fault(path):
                damaged.append(f"{path.name}: {fault}")
                continue
            facts = json.loads((path / STATE).read_text("utf-8"))
            _fill(model, load_file(path / WEIGHTS), path)
            set_state_tensors(model, optimiser, load_file(path / OPTIMISER))
            return Restored(step, facts, tuple(damaged))
        if damaged:
            hint = "restore one from a copy, or begin anew in another folder"
            raise FolderError(f"every checkpoint is damaged ({'; '.join(damaged)})", where=str(self.folder), hint=hint)
        return None

    def load_weights(self, step: int, model: Model) -> None:
        """Those of one checkpoint, without what the optimiser remembers."""
        _fill(model, load_file(self.path(step) / WEIGHTS), self.path(step))

    def _prune(self, newest: int) -> None:
        steps = self.steps()
        usable = [step for step in steps if step <= newest]
        # One from a later step was damaged, or the run would have gone on from there.
        for step in set(steps) - {*usable[-self.keep :], self.best}:
            # Its name goes first, so that a kill in between leaves no half of a checkpoint.
            part = self.folder / f"{PART}{step:08d}"
            self.path(step).rename(part)
            shutil.rmtree(part)

    def _sweep(self) -> None:
        """What a kill left behind."""
        for path in self.folder.glob(f"{PART}*"):
            shutil.rmtree(path)


def find_fault(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint's bytes; None where nothing is."""
    try:
        lines = (checkpoint / SUMS).read_text("utf-8").splitlines()
        sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        if set(sums) != {WEIGHTS, OPTIMISER, STATE}:
            return f"{SUMS} is not whole"
        changed = [name for name, digest in sums.items() if sha256_of(checkpoint / name) != digest]
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot be read ({error})"
    return f"the bytes of {changed[0]} were changed" if changed else None


def changing_tensors(model: Model) -> dict[str, Tensor]:
    """Without those that never learn: a run that goes on begins with the same ones."""
    frozen = tuple(f"encoder.{begin}" for begin in model.encoder.frozen)
    return {name: tensor for name, tensor in kept_tensors(model).items() if not name.startswith(frozen)}


def _fill(model: Model, tensors: dict[str, Tensor], where: Path) -> None:
    kept = changing_tensors(model)
    shapes, found = ({name: tensor.shape for name, tensor in table.items()} for table in (kept, tensors))
    if shapes != found:
        wrong = min(name for name in {*shapes, *found} if shapes.get(name) != found.get(name))
        told = " and ".join(str(list(one[wrong])) if wrong in one else "absent" for one in (found, shapes))
        raise FolderError(f"{wrong} differs between the checkpoint and the model ({told})", where=str(where))
    with torch.no_grad():
        for name, tensor in kept.items():
            tensor.copy_(tensors[name])


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
