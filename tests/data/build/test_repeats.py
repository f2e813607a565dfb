import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bertie.data.build import repeats, spilling
from bertie.data.build.repeats import HASHES, PLACES, WHOLE, DropLog, Signed, find_exact, find_near
from bertie.data.build.signing import as_bands
from bertie.data.duplicates import BAND, NUM_BANDS


def write_hashes(path: Path, rows: list[tuple[int, int, int]]) -> Path:
    np.save(path, np.sort(np.array(rows, HASHES), order="hash"))
    return path


@pytest.mark.parametrize("at_once", [500_000, 3])
def test_the_first_of_equal_texts_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(spilling, "ROWS_AT_ONCE", at_once)  # then the hashes come in several ranges
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
    log.write(1, 1, [dropped])
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
    monkeypatch.setattr(spilling, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(spilling, "FAN_OUT", 4)
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


def test_near_copies_are_found_whatever_fits_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    first = rng.integers(0, 256, (6, NUM_BANDS * BAND), dtype=np.uint8)
    parts = [
        signed(tmp_path, str(number), np.stack([near(rng, row, rng.choice([0.1, 0.25, 0.5])) for row in first]))
        for number in range(6)
    ]
    wanted = find_near(parts, 1, DropLog(tmp_path / "drops"), 1, tmp_path / "work")
    assert 0 < sum(int((~rows).sum()) for rows in wanted) < 30
    monkeypatch.setattr(spilling, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(spilling, "FAN_OUT", 3)
    monkeypatch.setattr(repeats, "SIGNATURES_AT_ONCE", 4)
    found = find_near(parts, 1, DropLog(tmp_path / "others"), 1, tmp_path / "work")
    assert [rows.tolist() for rows in found] == [rows.tolist() for rows in wanted]
    assert (tmp_path / "drops" / "1.drops").read_bytes() == (tmp_path / "others" / "1.drops").read_bytes()
    assert not list((tmp_path / "work").iterdir())


def test_drops_of_a_part_are_its_own(tmp_path: Path) -> None:
    log = DropLog(tmp_path / "drops")
    drops = np.zeros(6, repeats.DROPS)
    drops["part"], drops["document"] = [2, 0, 2, 5, 0, 2], [9, 1, 3, 0, 0, 4]
    log.write(0, 6, [drops[:2], drops[2:]])
    drops["reason"], drops["part"] = 3, 2
    log.write(3, 6, [drops])
    assert log.of_part(0)["document"].tolist() == [0, 1] and not len(log.of_part(1))
    assert log.of_part(2)["document"].tolist() == [3, 4, 9, 0, 0, 1, 3, 4, 9]
    assert log.of_part(2, (0, 1))["document"].tolist() == [3, 4, 9]
    assert (log.count(0), log.count(1), log.count(3)) == (6, 0, 6)
    log.remove(3)
    assert log.count(3) == 0 and log.of_part(2)["document"].tolist() == [3, 4, 9]


@pytest.fixture(scope="module")
def count_opens() -> Callable[[Callable[[], None]], int]:
    """`count_opens(do)`: how many files the call opens, by whatever library."""
    watching, num_opens = False, 0

    def hear(event: str, _: object) -> None:
        nonlocal num_opens
        num_opens += watching and event == "open"

    sys.addaudithook(hear)  # which cannot be taken back

    def count(do: Callable[[], None]) -> int:
        nonlocal watching, num_opens
        watching, num_opens = True, 0
        do()
        watching = False
        return num_opens

    return count


def search(folder: Path, num_parts: int) -> Callable[[], None]:
    """A search over so many parts; in each, two near copies of one text and five copies of one paragraph."""
    folder.mkdir()
    rng = np.random.default_rng(3)
    template = rng.integers(0, 256, NUM_BANDS * BAND, dtype=np.uint8)
    hashes, signatures = [], []
    for number in range(num_parts):
        rows = rng.integers(0, 256, (10, NUM_BANDS * BAND), dtype=np.uint8)
        rows[:2] = [near(rng, template, 0.1) for _ in range(2)]
        signatures.append(signed(folder, str(number), rows))
        own = [(int(one), 9, place) for place, one in enumerate(rng.integers(0, 1 << 63, 20))]
        hashes.append(write_hashes(folder / f"{number}.hashes.npy", [*own, *((7, 5, place) for place in range(5))]))
    (folder / "old.u64").write_bytes(np.arange(5, dtype="<u8").tobytes())
    log = DropLog(folder / "drops")

    def compare() -> None:
        find_near(signatures, 0, log, 1, folder / "work")
        find_exact(hashes, [folder / "old.u64"], log, 2, folder / "kept.u64")
        drops = np.concatenate([log.of_part(number) for number in range(num_parts)])
        assert np.bincount(drops["reason"]).tolist() == [0, 2 * num_parts - 1, 5 * num_parts - 1]

    return compare


def test_files_opened_grow_with_the_text_and_not_with_its_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count_opens: Callable[[Callable[[], None]], int]
) -> None:
    monkeypatch.setattr(spilling, "ROWS_AT_ONCE", 30)
    monkeypatch.setattr(spilling, "FAN_OUT", 8)
    few, many = (count_opens(search(tmp_path / str(num_parts), num_parts)) for num_parts in (4, 16))
    assert many < 5 * few
