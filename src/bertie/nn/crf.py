"""CRF: turns scores of tags at each position into the likelihood of given tags, or the best tags of a whole row.

A linear chain: the score of a path is the sum of its emission scores, of the transitions between its tags, and of the
tags at its two ends. Lafferty, McCallum and Pereira, 2001. Rows are padded to a rectangle inside, positions first,
because every step computes all rows at once.

Axes: B rows, T positions of all rows, L longest row, K tags.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from bertie.batch import Ragged
from bertie.devices import copied
from bertie.spec import Spec

# Finite, so that no sum of forbidden scores is undefined; far below all others, so that no score makes up for it.
FORBIDDEN = -1e30


class Moves(NamedTuple):
    """What a path can do, as scores, or as masks with True = allowed."""

    start: Tensor  # [K]
    between: Tensor  # [K, K], from the row's tag to the column's
    end: Tensor  # [K]


class Decoded(NamedTuple):
    tags: Ragged  # [T]
    scores: Tensor  # [B] of the whole paths


class CRF(nn.Module):
    """An empty row has one path, the empty one, whose score is 0."""

    def __init__(self, num_tags: int, allowed: Moves | None = None):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(num_tags))
        self.between = nn.Parameter(torch.zeros(num_tags, num_tags))
        self.end = nn.Parameter(torch.zeros(num_tags))
        # They follow from the tags and their scheme, which are saved elsewhere.
        for name in Moves._fields:
            mask = None if allowed is None else getattr(allowed, name).to(torch.bool)
            self.register_buffer(f"may_{name}", mask, persistent=False)

    def log_likelihood(self, emissions: Ragged, tags: Tensor) -> Tensor:
        """[T, K], [T] -> [B], differentiable. The tags must be a path that is allowed."""
        scores = self.path_scores(emissions, tags)
        if len(impossible := torch.nonzero(scores.detach().cpu() <= FORBIDDEN / 2)):
            raise ValueError(f"the tags of row {int(impossible[0])} are a path that is not allowed")
        return scores - self.log_partition(emissions)

    def path_scores(self, emissions: Ragged, tags: Tensor) -> Tensor:
        """[T, K], [T] -> [B]"""
        start, between, end = self._moves()
        rows, lengths = emissions.row_ids, emissions.lengths_here
        at_places = emissions.values.gather(1, tags[:, None])[:, 0]
        moved = copied(torch.nonzero(emissions.layout.positions)[:, 0], emissions.device)  # all but the rows' first
        steps = between[tags[moved - 1], tags[moved]]
        some = copied(torch.nonzero(emissions.lengths)[:, 0], emissions.device)
        firsts = emissions.starts[some]
        edges = start[tags[firsts]] + end[tags[firsts + lengths[some] - 1]]
        total = emissions.values.new_zeros(emissions.num_rows)
        total = total.index_add(0, rows, at_places).index_add(0, rows[moved], steps)
        return total.index_add(0, some, edges)

    def log_partition(self, emissions: Ragged) -> Tensor:
        """[B]: the log of the sum over all paths of their exponential scores."""
        if not emissions.longest:
            return emissions.values.new_zeros(emissions.num_rows)
        end = self._moves().end
        last = self._forward(emissions, lambda scores: scores.logsumexp(1))[-1]  # [B, K]
        return (last + end).logsumexp(-1).masked_fill(emissions.lengths_here == 0, 0.0)

    def marginals(self, emissions: Ragged) -> Ragged:
        """[T, K]: the probability of each tag at each position, over all paths."""
        if not emissions.longest:
            return emissions
        _, between, end = self._moves()
        before = torch.stack(self._forward(emissions, lambda scores: scores.logsumexp(1)))  # [L, B, K]
        rectangle, exists = self._rectangle(emissions)
        after = [end.expand(emissions.num_rows, -1)]  # the score of what follows a position, last one first
        for place in range(emissions.longest - 1, 0, -1):
            step = (between + (rectangle[place] + after[-1])[:, None]).logsumexp(-1)
            after.append(torch.where(exists[place, :, None], step, after[-1]))
        scores = before + torch.stack(after[::-1])
        return emissions.unpad(scores.softmax(-1).transpose(0, 1))

    @torch.no_grad()
    def decode(self, emissions: Ragged) -> Decoded:
        """The best path of each row; one that is forbidden only where none is allowed."""
        if not emissions.longest:
            nothing = emissions.values.new_zeros(emissions.num_rows)
            return Decoded(emissions.with_values(emissions.row_ids.new_zeros(0)), nothing)
        pointers: list[Tensor] = []  # of each position after the first [B, K]: the best tag before this one

        def keep_best(scores: Tensor) -> Tensor:
            best = scores.max(1)
            pointers.append(best.indices)
            return best.values

        last = self._forward(emissions, keep_best)[-1]
        scores, tags = (last + self._moves().end).max(-1)
        path = [tags]
        for place in range(emissions.longest - 1, 0, -1):
            # A row that ended before this position keeps its last tag.
            previous = pointers[place - 1].gather(1, path[-1][:, None])[:, 0]
            path.append(torch.where(emissions.lengths_here > place, previous, path[-1]))
        rectangle = torch.stack(path[::-1], 1)  # [B, L]
        return Decoded(emissions.unpad(rectangle), scores.masked_fill(emissions.lengths_here == 0, 0.0))

    def _forward(self, emissions: Ragged, reduce: Callable[[Tensor], Tensor]) -> list[Tensor]:
        """For each position [B, K], the score of all paths to a tag there. Rows that have ended keep their last one.

        `reduce` turns scores [B, from, to] into one for all or for the best of what came from.
        """
        start, between, _ = self._moves()
        rectangle, exists = self._rectangle(emissions)
        states = [start + rectangle[0]]
        for place in range(1, emissions.longest):
            step = reduce(states[-1][:, :, None] + between) + rectangle[place]
            states.append(torch.where(exists[place, :, None], step, states[-1]))
        return states

    def _rectangle(self, emissions: Ragged) -> tuple[Tensor, Tensor]:
        """[L, B, K] scores and [L, B] True where a row has such a position."""
        places = torch.arange(emissions.longest, device=emissions.device)
        return emissions.pad().transpose(0, 1), places[:, None] < emissions.lengths_here

    def _moves(self) -> Moves:
        """The parameters, with forbidden moves far below all others."""
        scores = (getattr(self, name) for name in Moves._fields)
        masks = (getattr(self, f"may_{name}") for name in Moves._fields)
        return Moves(
            *(
                score if mask is None else score.masked_fill(~mask, FORBIDDEN)
                for score, mask in zip(scores, masks, strict=True)
            )
        )


class CRFSpec(Spec):
    kind: Literal["crf"] = "crf"

    def build(self, num_tags: int, allowed: Moves | None = None) -> CRF:
        return CRF(num_tags, allowed)
