"""Schedules: values at the places where they could be off by one."""

import math

import pytest
from pydantic import TypeAdapter

from bertie.train.schedule import AnySchedule, Constant, Cosine, InverseRoot, Linear


@pytest.mark.parametrize("kind", [Linear, Cosine, InverseRoot, Constant])
def test_the_warm_up_climbs_evenly_to_the_whole_rate(kind: type[Linear]) -> None:
    schedule = kind(warmup=4)
    assert [schedule.factor(step, 20) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert schedule.factor(4, 20) == pytest.approx(1.0 if kind is not InverseRoot else math.sqrt(4 / 5))


def test_what_comes_after() -> None:
    assert Linear(warmup=10).factor(60, 110) == pytest.approx(0.5)
    assert Linear(warmup=10).factor(109, 110) == pytest.approx(0.01)
    assert Cosine(warmup=10).factor(60, 110) == pytest.approx(0.5)
    assert Cosine(warmup=10).factor(35, 110) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert InverseRoot(warmup=100).factor(399, 1000) == pytest.approx(0.5)
    assert InverseRoot(warmup=100).factor(399, 100_000) == pytest.approx(0.5)
    assert Constant().factor(99, 100) == 1.0


@pytest.mark.parametrize("kind", [Linear, Cosine, InverseRoot, Constant])
@pytest.mark.parametrize("warmup", [0, 1, 5, 30])
def test_every_step_takes_some_of_the_rate(kind: type[Linear], warmup: int) -> None:
    factors = [kind(warmup=warmup).factor(step, 20) for step in range(20)]
    assert all(0 < factor <= 1 for factor in factors)
    assert all(after <= before for before, after in zip(factors[warmup:], factors[warmup + 1 :], strict=False))


def test_there_is_no_step_past_the_end() -> None:
    with pytest.raises(ValueError, match="step 20 of 20"):
        Linear().factor(20, 20)


def test_a_kind_is_chosen_by_its_name() -> None:
    adapter: TypeAdapter[AnySchedule] = TypeAdapter(AnySchedule)
    assert adapter.validate_python({"kind": "cosine", "warmup": 3}) == Cosine(warmup=3)
