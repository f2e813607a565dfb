from pathlib import Path

import numpy as np
import pytest

from bertie.data.build import repeats
from bertie.data.build.repeats import HASHES, PLACES, WHOLE, DropLog, Signed, find_exact, find_near
from bertie.data.build.signing import as_bands
from bertie.data.duplicates import BAND, NUM_BANDS


def write_hashes(path: Path, rows: list[tuple[int, int, int]]) -> Path:
    np.save(path, np.sort(np.array(rows, HASHES), order="hash"))
    return path


@pytest.mark.parametrize("at_once", [500_000, 3])
def test_the_first_of_equal_texts_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(repeats, "ITEMS_AT_ONCE", at_once)  # then the hashes come in several ranges
    top = 1 << 63
    parts = [
        write_hashes(tmp_path / "0.npy", [(5, 0, WHOLE), (top, 1, WHOLE), (5, 2, WHOLE)]),
        write_hashes(tmp_path / "1.npy", [(top, 0, WHOLE), (9, 1, WHOLE), (top + 7, 2, WHOLE)]),
    ]
    (tmp_path / "old.u64").write_bytes(np.array([9, 10], "<u8").tobytes())
    log = DropLog(tmp_path / "drops")
    find_exact(parts, [tmp_path / "old.u64"], log, 0, tmp_path / "kept.u64")
    assert log.of_part(0)["document"].tolist() == [2]
    assert sorted(log.of_part(1)["document"].tolist()) == [0, 1]
    assert np.fromfile(tmp_path / "kept.u64", "<u8").tolist() == [5, top, top + 7]


def test_a_paragraph_of_a_dropped_document_is_not_the_first(tmp_path: Path) -> None:
    log = DropLog(tmp_path / "drops")
    dropped = np.zeros(1, repeats.DROPS)
    dropped["document"], dropped["paragraph"], dropped["reason"] = 1, WHOLE, 1
    log.write("1-000000", dropped)
    part = write_hashes(tmp_path / "0.npy", [(5, 1, 0), (5, 2, 0), (5, 3, 4)])
    find_exact([part], [], log, 2, tmp_path / "kept.u64")
    found = log.of_part(0, (2,))
    assert found["document"].tolist() == [3] and found["paragraph"].tolist() == [4]


def signed(tmp_path: Path, name: str, rows: np.ndarray, is_old: bool = False) -> Signed:
    np.save(tmp_path / f"{name}.npy", as_bands(rows))
    places = np.zeros(len(rows), PLACES)
    places["document"] = np.arange(len(rows))
    places["paragraph"] = WHOLE
    np.save(tmp_path / f"{name}-places.npy", places)
    where = None if is_old else tmp_path / f"{name}-places.npy"
    return Signed(tmp_path / f"{name}.npy", where, np.ones(len(rows), bool))


def near(rng: np.random.Generator, row: np.ndarray, share: float) -> np.ndarray:
    """A signature of which that share of the values differs."""
    changed = row.copy()
    places = rng.random(len(row)) < share
    changed[places] = rng.integers(0, 256, int(places.sum()))
    return changed


@pytest.mark.parametrize("at_once", [500_000, 4])
def test_a_near_copy_goes_and_a_chain_does_not_eat_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(repeats, "ITEMS_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 256, NUM_BANDS * BAND, dtype=np.uint8)
    second = near(rng, first, 0.2)  # like the first
    third = near(rng, second, 0.25)  # like the second, which goes, but not like the first
    other = rng.integers(0, 256, (3, NUM_BANDS * BAND), dtype=np.uint8)
    parts = [
        signed(tmp_path, "0", np.stack([first, other[0], second])),
        signed(tmp_path, "1", np.stack([third, near(rng, other[0], 0.1), other[1]])),
    ]
    log = DropLog(tmp_path / "drops")
    stays = find_near(parts, 0, log, 1, tmp_path / "edges")
    assert [rows.tolist() for rows in stays] == [[True, True, False], [True, False, True]]
    assert log.of_part(0)["document"].tolist() == [2] and log.of_part(1)["document"].tolist() == [1]


def test_what_a_corpus_has_is_never_dropped(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 256, NUM_BANDS * BAND, dtype=np.uint8)
    signatures = [
        signed(tmp_path, "old", np.stack([first, near(rng, first, 0.1)]), is_old=True),
        signed(tmp_path, "new", near(rng, first, 0.1)[None]),
    ]
    log = DropLog(tmp_path / "drops")
    stays = find_near(signatures, 1, log, 1, tmp_path / "edges")
    assert stays[0].tolist() == [True, True] and stays[1].tolist() == [False]
    assert log.of_part(0)["document"].tolist() == [0]
