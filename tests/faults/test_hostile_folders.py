"""Every hostile folder is refused in one sentence, at once and in little memory, or encodes as before."""

from pathlib import Path

import numpy as np
import pytest
from tests.faults.hostile_folders import FAULTS, MEGABYTES, SECONDS, attempt, make_folder, vectors

OPEN = {
    *("plain legacy weights", "plain shards", "a card without changes", "a plain adapter that changes nothing"),
    *("a tensor that nothing uses",),
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "pristine"
    make_folder(folder)
    return folder


@pytest.fixture(scope="module")
def expected(pristine: Path) -> np.ndarray:
    return vectors(pristine)


@pytest.mark.parametrize("name", FAULTS)
def test_a_hostile_folder_does_no_harm(name: str, pristine: Path, tmp_path: Path, expected: np.ndarray) -> None:
    said, took, extra = attempt(name, pristine, tmp_path, expected)
    assert took < SECONDS
    assert extra < MEGABYTES
    if name in OPEN:
        assert not said


def test_there_are_enough_of_them() -> None:
    assert len(FAULTS) > 300
    assert set(FAULTS) > OPEN
