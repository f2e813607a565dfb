"""Schedules: values at the places where they could be off by one."""

import math

import pytest
from pydantic import TypeAdapter

from bertie.train.learning.schedule import AnySchedule, Constant, Cosine, InverseRoot, Linear, WarmUp

KINDS = [Linear, Cosine, InverseRoot, Constant]


def factor(schedule: WarmUp, step: int, num_steps: int) -> float:
    return schedule.factor(step / num_steps, (step + 1) / num_steps)


@pytest.mark.parametrize("kind", KINDS)
def test_the_warm_up_climbs_evenly_to_the_whole_rate(kind: type[WarmUp]) -> None:
    schedule = kind(warmup=4 / 20)
    assert [factor(schedule, step, 20) for step in range(4)] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert factor(schedule, 4, 20) == pytest.approx(1.0 if kind is not InverseRoot else math.sqrt(4 / 5))


def test_what_comes_after() -> None:
    assert factor(Linear(warmup=10 / 110), 60, 110) == pytest.approx(0.5)
    assert factor(Linear(warmup=10 / 110), 109, 110) == pytest.approx(0.01)
    assert factor(Cosine(warmup=10 / 110), 60, 110) == pytest.approx(0.5)
    assert factor(Cosine(warmup=10 / 110), 35, 110) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert factor(InverseRoot(warmup=100 / 1000), 399, 1000) == pytest.approx(0.5)
    assert factor(InverseRoot(warmup=100 / 100_000), 399, 100_000) == pytest.approx(0.5)
    assert factor(InverseRoot(), 3, 1000) == pytest.approx(0.5)
    assert factor(Constant(), 99, 100) == 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warmup", [0, 1, 5, 20])
def test_every_step_takes_some_of_the_rate(kind: type[WarmUp], warmup: int) -> None:
    factors = [factor(kind(warmup=warmup / 20), step, 20) for step in range(20)]
    assert all(0 < one <= 1 for one in factors)
    after_warmup = factors[warmup:]
    assert after_warmup == sorted(after_warmup, reverse=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warmup", [0, 0.3, 1])
def test_steps_of_any_width_give_a_share(kind: type[WarmUp], warmup: float) -> None:
    ends = [0.001, 0.25, 0.31, 0.6, 0.999, 1.0, 1.0]  # the last begins when the time is up
    factors = [kind(warmup=warmup).factor(begun, ended) for begun, ended in zip([0.0, *ends], ends, strict=False)]
    assert all(0 <= one <= 1 for one in factors)


def test_a_kind_is_chosen_by_its_name() -> None:
    adapter: TypeAdapter[AnySchedule] = TypeAdapter(AnySchedule)
    assert adapter.validate_python({"kind": "cosine", "warmup": 0.3}) == Cosine(warmup=0.3)
