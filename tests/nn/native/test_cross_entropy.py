"""The vocabulary's cross entropy in one against torch's way."""

import pytest
import torch
import torch.nn.functional as F

from bertie.nn.heads import Transform, VocabularyHead, drawn
from bertie.nn.native import cross_entropy
from bertie.nn.native.cross_entropy import COLUMNS, kernel, linear_cross_entropy

needs_kernel = pytest.mark.skipif(kernel() is None, reason="no C compiler with OpenMP here")


@needs_kernel
@pytest.mark.parametrize(("num_rows", "size"), [(1, 5), (9, 1003), (4, COLUMNS), (5, 2 * COLUMNS + 3)])
def test_losses_hits_and_gradients_equal_torchs(num_rows: int, size: int) -> None:
    torch.manual_seed(0)
    states, weight = torch.randn(num_rows, 16, requires_grad=True), torch.randn(size, 16, requires_grad=True)
    bias, targets = torch.randn(size, requires_grad=True), torch.randint(size, (num_rows,))
    logits = F.linear(states, weight, bias)
    targets[0] = logits[0].argmax()
    expected = F.cross_entropy(logits, targets, reduction="none")
    found = linear_cross_entropy(states, weight, bias, targets)
    assert found is not None
    losses, correct, draws = found
    assert not len(draws)
    torch.testing.assert_close(losses, expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(correct, (logits.argmax(-1) == targets).float())
    toward = torch.rand(num_rows)  # rows may weigh differently
    given = (states, weight, bias)
    own, theirs = torch.autograd.grad(losses, given, toward), torch.autograd.grad(expected, given, toward)
    for ours, other in zip(own, theirs, strict=True):
        torch.testing.assert_close(ours, other, atol=1e-5, rtol=1e-4)


@needs_kernel
def test_among_equal_logits_the_first_is_the_choice() -> None:
    weight, bias = torch.zeros(20, 4), torch.zeros(20)
    found = linear_cross_entropy(torch.randn(3, 4), weight, bias, torch.tensor([0, 1, 19]))
    assert found is not None
    assert found[1].tolist() == [1.0, 0.0, 0.0]


@needs_kernel
def test_what_is_not_finite_stays_so() -> None:
    weight, bias, targets = torch.randn(40, 4), torch.zeros(40), torch.tensor([3, 3])
    for spoilt in (float("nan"), float("inf")):
        states = torch.randn(2, 4)
        states[1] = spoilt
        found = linear_cross_entropy(states, weight, bias, targets)
        assert found is not None
        assert found[0].isfinite().tolist() == [True, False]


def test_targets_outside_the_vocabulary_are_torchs_to_refuse() -> None:
    weight, bias = torch.randn(40, 4), torch.zeros(40)
    for wrong in (-1, 40):
        assert linear_cross_entropy(torch.randn(1, 4), weight, bias, torch.tensor([wrong])) is None


def test_the_head_gives_the_same_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    head = VocabularyHead(Transform(8, 8, F.gelu, 1e-12), 8, 50, tied=False)
    states, targets = torch.randn(6, 8), torch.randint(50, (6,))
    own = head.loss(states, targets)
    monkeypatch.setattr(cross_entropy, "kernel", lambda: None)
    for ours, other in zip(own, head.loss(states, targets), strict=True):
        torch.testing.assert_close(ours, other)
    no_losses, no_hits = head.loss(states[:0], targets[:0])
    assert len(no_losses) == len(no_hits) == 0


@needs_kernel
@pytest.mark.parametrize("size", [5, 300, 2 * COLUMNS + 3])
def test_what_is_drawn_is_where_the_sums_of_probabilities_pass_the_dice(size: int) -> None:
    torch.manual_seed(0)
    states, weight, bias = torch.randn(200, 16), torch.randn(size, 16) / 4, torch.randn(size)
    dice = torch.rand(200)
    dice[:3] = torch.tensor([0.0, 1 - 2**-24, 0.5])
    found = linear_cross_entropy(states, weight, bias, torch.zeros(200, dtype=torch.int64), dice)
    assert found is not None
    sums = F.linear(states, weight, bias).double().softmax(-1).cumsum(-1)
    passed = sums.gather(1, found[2][:, None]).squeeze(1)
    before = F.pad(sums, (1, 0)).gather(1, found[2][:, None]).squeeze(1)
    assert (before <= dice + 1e-6).all()
    assert (passed >= dice - 1e-6).all()
    assert found[2][0] == 0
    # Nearly always the very choice of the plain way; where two sums are nearly one it may be the neighbour.
    assert (found[2] == drawn(F.linear(states, weight, bias), dice)).float().mean() > 0.9


def test_dice_that_do_not_fit_are_torchs_to_refuse() -> None:
    weight, bias, targets = torch.randn(40, 4), torch.zeros(40), torch.tensor([3, 3])
    assert linear_cross_entropy(torch.randn(2, 4), weight, bias, targets, torch.rand(3)) is None
