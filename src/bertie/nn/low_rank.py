"""Low-rank adapters: linear layers of an encoder learn a small update beside their frozen weights.

W + (alpha / r) B A. Hu et al., 2021, section 4.1. Inputs of A and B have a dropout of their own. Queries, keys and
values are one matrix here: each of them has an A and a B for its third of the rows.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.devices import seeded
from bertie.errors import SpecError
from bertie.nn.attention.attention import Attention
from bertie.nn.dropout import Dropout
from bertie.nn.encoder import Encoder
from bertie.nn.feed_forward import Dense, Gated
from bertie.nn.products import Linear, linear
from bertie.spec import LARGEST, Spec

Target = Literal["query", "key", "value", "output", "up", "down"]
FEED_FORWARD: dict[str, tuple[Target, ...]] = {"up": ("up",), "down": ("down",)}
# Which layers of a part can be adapted, and what their rows are for, in equal shares.
ADAPTABLE: Mapping[type[nn.Module], Mapping[str, tuple[Target, ...]]] = {
    Attention: {"project": ("query", "key", "value"), "output": ("output",)},
    Dense: FEED_FORWARD,
    Gated: FEED_FORWARD,
}
Part = TypeVar("Part", bound=nn.Module)


class LowRankSpec(Spec):
    kind: Literal["low-rank"] = "low-rank"
    rank: int = Field(default=8, ge=1, le=LARGEST)
    alpha: float | None = Field(default=None, gt=0)  # None: twice the rank
    dropout: float = Field(default=0.0, ge=0, lt=1)
    on: tuple[Target, ...] = Field(default=("query", "value"), min_length=1)

    @property
    def scale(self) -> float:
        return (2 * self.rank if self.alpha is None else self.alpha) / self.rank

    def build(self, linear: nn.Linear, parts: Sequence[Target]) -> "Adapted":
        return Adapted(linear, parts, self)


class Update(nn.Module):
    """B A, to be added to some rows of a matrix. It is 0 at first."""

    def __init__(self, width: int, first: int, num_rows: int, rank: int):
        super().__init__()
        self.first, self.last = first, first + num_rows
        self.down = nn.Parameter(torch.empty(rank, width))  # A
        self.up = nn.Parameter(torch.zeros(num_rows, rank))  # B
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def up_of_all(self, num_rows: int) -> Tensor:
        """[num_rows, r] with zeros for the rows that are not its own."""
        return F.pad(self.up, (0, 0, self.first, num_rows - self.last))


class Adapted(nn.Module):
    """A frozen linear layer with updates for some of `parts`, the equal shares of its rows."""

    def __init__(self, base: nn.Linear, parts: Sequence[Target], spec: LowRankSpec):
        super().__init__()
        self.spec, self.parts = spec, tuple(parts)
        self.base = base.requires_grad_(False)
        share = base.out_features // len(parts)
        updates: dict[str, nn.Module] = {
            part: Update(base.in_features, number * share, share, spec.rank)
            for number, part in enumerate(parts)
            if part in spec.on
        }
        self.updates = nn.ModuleDict(updates)
        self.dropout = Dropout(spec.dropout)

    def forward(self, states: Tensor) -> Tensor:
        low = [linear(self.dropout(states), update.down) for update in self._updates()]
        return self.base(states) + linear(torch.cat(low, -1), self.spec.scale * self._up())

    @property
    def weight(self) -> Tensor:
        """[out, in] with all updates, for code that needs the matrix itself, without dropout."""
        down = torch.cat([update.down for update in self._updates()])
        return self.base.weight + self.spec.scale * (self._up() @ down)

    @property
    def bias(self) -> Tensor | None:
        return self.base.bias

    def factors(self, num_shares: int) -> list[tuple[Tensor, Tensor] | None]:
        """A and B of equal shares of the rows, None where there is no update: as many as there are parts, or one share,
        whose rank is then the sum of all."""
        if num_shares == len(self.parts):
            found = {part: (update.down, update.up) for part, update in zip(self.updates, self._updates(), strict=True)}
            return [found.get(part) for part in self.parts]
        assert num_shares == 1
        return [(torch.cat([update.down for update in self._updates()]), self._up())]

    def merged(self) -> nn.Linear:
        """The linear layer that computes the same."""
        linear = Linear(self.base.in_features, self.base.out_features, self.base.bias is not None, device="meta")
        linear.weight = nn.Parameter(self.weight.detach())
        linear.bias = self.base.bias
        return linear

    def _updates(self) -> list[Update]:
        return cast(list[Update], list(self.updates.values()))

    def _up(self) -> Tensor:
        """[out, sum of ranks]"""
        return torch.cat([update.up_of_all(self.base.out_features) for update in self._updates()], 1)


def adapt(encoder: Encoder, spec: LowRankSpec, seed: int = 0) -> None:
    """Freezes embeddings and layers, and adds updates to what `spec` names; a pooler still learns as a whole.
    Layers that share their weights share the updates."""
    found = [
        (part, name, parts)
        for part in encoder.stack.modules()
        for name, parts in ADAPTABLE.get(type(part), {}).items()
        if set(parts) & set(spec.on)
    ]
    known = {target for _, _, parts in found for target in parts}
    if missing := [target for target in spec.on if target not in known]:
        raise SpecError(f"the layers of this model have no {missing[0]} that could be adapted")
    encoder.embeddings.requires_grad_(False)
    encoder.stack.requires_grad_(False)
    with seeded(seed):
        for part, name, parts in found:
            setattr(part, name, spec.build(getattr(part, name), parts))


def is_adapted(model: nn.Module) -> bool:
    return any(isinstance(part, Adapted) for part in model.modules())


def merged(model: Part) -> Part:
    """A copy whose updates are part of its weights; the model itself where it has none."""
    if not is_adapted(model):
        return model
    plain = copy.deepcopy(model)
    for part in list(plain.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, Adapted):
                setattr(part, name, child.merged())
    return plain.requires_grad_(True)
