"""Puts the tensors of a file into a model, and reports those that are missing, unused or of the wrong shape.

Reports spell names as the file does.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from bertie.models.folder.weights import check_finite
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Entry


@dataclass(frozen=True)
class LoadReport:
    """What did not fit between a weight file and the model."""

    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    mis_shaped: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.missing or self.unused or self.mis_shaped)

    def __str__(self) -> str:
        found = {"missing": self.missing, "of another shape": self.mis_shaped, "unused": self.unused}
        parts = [
            f"{len(names)} {what}: {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}"
            for what, names in found.items()
            if names
        ]
        return "; ".join(parts) or "every tensor was used"


@dataclass
class FoundTensors:
    """Tensors of files by canonical name, with the spelling that a file uses."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    spelling: dict[str, str] = field(default_factory=dict)
    doubled: list[str] = field(default_factory=list)  # further spellings of a name that is there already

    def add(self, tensors: Mapping[str, Tensor], layout: HFLayout | None, place: str = "") -> None:
        """Adds the tensors of a file. Names start with its `place`, unless it is the main file."""
        for spelled, tensor in tensors.items():
            name = layout.canonical(spelled) if layout else spelled
            name, spelled = (f"{place}/{name}", f"{place}/{spelled}") if place else (name, spelled)
            if name in self.tensors:
                self.doubled.append(spelled)
            else:
                self.tensors[name], self.spelling[name] = tensor, spelled


def kept_tensors(model: nn.Module) -> dict[str, Tensor]:
    """What is saved: parameters, tied ones once, and the buffers that are part of the state."""
    names = set(model.state_dict())
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in names}
    return {**dict(model.named_parameters()), **buffers}


def compare(model: nn.Module, entries: list[Entry], found: FoundTensors, ignored: Collection[str] = ()) -> LoadReport:
    """Compares shapes alone, so that the model may be on torch's meta device and take no memory."""
    kept = kept_tensors(model)
    needed = {name: (entry, kept[entry.ours]) for entry in entries for name in entry.theirs}
    missing = tuple(name for name in needed if name not in found.tensors)
    mis_shaped = []
    for name, (entry, target) in needed.items():
        tensor = found.tensors.get(name)
        if tensor is None:
            continue
        parts, whole = len(entry.theirs), target.shape
        shape = torch.Size(entry.shape or (whole if parts == 1 else (whole[0] // parts, *whole[1:])))
        if tensor.shape != shape:
            mis_shaped.append(f"{found.spelling[name]} is {list(tensor.shape)}, the model needs {list(shape)}")
        elif tensor.is_floating_point() != target.is_floating_point():
            mis_shaped.append(f"{found.spelling[name]} holds {tensor.dtype}, the model needs {target.dtype}")
    unused = [found.spelling[name] for name in found.tensors if name not in needed and name not in ignored]
    return LoadReport(missing, tuple(sorted(unused + found.doubled)), tuple(mis_shaped))


def fill(model: nn.Module, entries: list[Entry], found: FoundTensors, where: str) -> None:
    """Gives the model its tensors, which `compare` has found to fit."""
    kept = kept_tensors(model)
    values: dict[Tensor, Tensor] = {}
    for entry in entries:
        for name in entry.theirs:
            check_finite(found.spelling[name], found.tensors[name], where)
        old = kept[entry.ours]
        new = entry.join([found.tensors[name] for name in entry.theirs], old.shape).contiguous()
        values[old] = nn.Parameter(new, requires_grad=old.requires_grad) if isinstance(old, nn.Parameter) else new
    # Every place that holds an old tensor gets the new one, so that what was tied stays tied.
    for part in model.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = values[parameter]  # type: ignore[assignment]
        for name, buffer in part._buffers.items():
            if buffer is not None and buffer in values:
                part._buffers[name] = values[buffer]
