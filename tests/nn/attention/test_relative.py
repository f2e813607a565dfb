"""Relative scores against a loop over queries and keys: ragged rows, memory, segments."""

import math

import pytest
import torch
from torch import Tensor

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.relative import Relative, RelativeSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.visibility import Causal, Full, Permutation, Visibility, Window

HEADS, WIDTH = 2, 4


def side_of(sizes: list[int], segments: bool = False) -> Side:
    generator = torch.Generator().manual_seed(sum(sizes))
    rows = Ragged(torch.zeros(sum(sizes), dtype=torch.int64), torch.tensor(sizes))
    facts = {"order": Ragged.of([torch.randperm(size, generator=generator) for size in sizes])}
    if segments:
        facts["segments"] = rows.with_values(torch.randint(0, 3, (sum(sizes),), generator=generator))
    return Side(rows.with_values(rows.positions), facts)


def states(total: int, seed: int) -> Tensor:
    return torch.randn(total, HEADS, WIDTH, generator=torch.Generator().manual_seed(seed))


def part_with_weights(segments: bool) -> torch.nn.Module:
    torch.manual_seed(0)
    scorer = RelativeSpec(segments=segments).build(HEADS, WIDTH)
    for parameter in scorer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return scorer


def score_of(scorer: torch.nn.Module) -> Relative:
    return next(part for part in scorer.modules() if isinstance(part, Relative))


def distance_key(score: Relative, distance: int) -> Tensor:
    """[N, D]"""
    total = HEADS * WIDTH
    angles = [distance / 10_000 ** (2 * step / total) for step in range(total // 2)]
    waves = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)])
    return (score.distance.weight @ waves).view(HEADS, WIDTH)


def naive(score: Relative, query: Tensor, key: Tensor, value: Tensor, layout: Layout) -> Tensor:
    """One query, one head and one key at a time."""
    mixed = torch.zeros_like(query)
    allowed = layout.allowed.expand(-1, HEADS, layout.query.rows.longest, layout.key.rows.longest)
    row_starts = zip(layout.query.rows.starts.tolist(), layout.key.rows.starts.tolist(), strict=True)
    for row, (start_q, start_k) in enumerate(row_starts):
        for i in range(start_q, start_q + layout.query.rows.sizes[row]):
            for head in range(HEADS):
                seen, scores = [], []
                for j in range(start_k, start_k + layout.key.rows.sizes[row]):
                    if not allowed[row, head, i - start_q, j - start_k]:
                        continue
                    distance = int(layout.query.rows.values[i] - layout.key.rows.values[j])
                    total = (query[i, head] + score.content_bias[head]) @ key[j, head]
                    total += (query[i, head] + score.distance_bias[head]) @ distance_key(score, distance)[head]
                    if score.segments:
                        own, other = (
                            int(side.fields["segments"].values[at]) for side, at in ((layout.query, i), (layout.key, j))
                        )
                        differs = int(own != max(other, 0))
                        total += (query[i, head] + score.segment_bias[head]) @ score.segment_keys[differs, head]
                    seen.append(value[j, head])
                    scores.append(total / math.sqrt(WIDTH))
                if seen:
                    mixed[i, head] = torch.stack(scores).softmax(0) @ torch.stack(seen)
    return mixed


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("remembered", [None, [3, 0, 5]])
@pytest.mark.parametrize("visibility", [Full(), Causal(), Window(reach=2), Permutation(strict=True)])
def test_equals_a_loop(segments: bool, remembered: list[int] | None, visibility: Visibility) -> None:
    side = side_of([4, 1, 6], segments)
    layout = Layout(side, side, visibility)
    if remembered:
        layout = layout.behind(Ragged(torch.zeros(sum(remembered)), torch.tensor(remembered)))
    num_keys = len(layout.key.rows.values)
    query, key, value = states(11, 1), states(num_keys, 2), states(num_keys, 3)
    scorer = part_with_weights(segments)
    with torch.no_grad():
        expected = naive(score_of(scorer), query, key, value, layout)
        torch.testing.assert_close(scorer(query, key, value, layout), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("segments", [False, True])
def test_queries_at_some_places_equal_those_of_all(segments: bool) -> None:
    """As the second of two streams asks."""
    side = side_of([5, 3], segments)
    query, key, value = states(8, 1), states(8, 2), states(8, 3)
    places, sizes = torch.tensor([1, 4, 7]), torch.tensor([2, 1])
    some = Side(
        Ragged(side.rows.values[places], sizes),
        {name: Ragged(facts.values[places], sizes) for name, facts in side.fields.items()},
    )
    scorer = part_with_weights(segments)
    whole = scorer(query, key, value, Layout(side, side, Permutation()))
    torch.testing.assert_close(scorer(query[places], key, value, Layout(some, side, Permutation())), whole[places])


def test_one_segment_alone_changes_nothing() -> None:
    scorer, side = part_with_weights(True), side_of([4, 3])
    told = Side(side.rows, {"segments": side.rows.with_values(torch.ones(7, dtype=torch.int64))})
    query, key, value = states(7, 1), states(7, 2), states(7, 3)
    mixed = [scorer(query, key, value, Layout.within(one)) for one in (side, told)]
    torch.testing.assert_close(*mixed, atol=1e-6, rtol=1e-5)
    other = Side(side.rows, {"segments": side.rows.with_values(torch.tensor([0, 0, 1, 1, 0, 1, 1]))})
    assert not torch.allclose(scorer(query, key, value, Layout.within(other)), mixed[0], atol=1e-3)


def test_gradients_reach_every_parameter() -> None:
    scorer, side = part_with_weights(True), side_of([4, 3], segments=True)
    scorer(states(7, 1), states(7, 2), states(7, 3), Layout.within(side)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in scorer.parameters())


def test_nothing_to_do_is_done() -> None:
    scorer, keys = part_with_weights(True), side_of([4, 3], segments=True)
    none = Ragged(torch.zeros(0, dtype=torch.int64), torch.tensor([0, 0]))
    mixed = scorer(states(0, 1), states(7, 2), states(7, 3), Layout(Side(none, {"segments": none}), keys))
    assert mixed.shape == (0, HEADS, WIDTH)


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(SpecError, match="even width, not 9"):
        AttentionSpec(num_heads=3, scorer=RelativeSpec()).build(9)
