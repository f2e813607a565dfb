"""Frozen samples: what was written is read, by number, in any process; nothing half written stays."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.batch import Places, Sample
from bertie.data import frozen
from bertie.data.batching import Batches, TokenBudget
from bertie.data.epoch_plan import EpochPlan
from bertie.data.frozen import Frozen, write_frozen
from bertie.errors import FolderError, InputError


def draw(count: int, largest: int = 1000) -> list[Sample]:
    rng = np.random.default_rng(0)
    rows: list[Sample] = []
    for _ in range(count):
        size = int(rng.integers(5, 40))
        positions = np.sort(rng.choice(size, int(rng.integers(0, 4)), replace=False))
        tokens = rng.integers(0, largest, size)
        rows.append(
            {
                "tokens": tokens,
                "segments": np.full(size, -1),
                "partner": np.asarray(int(rng.integers(2))),
                "masked": Places("tokens", positions),
                "masked_targets": tokens[positions],
            }
        )
    return rows


def plain(sample: Sample) -> dict[str, Any]:
    return {
        name: (value.into, value.positions.tolist()) if isinstance(value, Places) else value.tolist()
        for name, value in sample.items()
    }


@pytest.mark.parametrize("largest", [1000, 100_000])
def test_what_was_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    monkeypatch.setattr(frozen, "ROWS", 7)
    rows = draw(30, largest)
    assert write_frozen(tmp_path / "f.arrow", rows, largest, {"seed": 3}) == 30
    read = Frozen(tmp_path / "f.arrow")
    assert read.about == {"seed": 3}
    assert [plain(read.sample(0, 0, index)) for index in range(30)] == [plain(row) for row in rows]
    assert plain(pickle.loads(pickle.dumps(read)).sample(0, 0, 29)) == plain(rows[29])
    assert read.lengths(np.arange(30)).tolist() == [len(np.asarray(row["tokens"])) for row in rows]
    with pytest.raises(IndexError):
        read.sample(0, 0, 30)


def test_frozen_samples_are_planned_like_others(tmp_path: Path) -> None:
    write_frozen(tmp_path / "f.arrow", draw(50), 1000, {})
    read = Frozen(tmp_path / "f.arrow")
    batches = Batches(read, EpochPlan(read, TokenBudget(tokens=200), 0), 0)
    tokens = [len(batches[step].tensor("tokens")) for step in range(5)]
    assert max(tokens) <= 200
    assert batches[3].tensor("masked").max() < tokens[3]


def test_ids_that_fit_take_two_bytes(tmp_path: Path) -> None:
    for largest in (30_000, 40_000):
        write_frozen(tmp_path / str(largest), draw(500), largest, {})
    small, large = ((tmp_path / name).stat().st_size for name in ("30000", "40000"))
    assert small < 0.7 * large


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[Sample]:
        yield from draw(5)
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        write_frozen(tmp_path / "f.arrow", failing(), 1000, {})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="'tokens' has a value"):
        write_frozen(tmp_path / "f.arrow", draw(5, 100_000), 1000, {})
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sample"):
        write_frozen(tmp_path / "f.arrow", [], 10, {})
    with pytest.raises(FolderError, match=r"no such file.*bertie corpus freeze"):
        Frozen(tmp_path / "f.arrow")
    (tmp_path / "f.arrow").write_text("words")
    with pytest.raises(FolderError, match="not a file of frozen samples"):
        Frozen(tmp_path / "f.arrow")
    write_frozen(tmp_path / "f.arrow", draw(5), 1000, {})
    content = (tmp_path / "f.arrow").read_bytes()
    start, end = content.index(b"\xff" * 4, 8), content.rindex(b"\xff" * 4)  # of the record batch
    (tmp_path / "f.arrow").write_bytes(content[:start] + bytes(end - start) + content[end:])
    with pytest.raises(FolderError, match="a broken one"):
        Frozen(tmp_path / "f.arrow")


def test_shares_are_kept_as_they_are(tmp_path: Path) -> None:
    rows: list[Sample] = [
        {"tokens": np.arange(3), "dice": np.array([0.25, 0.75], np.float32)},
        {"tokens": np.arange(4), "dice": np.array([0.1], np.float32)},
    ]
    write_frozen(tmp_path / "f.arrow", rows, 10, {})
    read = [np.asarray(Frozen(tmp_path / "f.arrow").sample(0, 0, index)["dice"]) for index in range(2)]
    assert [one.dtype for one in read] == [np.float32, np.float32]
    assert [one.tolist() for one in read] == [np.asarray(row["dice"]).tolist() for row in rows]
    mixed: list[Sample] = [{"tokens": np.arange(4), "dice": np.arange(2)}, rows[0]]
    with pytest.raises(ValueError, match="not of whole numbers"):
        write_frozen(tmp_path / "g.arrow", mixed, 10, {})
