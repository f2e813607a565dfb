"""What the layers of a stack keep of each row for the segment that continues it.

A memory travels: a step returns it, the next step takes it, checkpoints save it. It is not a cache of keys and values,
which a decoder holds only while it generates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertie.batch import Field, Ragged

LayerMemory = Mapping[str, Field]
"""What one mixer keeps, by name: for each row one tensor [B, ...], or several values (Ragged)."""


@dataclass(frozen=True)
class Memory:
    layers: tuple[LayerMemory | None, ...]  # None where a layer keeps nothing

    @property
    def num_rows(self) -> int:
        field = next(field for layer in self.layers if layer is not None for field in layer.values())
        return field.num_rows if isinstance(field, Ragged) else len(field)

    def rows(self, numbers: Iterable[int]) -> "Memory":
        """The memory of these rows, in this order."""
        chosen = list(numbers)

        def pick(field: Field) -> Field:
            if not isinstance(field, Ragged):
                return field[chosen]
            rows = field.rows()
            return Ragged(torch.cat([rows[row] for row in chosen]), field.lengths[chosen])

        return self._map(pick)

    def detach(self) -> "Memory":
        return self._map(
            lambda field: field.with_values(field.values.detach()) if isinstance(field, Ragged) else field.detach()
        )

    def to(self, device: torch.device) -> "Memory":
        return self._map(lambda field: field.to(device))

    @staticmethod
    def join(parts: Sequence["Memory"]) -> "Memory":
        """The rows of all parts, one after another."""
        layers = zip(*(part.layers for part in parts), strict=True)
        return Memory(tuple(None if same[0] is None else _join(same) for same in layers))

    def tensors(self) -> dict[str, Tensor]:
        """Plain tensors to save; `Memory.restored` takes them back."""
        found = {"num_layers": torch.tensor(len(self.layers))}
        for number, layer in enumerate(self.layers):
            for name, field in (layer or {}).items():
                if isinstance(field, Ragged):
                    found[f"{number}.{name}.values"] = field.values
                    found[f"{number}.{name}.lengths"] = field.lengths
                else:
                    found[f"{number}.{name}"] = field
        return found

    @staticmethod
    def restored(tensors: Mapping[str, Tensor]) -> "Memory":
        layers: list[dict[str, Field]] = [{} for _ in range(int(tensors["num_layers"]))]
        for key, tensor in tensors.items():
            number, _, name = key.partition(".")
            if name.endswith(".values"):
                name = name.removesuffix(".values")
                layers[int(number)][name] = Ragged(tensor, tensors[f"{number}.{name}.lengths"])
            elif name and not name.endswith(".lengths"):
                layers[int(number)][name] = tensor
        return Memory(tuple(layer or None for layer in layers))

    def _map(self, change: Callable[[Field], Field]) -> "Memory":
        return Memory(
            tuple(
                None if layer is None else {name: change(field) for name, field in layer.items()}
                for layer in self.layers
            )
        )


def _join(parts: Sequence[LayerMemory]) -> LayerMemory:
    joined: dict[str, Field] = {}
    for name, first in parts[0].items():
        fields = [part[name] for part in parts]
        if isinstance(first, Ragged):
            joined[name] = Ragged.of([row for field in fields for row in field.rows()])  # type: ignore[union-attr]
        else:
            joined[name] = torch.cat(fields)  # type: ignore[arg-type]
    return joined
