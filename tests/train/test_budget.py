"""Budgets: each counts its own, and says whether a run can be repeated exactly."""

import pytest
from pydantic import TypeAdapter

from bertie.train.budget import AnyBudget, Done, Steps, Time, Tokens

HALF = Done(steps=50, tokens=5000, seconds=30.0)


@pytest.mark.parametrize("budget", [Steps(steps=100), Tokens(tokens=10_000), Time(seconds=60)])
def test_progress_is_the_share_of_what_is_counted(budget: AnyBudget) -> None:
    assert budget.progress(Done()) == 0
    assert budget.progress(HALF) == 0.5
    assert budget.progress(Done(100, 10_000, 60.0)) == 1
    assert budget.progress(Done(1000, 100_000, 600.0)) > 1, "the last step may go over"


def test_only_the_clock_is_not_exact() -> None:
    assert [kind.exact for kind in (Steps, Tokens, Time)] == [True, True, False]


def test_a_kind_is_chosen_by_its_name() -> None:
    adapter: TypeAdapter[AnyBudget] = TypeAdapter(AnyBudget)
    assert adapter.validate_python({"kind": "time", "seconds": 3}) == Time(seconds=3)
    assert "exact" not in Steps(steps=3).model_dump()
