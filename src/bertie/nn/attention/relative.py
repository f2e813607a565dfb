"""Relative positions: a score is made of what a key holds and of how far away it is, each with a bias that all queries
share. Dai et al., 2019, section 3.3; the term for segments is of Yang et al., 2019, section 2.5."""

from typing import Literal

import torch
from torch import Tensor, nn

from bertie.errors import SpecError
from bertie.nn.attention.scoring import DotProduct, ScorerSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.products import Linear


class Relative(DotProduct):
    """((q + u).k + (q + v).R[distance] + (q + s).E[same segment or not]) / sqrt(D)"""

    def __init__(self, num_heads: int, head_width: int, segments: bool):
        super().__init__()
        width = num_heads * head_width
        self.distance = Linear(width, width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(num_heads, head_width))
        self.distance_bias = nn.Parameter(torch.zeros(num_heads, head_width))
        if segments:
            self.segment_bias = nn.Parameter(torch.zeros(num_heads, head_width))
            self.segment_keys = nn.Parameter(torch.randn(2, num_heads, head_width) * 0.02)
        self.segments = segments

    def forward(self, query: Tensor, key: Tensor, layout: Layout) -> Tensor:
        scores = (query + _each(self.content_bias)) @ key.transpose(-1, -2)  # [B, N, Lq, Lk]
        scores = scores + self._by_distance(query + _each(self.distance_bias), layout)
        if self.segments and "segments" in layout.query.fields:
            scores = scores + self._by_segment(query + _each(self.segment_bias), layout)
        return scores * query.shape[-1] ** -0.5

    def _by_distance(self, query: Tensor, layout: Layout) -> Tensor:
        distances = layout.query.fact("positions")[:, :, None] - layout.key.fact("positions")[:, None, :]
        if not distances.numel():
            return distances[:, None].to(query.dtype)
        rows = [side.rows.host.pad() for side in (layout.query, layout.key)]  # [B, L] each, known on the CPU
        least, most = (
            int(one) for one in ((rows[0].amin(1) - rows[1].amax(1)).min(), (rows[0].amax(1) - rows[1].amin(1)).max())
        )
        far = torch.arange(least, most + 1, device=query.device)
        table = self.distance(sinusoids(far, self.distance.in_features).to(query.dtype))
        table = table.unflatten(-1, query.shape[1:2] + query.shape[3:])  # [S, N, D]
        scores = torch.einsum("bnqd,snd->bnqs", query, table)
        return scores.gather(-1, (distances - least)[:, None].expand(-1, query.shape[1], -1, -1))

    def _by_segment(self, query: Tensor, layout: Layout) -> Tensor:
        differs = _segments(layout.query)[:, :, None] != _segments(layout.key)[:, None, :]
        same, other = torch.einsum("bnqd,snd->sbnq", query, self.segment_keys).unsqueeze(-1)
        return torch.where(differs[:, None], other, same)


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """[S, H] all sines, then all cosines."""
    steps = torch.arange(0, width, 2, dtype=torch.float32, device=positions.device)
    angles = positions[:, None].float() * (1.0 / 10_000 ** (steps / width))
    return torch.cat([angles.sin(), angles.cos()], -1)


def _segments(side: Side) -> Tensor:
    """[B, L]; remembered tokens count as part of the first segment."""
    return side.fact("segments").clamp(min=0)


def _each(bias: Tensor) -> Tensor:
    """[N, D] -> [N, 1, D]: the same for every query."""
    return bias[:, None]


class RelativeSpec(ScorerSpec):
    kind: Literal["relative"] = "relative"
    segments: bool = False

    def score(self, num_heads: int, head_width: int) -> Relative:
        if num_heads * head_width % 2:
            raise SpecError(f"sines and cosines of distances need an even width, not {num_heads * head_width}")
        return Relative(num_heads, head_width, self.segments)
