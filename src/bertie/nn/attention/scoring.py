"""Scorers: turn queries, keys and values of flat tokens into weighted sums of values.

`ReferenceScorer` is written for reading and does everything. `FusedScorer` recognizes what fast kernels are good at and
leaves anything else to the reference; the two are tested against each other, forward and backward.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.devices import attend_flat, takes_flat_rows
from bertie.nn.attention.row_runs import Run
from bertie.nn.layout import Layout
from bertie.nn.native.attention_kernel import attend
from bertie.nn.visibility import Causal, Full, Window
from bertie.spec import Spec


class DotProduct(nn.Module):
    """Scaled dot product: q.k / sqrt(D)."""

    def prepare(self, query: Tensor, key: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Changes flat queries and keys [T, N, D] before they are compared; a rotary score rotates them here."""
        return query, key

    def forward(self, query: Tensor, key: Tensor, layout: Layout) -> Tensor:
        return query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5  # [B, N, Lq, Lk]


class ReferenceScorer(nn.Module):
    def __init__(self, score: DotProduct, dropout: float = 0.0):
        super().__init__()
        self.score = score
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, layout: Layout) -> Tensor:
        query, key = self.score.prepare(query, key, layout)
        rows_q, rows_k = layout.query.rows, layout.key.rows
        q, k, v = (
            rows.with_values(states).pad().transpose(1, 2)  # [B, N, L, D]
            for rows, states in ((rows_q, query), (rows_k, key), (rows_k, value))
        )
        logits = self.score(q, k, layout).masked_fill(~layout.allowed, -torch.inf)
        # A query that sees nothing would be a softmax over -inf alone: it gets zeros.
        weights = logits.softmax(-1).masked_fill(~layout.allowed, 0.0)
        if layout.observed is not None:
            layout.observed.append(weights)
        mixed = self.dropout(weights) @ v
        return rows_q.unpad(mixed.transpose(1, 2)).values  # [Tq, N, D]


class FusedScorer(ReferenceScorer):
    """Our own kernel for short rows; else torch's fused attention, run on neighbouring rows of nearly equal length, so
    that little is padded."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, layout: Layout) -> Tensor:
        if not self.recognizes(layout):
            return super().forward(query, key, value, layout)
        dropout = self.dropout.p if self.training else 0.0
        seen, causal = layout.visibility, isinstance(layout.visibility, Causal)
        # How far a token sees to either side; None where that is the whole row.
        reach = seen.reach if isinstance(seen, Window) and seen.reach < layout.key.rows.longest - 1 else None
        turned = self.score.prepare(query, key, layout)
        if not causal and (native := attend(*turned, value, layout, dropout, reach)) is not None:
            return native
        if not causal and takes_flat_rows(query):
            rows = layout.query.rows.flat_rows, layout.key.rows.flat_rows
            if (flat := attend_flat((*turned, value), rows, dropout, reach)) is not None:
                return flat
        if dropout > 0:  # torch's kernel for the CPU has none
            return super().forward(query, key, value, layout)
        mixed = []
        for run in layout.runs:
            # Causal rows need no mask for padded keys, which follow all tokens.
            mask = None if causal else _seen_keys(run, reach)
            q, k, v = run.query.rectangle(turned[0]), run.key.rectangle(turned[1]), run.key.rectangle(value)
            mixed.append(run.query.flat(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)))
        return mixed[0] if len(mixed) == 1 else torch.cat(mixed)

    def recognizes(self, layout: Layout) -> bool:
        plain = type(self.score).forward is DotProduct.forward and layout.observed is None
        seen = layout.visibility
        near = isinstance(seen, Causal) or (isinstance(seen, Window) and seen.dilation == 1)
        known = isinstance(seen, Full) or (near and layout.query is layout.key)
        return plain and known and len(layout.query.rows.values) > 0


def _seen_keys(run: Run, reach: int | None) -> Tensor | None:
    """[B or 1, 1, Lq or 1, Lk], True for keys that may be seen; None where all may."""
    if reach is None:
        return run.padded_keys
    places = (torch.arange(side.longest, device=side.device) for side in (run.query, run.key))
    distance = next(places)[:, None] - next(places)
    near = (distance.abs() <= reach)[None, None]
    if run.padded_keys is None:
        return near
    # Padding must see something: a softmax over nothing would make the gradients of all keys undefined.
    return (near & run.padded_keys) | ~run.query.exists[:, None, :, None]


class ScorerSpec(Spec):
    """What all kinds have in common; each has its own `score`."""

    dropout: float = Field(default=0.0, ge=0, lt=1)
    fused: bool = True

    def score(self, num_heads: int, head_width: int) -> DotProduct:
        raise NotImplementedError

    def build(self, num_heads: int, head_width: int) -> nn.Module:
        scorer = FusedScorer if self.fused else ReferenceScorer
        return scorer(self.score(num_heads, head_width), self.dropout)


class DotProductSpec(ScorerSpec):
    kind: Literal["dot-product"] = "dot-product"

    def score(self, num_heads: int, head_width: int) -> DotProduct:
        return DotProduct()
