"""Courses: stages by the share of the run, nothing lost where batches grow, and any step found without walking."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from bertie.batch import Sample
from bertie.data.data_schedule import Curriculum, Cursor, DataSchedule, Phase, Ramp, stages_of
from bertie.data.samples.frame import Frame
from bertie.data.samples.segments import SegmentSamples
from bertie.data.shapes import Segments
from bertie.errors import SpecError

ONE = Curriculum(phases=(Phase(share=1, length=100),))
TWO = Curriculum(phases=(Phase(share=0.7, length=32), Phase(share=0.3, length=100)))


class Counted:
    """Samples of which only number and lengths are asked."""

    shuffled = True

    def __init__(self, longest: int, count: int = 400):
        self.sizes = np.random.default_rng(longest).integers(3, longest + 1, count)
        self.num_samples, self.longest = count, longest

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def sample(self, seed: int, epoch: int, index: int) -> Sample:
        raise AssertionError("a course must not build samples")


def walk(course: DataSchedule, num_steps: int) -> list[Cursor]:
    places: list[Cursor] = []
    place = None
    for step in range(num_steps):
        places.append(course.enter(place, step / num_steps))
        place = course.after(places[-1])
    return places


def test_the_default_is_ninety_parts_short_and_ten_long() -> None:
    short, long = stages_of(Curriculum(), 4096)
    assert (short.begin, short.phase, short.tokens) == (0.0, 0, 4096)
    assert (long.begin, long.phase, long.tokens) == (0.9, 1, 4096)
    with pytest.raises(SpecError, match="add up to 1"):
        Curriculum.parse({"phases": [{"share": 0.5, "length": 8}]})


def test_a_phase_begins_after_its_share_of_the_steps() -> None:
    course = DataSchedule(stages_of(TWO, 400), [Counted(32), Counted(100)], seed=0)
    places = walk(course, 10)
    assert [place.phase for place in places] == [0] * 7 + [1] * 3
    assert places[7].position == 0, "a phase begins with its own text"
    assert max(course.plans[0].samples.lengths(np.array([key.number for key in course.rows(places[0])]))) <= 32


def test_a_ramp_climbs_evenly_and_ends_in_the_whole_batch() -> None:
    course = DataSchedule(stages_of(ONE, 1000, Ramp(begin=250, share=0.5)), [Counted(100)], seed=0)
    tokens = [place.tokens for place in walk(course, 64)]
    assert tokens[0] == 250
    assert tokens[:33] == sorted(tokens[:33]) and max(np.diff(tokens)) <= 25
    assert tokens[16] == pytest.approx(625, abs=25)
    assert set(tokens[32:]) == {1000}


def test_a_growing_batch_loses_no_sample_and_stays_under_its_budget() -> None:
    samples = Counted(100)
    course = DataSchedule(stages_of(ONE, 1000, Ramp(begin=250, share=0.5)), [samples], seed=3)
    places = walk(course, 64)
    times: Counter[Any] = Counter()
    for place in places:
        keys = course.rows(place)
        assert 0 < sum(int(samples.sizes[key.number]) for key in keys) <= place.tokens
        times.update(keys)
    assert set(times.values()) == {1}
    assert {key.number for key in times if key.epoch == 0} == set(range(400))


@pytest.mark.parametrize("num_steps", [1, 7, 10, 100, 333])
def test_a_jump_gives_what_walking_gives(num_steps: int) -> None:
    def make() -> DataSchedule:
        return DataSchedule(stages_of(TWO, 1000, Ramp(begin=250, share=0.8)), [Counted(32), Counted(100)], seed=3)

    assert [make().seek(step, num_steps) for step in range(num_steps)] == walk(make(), num_steps)


def test_a_far_step_costs_no_more_than_a_near_one() -> None:
    course = DataSchedule(stages_of(TWO, 1000, Ramp(begin=250)), [Counted(32), Counted(100)], seed=3)
    place = course.seek(6_900_000_000, 10_000_000_000)
    assert course.rows(place)[0].epoch > 1_000_000


def test_what_is_saved_of_a_place_is_enough() -> None:
    course = DataSchedule(stages_of(ONE, 1000), [Counted(100)], seed=0)
    place = course.seek(5, 10)
    assert course.rows(Cursor(*list(place))) == course.rows(place)


def test_a_ramp_from_less_than_two_rows_is_refused() -> None:
    with pytest.raises(SpecError, match="a budget of 150 tokens is too small for rows of up to 100"):
        DataSchedule(stages_of(ONE, 1000, Ramp(begin=150)), [Counted(100)], seed=0)


def test_rows_of_two_lengths(make_corpus: Any, frame: Frame) -> None:
    corpus = make_corpus([3000, 500])
    samples = [SegmentSamples(Segments(length=length), corpus, frame) for length in (32, 128)]
    course = DataSchedule(stages_of(Curriculum(), 512), samples, seed=0)
    lengths = []
    for step in (0, 89, 90, 99):
        place = course.seek(step, 100)
        rows = [samples[place.phase].sample(0, *key) for key in course.rows(place)]
        lengths.append(max(len(row["tokens"]) for row in rows))
    assert max(lengths[:2]) <= 32 < min(lengths[2:]) <= 128
