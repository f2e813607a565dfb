"""Tensors of a file into a model: what the file lacks, holds in vain, or holds in another shape is reported.

Names are told in the file's own spelling.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from bertie.models.layouts.layout import Entry, HFLayout


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
        told = {"missing": self.missing, "of another shape": self.mis_shaped, "unused": self.unused}
        parts = [f"{len(names)} {what}: {_some(names)}" for what, names in told.items() if names]
        return "; ".join(parts) or "every tensor was used"


@dataclass(frozen=True)
class FoundTensors:
    """A file's tensors by canonical name, with the spelling that the file uses."""

    tensors: Mapping[str, Tensor]
    spelling: Mapping[str, str]
    doubled: tuple[str, ...] = ()  # further spellings of a name that is there already

    def joined(self, place: str, other: "FoundTensors") -> "FoundTensors":
        """With another file's tensors, whose names begin with its place."""
        return FoundTensors(
            {**self.tensors, **{f"{place}/{name}": tensor for name, tensor in other.tensors.items()}},
            {**self.spelling, **{f"{place}/{name}": f"{place}/{told}" for name, told in other.spelling.items()}},
            (*self.doubled, *(f"{place}/{name}" for name in other.doubled)),
        )

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], layout: HFLayout | None) -> "FoundTensors":
        found: dict[str, Tensor] = {}
        spelling: dict[str, str] = {}
        doubled = []
        for name, tensor in tensors.items():
            canonical = layout.canonical(name) if layout else name
            if canonical in found:
                doubled.append(name)
            else:
                found[canonical], spelling[canonical] = tensor, name
        return cls(found, spelling, tuple(doubled))


def kept_tensors(model: nn.Module) -> dict[str, Tensor]:
    """What is saved: parameters, tied ones once, and those buffers that ask for it."""
    names = set(model.state_dict())
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in names}
    return {**dict(model.named_parameters()), **buffers}


def fill(
    model: nn.Module, entries: list[Entry], found: FoundTensors, is_ignored: Callable[[str], bool] = lambda name: False
) -> LoadReport:
    """Give the model its tensors where all are there and fit; else change nothing."""
    kept = kept_tensors(model)
    wanted = {name: (entry, kept[entry.ours]) for entry in entries for name in entry.theirs}
    missing = [name for name in wanted if name not in found.tensors]
    mis_shaped = []
    for name, (entry, target) in wanted.items():
        if name not in found.tensors:
            continue
        tensor, needed = found.tensors[name], entry.part_shape(target.shape)
        if tensor.shape != needed:
            told = f"is {list(tensor.shape)}, the model needs {list(needed)}"
            mis_shaped.append(f"{found.spelling[name]} {told}")
        elif tensor.is_floating_point() != target.is_floating_point():
            mis_shaped.append(f"{found.spelling[name]} holds {tensor.dtype}, the model needs {target.dtype}")
    idle = [name for name in found.tensors if name not in wanted and not is_ignored(name)]
    unused = sorted([found.spelling[name] for name in idle] + list(found.doubled))
    if not missing and not mis_shaped:
        joined = {
            kept[entry.ours]: entry.join(
                [found.tensors[name] for name in entry.theirs], kept[entry.ours].shape
            ).contiguous()
            for entry in entries
        }
        _assign(model, joined)
    return LoadReport(tuple(missing), tuple(unused), tuple(mis_shaped))


def _assign(model: nn.Module, values: dict[Tensor, Tensor]) -> None:
    """Every place that holds an old tensor gets the new one, so that what was tied stays tied."""
    weights = {
        old: nn.Parameter(new, requires_grad=old.requires_grad)
        for old, new in values.items()
        if isinstance(old, nn.Parameter)
    }
    for part in model.modules():
        for name, parameter in list(part._parameters.items()):
            if parameter is not None:
                part._parameters[name] = weights[parameter]
        for name, buffer in list(part._buffers.items()):
            if buffer is not None and buffer in values:
                part._buffers[name] = values[buffer]


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
