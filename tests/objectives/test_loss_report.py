"""LossReport: sums and counts add exactly, and are divided only at the end."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertie.objectives.loss_report import Figure, LossReport

parts = st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=9), min_size=1, max_size=6)


def report(values: list[int]) -> LossReport:
    figure = Figure.over(torch.tensor(values, dtype=torch.float32))
    return LossReport({"a": figure}, {"b": figure})


@given(parts)
def test_parts_add_to_the_whole(values: list[list[int]]) -> None:
    total = LossReport()
    for part in values:
        total = total + report(part)
    flat = [value for part in values for value in part]
    assert total.means() == pytest.approx({"a": sum(flat) / len(flat), "b": sum(flat) / len(flat)})
    assert float(total.loss()) == pytest.approx(sum(flat) / len(flat))


@given(parts)
def test_losses_of_parts_over_the_whole_count_add_to_the_whole_loss(values: list[list[int]]) -> None:
    counts = {"a": torch.tensor(float(sum(len(part) for part in values)))}
    added = sum(float(report(part).loss(counts)) for part in values)
    flat = [value for part in values for value in part]
    assert added == pytest.approx(sum(flat) / len(flat), abs=1e-5)


def test_each_loss_is_a_mean_over_its_own_count() -> None:
    losses = {"a": Figure.over(torch.tensor([2.0, 4.0])), "b": Figure.over(torch.tensor([10.0]))}
    assert float(LossReport(losses).loss()) == 13.0


def test_a_loss_that_only_one_part_has_is_kept() -> None:
    left = LossReport({"a": Figure.over(torch.tensor([2.0]))})
    right = LossReport({"b": Figure.over(torch.tensor([3.0]))})
    assert (left + right).means() == {"a": 2.0, "b": 3.0}


def test_nothing_counted_is_zero_and_finite() -> None:
    nothing = LossReport({"a": Figure.over(torch.zeros(0))})
    assert float(nothing.loss()) == 0.0
    assert nothing.means() == {"a": 0.0}


def test_no_losses_at_all_cost_nothing() -> None:
    assert float(LossReport().loss()) == 0.0


def test_counts_stay_exact_past_sixteen_million() -> None:
    total = Figure(torch.tensor(0.0), Figure.over(torch.ones(1)).count * 2**24) + Figure.over(torch.ones(1))
    assert int(total.count) == 2**24 + 1


def test_detached_keeps_numbers_and_drops_the_graph() -> None:
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    kept = LossReport({"a": Figure.over(values * 2)}).detached()
    assert not kept.losses["a"].sum.requires_grad
    assert kept.means() == {"a": 3.0}
    LossReport({"a": Figure.over(values * 2)}).loss().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1.0, 1.0]


def weighted(values: list[float], weight: float) -> Figure:
    return Figure.over(torch.tensor(values), weight)


def test_a_weight_is_that_of_the_mean_in_the_whole_loss() -> None:
    losses = {"a": weighted([2.0, 4.0], 5.0), "b": weighted([10.0], 0.5), "c": weighted([1.0], 0.0)}
    told = LossReport(losses)
    assert float(told.loss()) == 5 * 3 + 0.5 * 10
    assert told.means() == {"a": 3.0, "b": 10.0, "c": 1.0}, "what is told is not weighted"


def test_a_weight_outlives_adding_detaching_and_larger_wholes() -> None:
    whole = LossReport({"a": weighted([2.0, 4.0, 6.0], 5.0)})
    parts = [LossReport({"a": weighted(values, 5.0)}) for values in ([2.0, 4.0], [6.0])]
    assert float((parts[0] + parts[1]).loss()) == float(whole.loss()) == 20
    assert float((LossReport() + parts[0]).loss()) == 15
    assert float(parts[1].detached().loss()) == 30
    counts = {"a": torch.tensor(3)}
    assert sum(float(part.loss(counts)) for part in parts) == 20


def test_a_weight_scales_the_gradient() -> None:
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    LossReport({"a": Figure.over(values, 3.0)}).loss().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1.5, 1.5]
