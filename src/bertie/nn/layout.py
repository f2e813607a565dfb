"""Which queries and keys belong together: rows, facts about their tokens, and the visibility between them.

Built from a batch's fields; mixers and scorers read lengths, runs of equal rows, and facts in broadcastable shape.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from bertie.batch import Batch, Ragged
from bertie.errors import InputError
from bertie.nn.attention.row_runs import Run, plan_runs
from bertie.nn.visibility import Full, Visibility


@dataclass(frozen=True)
class Side:
    """One side of attention: its rows, and what is known of each token."""

    rows: Ragged  # [T] positions in the row; also tells the lengths
    fields: Mapping[str, Ragged] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: Batch, name: str = "tokens") -> "Side":
        """The side that a field of a batch forms; the batch's other fields are facts about its tokens."""
        tokens = batch.ragged(name)
        facts = {key: value for key, value in batch.fields.items() if isinstance(value, Ragged)}
        return cls(tokens.numbered(), facts)

    def after(self, memory: Ragged) -> "Side":
        """The same tokens behind remembered ones, whose positions count backwards from -1; every other fact is -1."""
        old = memory.layout
        remembered = old.with_values(old.positions - old.lengths[old.row_ids])
        unknown = remembered.with_values(torch.full_like(remembered.values, -1)).to(memory.device)
        own = {name: facts for name, facts in self.fields.items() if self._describes(facts)}
        rows = remembered.join(self.rows.host).to(memory.device)
        return Side(rows, {name: unknown.join(facts) for name, facts in own.items()})

    def fact(self, name: str) -> Tensor:
        """[B, L]"""
        if name == "positions":
            return self.rows.pad()
        if name not in self.fields:
            raise InputError(f"the batch has no field {name!r}, which the model's visibility asks for")
        if not self._describes(self.fields[name]):
            raise InputError(f"field {name!r} has rows of other lengths or shape than the tokens it describes")
        return self.fields[name].pad()

    def _describes(self, facts: Ragged) -> bool:
        return facts.values.dim() == 1 and facts.sizes == self.rows.sizes


class _Shaped:
    """A side's facts, shaped as queries [B, 1, L, 1] or as keys [B, 1, 1, L]."""

    def __init__(self, side: Side, axis: int):
        self.side, self.axis = side, axis

    def __getitem__(self, name: str) -> Tensor:
        return self.side.fact(name).unsqueeze(1).unsqueeze(self.axis)


@dataclass(frozen=True)
class Layout:
    """Queries, keys, and who may see whom. `observed` collects attention weights [B, N, Lq, Lk] where it is a list."""

    query: Side
    key: Side
    visibility: Visibility = field(default_factory=Full)
    observed: list[Tensor] | None = None

    @classmethod
    def within(cls, side: Side) -> "Layout":
        """Tokens that attend to each other."""
        return cls(side, side)

    def seen_by(self, visibility: Visibility) -> "Layout":
        """The same layout, further restricted."""
        return self if isinstance(visibility, Full) else replace(self, visibility=self.visibility & visibility)

    def across(self, key: Side) -> "Layout":
        """The same queries looking at another side, all of it (cross attention), unobserved."""
        return replace(self, key=key, visibility=Full(), observed=None)

    def behind(self, memory: Ragged) -> "Layout":
        """The same queries, with remembered tokens before the keys."""
        return replace(self, key=self.key.after(memory))

    @cached_property
    def allowed(self) -> Tensor:
        """[B, N or 1, Lq, Lk], True where the key exists and may be seen."""
        exists = self.key.rows.with_values(self.key.rows.values >= self.key.rows.values).pad()
        return exists[:, None, None, :] & self.visibility.allows(_Shaped(self.query, -1), _Shaped(self.key, -2))

    @cached_property
    def runs(self) -> list[Run]:
        """Neighbouring rows to be taken together."""
        return plan_runs(self.query.rows, self.key.rows)
