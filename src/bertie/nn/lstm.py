"""LSTM: a mixer that reads rows token by token, one way or both. Hochreiter and Schmidhuber, 1997."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.attention import Memory
from bertie.nn.layout import Layout
from bertie.spec import Spec


@dataclass(frozen=True)
class Reading:
    """Where the forward reading stopped in each row."""

    hidden: Tensor  # [1, B, H]
    cell: Tensor


class LSTM(nn.Module):
    """Read both ways, each direction gives half of the width. What lies ahead of the next call is unknown, so only the
    forward reading is remembered."""

    def __init__(self, width: int, both_ways: bool, entering: int | None = None):
        """`entering` is the width of what enters, where it is not that of what leaves."""
        super().__init__()
        outer, inner = entering or width, width // 2 if both_ways else width
        self.ahead = nn.LSTM(outer, inner, batch_first=True)
        self.back = nn.LSTM(outer, inner, batch_first=True) if both_ways else None

    def forward(
        self, query_states: Tensor, key_states: Tensor, layout: Layout, memory: Memory | None = None
    ) -> tuple[Tensor, Memory | None]:
        assert query_states is key_states and (memory is None or isinstance(memory, Reading))
        rows = layout.query.rows.with_values(key_states)
        ahead, kept = _read(self.ahead, rows, memory)
        if self.back is None:
            return ahead, kept
        turned = rows.starts[rows.row_ids] + rows.lengths[rows.row_ids] - 1 - rows.positions  # its own inverse
        back, _ = _read(self.back, rows.with_values(key_states[turned]), None)
        return torch.cat([ahead, back[turned]], -1), kept


def _read(lstm: nn.LSTM, rows: Ragged, memory: Reading | None) -> tuple[Tensor, Reading]:
    packed = pack_padded_sequence(rows.pad(), rows.lengths.cpu(), batch_first=True, enforce_sorted=False)
    output, (hidden, cell) = lstm(packed, None if memory is None else (memory.hidden, memory.cell))
    rectangle, _ = pad_packed_sequence(output, batch_first=True)
    return rows.unpad(rectangle).values, Reading(hidden.detach(), cell.detach())


class LSTMSpec(Spec):
    kind: Literal["lstm"] = "lstm"
    both_ways: bool = True

    def build(self, width: int, entering: int | None = None) -> LSTM:
        if self.both_ways and width % 2:
            raise SpecError(f"a width of {width} cannot be split into two directions")
        return LSTM(width, self.both_ways, entering)
