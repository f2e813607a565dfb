"""Notices of a busy machine, with made-up times and loads."""

from collections.abc import Sequence

import pytest

from bertie.reporting import busy
from bertie.reporting.busy import PAUSE, SETTLED, BusyMachine, load_average


class Made:
    """A machine of two cores and a run of two threads; steps of 1,000 tokens by default."""

    def __init__(self, load: float | None = 2.0, num_threads: int = 2, num_cores: int = 2):
        self.now, self.load = 0.0, load
        self.watch = BusyMachine(num_threads, num_cores, clock=lambda: self.now, load=lambda: self.load)

    def steps(self, seconds: Sequence[float], tokens: Sequence[int] | None = None) -> list[str]:
        notices = []
        for number, taken in enumerate(seconds):
            self.now += taken
            notices.append(self.watch.add_step(taken, 1000 if tokens is None else tokens[number]))
        return [notice for notice in notices if notice]


def test_slow_steps_on_a_loaded_machine_are_noticed_once() -> None:
    made = Made()
    assert made.steps([1.0] * 20) == []
    made.load = 3.0
    (notice,) = made.steps([5.0] * 30)
    assert notice.startswith("the machine is busy: steps take 5.0 times as long per token as the best ones")
    assert "the load average is 3.0 on 2 cores" in notice
    assert "OMP_NUM_THREADS=1" in notice and "\n" not in notice


def test_it_is_repeated_after_a_pause() -> None:
    made = Made()
    made.steps([1.0] * 20)
    made.load = 3.0
    assert len(made.steps([5.0] * int(1.5 * PAUSE / 5))) == 2


def test_a_hiccup_is_no_busy_machine() -> None:
    made = Made(load=4.0)
    assert made.steps([1.0, 1.0, 1.0, 9.0, 9.0, 1.0, 9.0, 9.0, 9.0, 1.0, 1.0, 1.0]) == []
    quick = Made(load=4.0)
    assert quick.steps([0.001] * 100 + [0.01] * 100) == [], "a second of slow steps is no trouble"


def test_steps_of_other_sizes_are_no_slower_steps() -> None:
    sizes = [100, 4000, 300, 2000] * 20
    made = Made(load=2.9)
    assert made.steps([size / 1000 for size in sizes], sizes) == []


def test_slow_steps_alone_are_no_sign_where_the_load_is_known() -> None:
    """Longer rows, or layers that begin to learn, are slower too."""
    made = Made(load=1.8)
    assert made.steps([1.0] * 20 + [5.0] * 50) == []


def test_without_a_load_average_times_decide() -> None:
    made = Made(load=None)
    assert made.steps([1.0] * 100) == []
    (notice,) = made.steps([4.0] * 20)
    assert "4.0 times" in notice and "load" not in notice


def test_a_run_that_was_slow_from_its_beginning_is_known_by_the_load() -> None:
    made = Made(load=5.0)
    notices = made.steps([1.0] * int(SETTLED - 1))
    assert notices == [], "the load may be that of what was before it"
    (notice,) = made.steps([1.0] * 10)
    assert "load average is 5.0 on 2 cores" in notice and "times as long" not in notice


@pytest.mark.parametrize(("load", "num_threads", "num_cores"), [(2.5, 2, 2), (8.0, 2, 8), (8.6, 8, 2), (1.9, 1, 2)])
def test_our_own_threads_and_free_cores_are_no_load(load: float, num_threads: int, num_cores: int) -> None:
    assert Made(load, num_threads, num_cores).steps([1.0] * 200) == []


def test_a_single_thread_is_not_told_to_take_fewer() -> None:
    (notice,) = Made(4.0, num_threads=1, num_cores=1).steps([1.0] * 100)
    assert "OMP_NUM_THREADS" not in notice and "1 core" in notice


def test_steps_without_tokens_or_time_say_nothing() -> None:
    made = Made(load=9.0)
    made.now = 2 * SETTLED
    assert [made.watch.add_step(1.0, 0), made.watch.add_step(0.0, 10)] == [None, None]


def test_a_system_without_load_averages_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(busy.os, "getloadavg")
    assert load_average() is None
