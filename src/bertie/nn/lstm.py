"""LSTM: a mixer that reads rows token by token, in one direction or both. Hochreiter and Schmidhuber, 1997."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bertie.batch import Ragged
from bertie.devices import copied
from bertie.errors import SpecError
from bertie.nn.layout import Layout
from bertie.nn.memory import LayerMemory
from bertie.spec import Spec

KEPT = ("hidden", "cell")


class LSTM(nn.Module):
    """With both directions, each gives half of the width. What follows the next call is unknown, so only the forward
    direction is remembered: its `hidden` and `cell` states [B, H] at the end of each row."""

    def __init__(self, width: int, both_ways: bool, entering: int | None = None):
        """`entering` is the width of the input, where it differs from that of the output."""
        super().__init__()
        outer, inner = entering or width, width // 2 if both_ways else width
        self.ahead = nn.LSTM(outer, inner, batch_first=True)
        self.back = nn.LSTM(outer, inner, batch_first=True) if both_ways else None

    def forward(
        self, query_states: Tensor, key_states: Tensor, layout: Layout, memory: LayerMemory | None = None
    ) -> tuple[Tensor, LayerMemory | None]:
        assert query_states is key_states
        rows = layout.query.rows.with_values(key_states)
        ahead, kept = _read(self.ahead, rows, memory)
        if self.back is None:
            return ahead, kept
        turned = rows.starts[rows.row_ids] + rows.lengths_here[rows.row_ids] - 1 - rows.positions  # its own inverse
        back, _ = _read(self.back, rows.with_values(key_states[turned]), None)
        return torch.cat([ahead, back[turned]], -1), kept


def _read(lstm: nn.LSTM, rows: Ragged, memory: LayerMemory | None) -> tuple[Tensor, LayerMemory]:
    lengths, order = torch.sort(rows.lengths, descending=True)  # here, as torch would ask the device for the order
    longest_first, as_given = (copied(one, rows.device) for one in (order, torch.argsort(order)))
    packed = pack_padded_sequence(rows.pad().index_select(0, longest_first), lengths, batch_first=True)
    begun = None
    if memory is not None:
        begun = tuple(memory[name].index_select(0, longest_first)[None] for name in KEPT)  # type: ignore[union-attr]
    output, ends = lstm(packed, begun)
    rectangle, _ = pad_packed_sequence(output, batch_first=True)
    kept = {name: end.detach()[0].index_select(0, as_given) for name, end in zip(KEPT, ends, strict=True)}
    return rows.unpad(rectangle.index_select(0, as_given)).values, kept


class LSTMSpec(Spec):
    kind: Literal["lstm"] = "lstm"
    both_ways: bool = True

    def build(self, width: int, entering: int | None = None) -> LSTM:
        if self.both_ways and width % 2:
            raise SpecError(f"a width of {width} cannot be split into two directions")
        return LSTM(width, self.both_ways, entering)
