"""Saves and restores the state of a run, in folders that are there whole or not at all.

`checkpoints/step-00000200` is the state after 200 steps: weights, the optimizer's state, the memory of rows that
continue, and a few facts, with the checksums of all files in the format of `sha256sum`. A folder that fails them is
skipped for the one before it.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertie.devices import device_of
from bertie.disk import sha256_of, sync_file, sync_folder, write_failure
from bertie.errors import FolderError
from bertie.models.filling import kept_tensors
from bertie.models.model import Model
from bertie.nn.memory import Memory
from bertie.train.learning.optimizer import Optimizer

PREFIX, PART = "step-", ".part-"
WEIGHTS, OPTIMIZER, STATE, SUMS = "weights.safetensors", "optimizer.safetensors", "state.json", "SHA256SUMS"
MEMORY = "memory.safetensors"  # only where rows continue from step to step


@dataclass(frozen=True)
class Restored:
    """Where a run continues. `step` is the number of steps done."""

    step: int
    facts: dict[str, Any]
    memory: Memory | None = None
    damaged: tuple[str, ...] = ()  # newer checkpoints that could not be used, and why


@dataclass
class Checkpoints:
    """The checkpoints of a run: the last `keep` of them, and the one that was best on held-out text."""

    folder: Path
    keep: int = 2
    best: int | None = field(default=None)  # its step

    def steps(self) -> list[int]:
        """The steps that have one, in order."""
        names = [path.name.removeprefix(PREFIX) for path in self.folder.glob(f"{PREFIX}*")]
        return sorted(int(name) for name in names if name.isdigit())

    def path(self, step: int) -> Path:
        return self.folder / f"{PREFIX}{step:08d}"

    def save(
        self, step: int, model: Model, optimizer: Optimizer, facts: Mapping[str, Any], memory: Memory | None = None
    ) -> Path:
        """Saves the state after `step` steps. When this returns, it is safe from a power cut."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for left_by_a_kill in self.folder.glob(f"{PART}*"):
            shutil.rmtree(left_by_a_kill)
        part, target = self.folder / f"{PART}{step:08d}", self.path(step)
        part.mkdir()
        tables = {WEIGHTS: changing_tensors(model), OPTIMIZER: optimizer.state_tensors(model)}
        if memory is not None:
            tables[MEMORY] = memory.tensors()
        try:
            for name, tensors in tables.items():
                plain = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
                save_file(plain, part / name)
            (part / STATE).write_text(json.dumps({"step": step, **facts}, indent=1) + "\n", encoding="utf-8")
            sums = "".join(f"{sha256_of(part / name)}  {name}\n" for name in (*tables, STATE))
            (part / SUMS).write_text(sums, encoding="utf-8")
            for path in part.iterdir():
                with path.open("rb") as file:
                    sync_file(file)
            sync_folder(part)
            if target.exists():  # a damaged one, or the same state again
                shutil.rmtree(target)
            part.rename(target)
            sync_folder(self.folder)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(part, ignore_errors=True)
            raise write_failure(error, target, "run it again: it continues from the checkpoint before this") from None
        steps = self.steps()
        usable = [one for one in steps if one <= step]  # one from a later step was damaged, or the run would be there
        for old in set(steps) - {*usable[-self.keep :], self.best}:
            # It is renamed first, so that a kill in between leaves no half of a checkpoint.
            part = self.folder / f"{PART}{old:08d}"
            self.path(old).rename(part)
            shutil.rmtree(part)
        return target

    def restore(self, model: Model, optimizer: Optimizer, before: int | None = None) -> Restored | None:
        """Loads the newest whole checkpoint, of those before a step, into model and optimizer, on whatever device they
        are; None without one."""
        damaged: list[str] = []
        steps = [step for step in self.steps() if before is None or step < before]
        for step in reversed(steps):
            path = self.path(step)
            if fault := find_fault(path):
                damaged.append(f"{path.name}: {fault}")
                continue
            facts = json.loads((path / STATE).read_text("utf-8"))
            self.load_weights(step, model)
            optimizer.set_state_tensors(model, load_file(path / OPTIMIZER))
            memory = None
            if (path / MEMORY).exists():
                memory = Memory.restored(load_file(path / MEMORY)).to(device_of(model))
            return Restored(step, facts, memory, tuple(damaged))
        if damaged:
            hint = "restore one from a copy, or start over in another folder"
            raise FolderError(f"every checkpoint is damaged ({'; '.join(damaged)})", where=str(self.folder), hint=hint)
        return None

    def load_weights(self, step: int, model: Model) -> None:
        """Loads the weights of one checkpoint, without the optimizer's state."""
        tensors, kept = load_file(self.path(step) / WEIGHTS), changing_tensors(model)
        shapes, found = ({name: tensor.shape for name, tensor in table.items()} for table in (kept, tensors))
        if shapes != found:
            wrong = min(name for name in {*shapes, *found} if shapes.get(name) != found.get(name))
            both = " and ".join(str(list(one[wrong])) if wrong in one else "absent" for one in (found, shapes))
            what = f"{wrong} differs between the checkpoint and the model ({both})"
            raise FolderError(what, where=str(self.path(step)))
        with torch.no_grad():
            for name, tensor in kept.items():
                tensor.copy_(tensors[name])


def find_fault(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint's bytes; None where nothing is."""
    try:
        lines = (checkpoint / SUMS).read_text("utf-8").splitlines()
        sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        if sums.keys() - {MEMORY} != {WEIGHTS, OPTIMIZER, STATE} or (checkpoint / MEMORY).exists() != (MEMORY in sums):
            return f"{SUMS} is not whole"
        changed = [name for name, digest in sums.items() if sha256_of(checkpoint / name) != digest]
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot be read ({error})"
    return f"the bytes of {changed[0]} were changed" if changed else None


def changing_tensors(model: Model) -> dict[str, Tensor]:
    """All tensors but those that never learn: a run that continues starts with the same ones."""
    frozen = tuple(f"encoder.{begin}" for begin in model.encoder.frozen)
    return {name: tensor for name, tensor in kept_tensors(model).items() if not name.startswith(frozen)}
