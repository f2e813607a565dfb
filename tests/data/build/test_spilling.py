from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bertie.data.build import spilling
from bertie.data.build.spilling import by_ranges, pieces

ROWS = np.dtype([("key", "<u8"), ("number", "<u4")])


def rows_of(keys: np.ndarray) -> np.ndarray:
    rows = np.zeros(len(keys), ROWS)
    rows["key"], rows["number"] = keys, np.arange(len(keys))
    return rows


@pytest.mark.parametrize("at_once", [1000, 40, 3])
@pytest.mark.parametrize("end", [1 << 64, 7])
def test_all_rows_come_by_ascending_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, end: int
) -> None:
    monkeypatch.setattr(spilling, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(spilling, "FAN_OUT", 4)
    keys = np.random.default_rng(0).integers(0, end - 1, 300, dtype=np.uint64, endpoint=True)
    keys[:20] = end - 1  # many of the last key there can be
    rows = rows_of(keys)
    blocks = list(by_ranges([rows[:100], rows[100:100], rows[100:]], "key", end, tmp_path / "spill"))
    assert (len(blocks) == 1) == (at_once == 1000)
    for before, after in pairwise(blocks):
        assert before["key"].max() < after["key"].min()
    for block in blocks:
        assert len(block) <= at_once or len(set(block["key"].tolist())) == 1
        for key in set(block["key"].tolist()):
            assert (np.diff(block["number"][block["key"] == key].astype(int)) > 0).all()
    together = np.concatenate(blocks)
    assert sorted(together["number"].tolist()) == list(range(300))
    assert (rows["key"][together["number"]] == together["key"]).all()
    assert not (tmp_path / "spill").exists()


def test_what_a_killed_run_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "ROWS_AT_ONCE", 10)
    rows = rows_of(np.arange(100, dtype=np.uint64))
    killed = by_ranges([rows], "key", 100, tmp_path / "spill")
    next(killed)
    del killed
    found = np.concatenate(list(by_ranges([rows[:50]], "key", 100, tmp_path / "spill")))
    assert found["number"].tolist() == list(range(50))


def test_no_rows_no_blocks(tmp_path: Path) -> None:
    assert list(by_ranges([], "key", 9, tmp_path / "spill")) == []
    assert list(by_ranges([rows_of(np.zeros(0, np.uint64))], "key", 9, tmp_path / "spill")) == []


def test_pieces_are_of_the_wanted_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "ROWS_AT_ONCE", 4)
    np.arange(20, dtype="<u8").tofile(tmp_path / "numbers")
    found = [piece.tolist() for piece in pieces(tmp_path / "numbers", np.dtype("<u8"), 3, 12)]
    assert found == [[3, 4, 5, 6], [7, 8, 9, 10], [11]]
