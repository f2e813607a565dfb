"""The chain against all its paths, one by one."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from bertie.batch import Ragged
from bertie.nn.crf import CRF, CRFSpec, Moves
from bertie.text.tag_schemes import SchemeName, count_broken, transitions

SIZES = [1, 3, 2, 5, 4, 1, 5]


def random_moves(num_tags: int, generator: torch.Generator) -> Moves:
    """Some moves are forbidden, but the first tag may always be chosen, so that there is a path."""
    start, between, end = (
        torch.rand(shape, generator=generator) < 0.6 for shape in ((num_tags,), (num_tags,) * 2, (num_tags,))
    )
    start[0] = between[0, 0] = end[0] = True
    return Moves(start, between, end)


def random_crf(num_tags: int, masked: bool) -> tuple[CRF, Moves | None, torch.Generator]:
    generator = torch.Generator().manual_seed(num_tags)
    moves = random_moves(num_tags, generator) if masked else None
    crf = CRFSpec().build(num_tags, moves).double()
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return crf, moves, generator


@torch.no_grad()
def all_paths(crf: CRF, moves: Moves | None, emissions: Tensor) -> dict[tuple[int, ...], float]:
    """The score of every path that is allowed, for one row [n, K]."""
    length, num_tags = emissions.shape
    scores = {}
    for path in itertools.product(range(num_tags), repeat=length):
        allowed, score = True, 0.0
        if path:
            score = float(crf.start[path[0]] + crf.end[path[-1]])
            allowed = moves is None or bool(moves.start[path[0]] and moves.end[path[-1]])
        for place, tag in enumerate(path):
            score += float(emissions[place, tag])
        for one, other in itertools.pairwise(path):
            score += float(crf.between[one, other])
            allowed = allowed and (moves is None or bool(moves.between[one, other]))
        if allowed:
            scores[path] = score
    return scores


@pytest.mark.parametrize("num_tags", [1, 2, 3, 4])
@pytest.mark.parametrize("masked", [False, True])
def test_every_figure_equals_brute_force_over_all_paths(num_tags: int, masked: bool) -> None:
    crf, moves, generator = random_crf(num_tags, masked)
    sizes = [length for length in range(6) for _ in range(2)]
    emissions = Ragged(
        torch.randn(sum(sizes), num_tags, generator=generator, dtype=torch.float64) * 2, torch.tensor(sizes)
    )
    partition, marginals, decoded = crf.log_partition(emissions), crf.marginals(emissions), crf.decode(emissions)
    for row, states in enumerate(emissions.rows()):
        paths = all_paths(crf, moves, states)
        total = math.log(math.fsum(map(math.exp, paths.values())))
        assert float(partition[row].detach()) == pytest.approx(total)
        best = max(paths, key=lambda path: paths[path])
        assert tuple(decoded.tags.rows()[row].tolist()) == best
        assert float(decoded.scores[row]) == pytest.approx(paths[best])
        expected = torch.zeros(len(states), num_tags, dtype=torch.float64)
        for path, score in paths.items():
            for place, tag in enumerate(path):
                expected[place, tag] += math.exp(score - total)
        torch.testing.assert_close(marginals.rows()[row].detach(), expected)


@pytest.mark.parametrize("num_tags", [1, 2, 3, 4])
@pytest.mark.parametrize("masked", [False, True])
def test_every_path_has_its_likelihood(num_tags: int, masked: bool) -> None:
    crf, moves, generator = random_crf(num_tags, masked)
    for length in range(1, 6):
        states = torch.randn(length, num_tags, generator=generator, dtype=torch.float64)
        paths = all_paths(crf, moves, states)
        many = Ragged(states.repeat(len(paths), 1), torch.full((len(paths),), length))
        found = crf.log_likelihood(many, torch.tensor(list(paths)).flatten()).detach()
        torch.testing.assert_close(found, torch.tensor(list(paths.values()), dtype=torch.float64).log_softmax(0))


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_those_of_differences(masked: bool) -> None:
    crf, _, generator = random_crf(3, masked)
    values = torch.randn(sum(SIZES), 3, generator=generator, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor(SIZES)
    tags = crf.decode(Ragged(values, lengths)).tags.values
    assert torch.autograd.gradcheck(lambda values: crf.log_likelihood(Ragged(values, lengths), tags), values)
    (-crf.log_likelihood(Ragged(values, lengths), tags).sum()).backward()
    # d log Z / d emissions is the marginal, so the loss pulls by marginal - 1 at the given tags.
    expected = crf.marginals(Ragged(values, lengths)).values - torch.nn.functional.one_hot(tags, 3)
    assert values.grad is not None
    torch.testing.assert_close(values.grad, expected.detach())
    for parameter in crf.parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all()


def test_rows_do_not_see_each_other() -> None:
    crf, _, generator = random_crf(4, masked=False)
    values = torch.randn(sum(SIZES), 4, generator=generator, dtype=torch.float64)
    together = Ragged(values, torch.tensor(SIZES))
    tags = torch.randint(0, 4, (sum(SIZES),), generator=generator)
    alone = [
        crf.log_likelihood(Ragged(states, torch.tensor([len(states)])), row_tags)
        for states, row_tags in zip(together.rows(), together.with_values(tags).rows(), strict=True)
    ]
    torch.testing.assert_close(crf.log_likelihood(together, tags), torch.cat(alone))


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
def test_decoded_tags_are_always_valid(scheme: SchemeName) -> None:
    letters = "BIES" if scheme == "IOBES" else "BI"
    names = ["O", *(f"{letter}-{label}" for label in ("X", "Y") for letter in letters)]
    crf = CRF(len(names), Moves(*map(torch.as_tensor, transitions(names, scheme))))
    generator = torch.Generator().manual_seed(7)
    lengths = torch.randint(0, 9, (200,), generator=generator)
    emissions = Ragged(torch.randn(int(lengths.sum()), len(names), generator=generator) * 1e4, lengths)
    decoded = crf.decode(emissions)
    for row in decoded.tags.rows():
        assert count_broken([names[tag] for tag in row.tolist()], scheme) == 0
    torch.testing.assert_close(decoded.scores, crf.path_scores(emissions, decoded.tags.values).detach())
    assert crf.marginals(emissions).values.isfinite().all()
    greedy = emissions.with_values(emissions.values.argmax(-1))
    assert any(count_broken([names[tag] for tag in row.tolist()], scheme) for row in greedy.rows())


def test_given_tags_that_are_not_allowed_are_refused() -> None:
    allowed = Moves(*map(torch.as_tensor, transitions(["O", "B-X", "I-X"], "IOB2")))
    emissions = Ragged(torch.zeros(4, 3), torch.tensor([2, 2]))
    with pytest.raises(ValueError, match="the tags of row 1 are a path that is not allowed"):
        CRF(3, allowed).log_likelihood(emissions, torch.tensor([1, 2, 0, 2]))


def test_no_rows_and_empty_rows() -> None:
    crf = CRF(3)
    for lengths in ([], [0], [0, 0]):
        nothing = Ragged(torch.zeros(0, 3), torch.tensor(lengths, dtype=torch.int64))
        assert crf.log_likelihood(nothing, torch.zeros(0, dtype=torch.int64)).tolist() == [0.0] * len(lengths)
        decoded = crf.decode(nothing)
        assert decoded.tags.values.shape == (0,) and decoded.scores.tolist() == [0.0] * len(lengths)
        assert crf.marginals(nothing).values.shape == (0, 3)


def test_masks_are_not_weights_and_the_first_chain_has_no_opinion() -> None:
    crf, *_ = random_crf(3, masked=True)
    assert set(crf.state_dict()) == {"start", "between", "end"}
    emissions = Ragged(torch.randn(5, 3), torch.tensor([2, 3]))
    torch.testing.assert_close(CRF(3).marginals(emissions).values.detach(), emissions.values.softmax(-1))
