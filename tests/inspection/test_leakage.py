"""Leakage: planted lines are found, others are not, wherever the borders of blocks and documents fall."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from bertie.inspection import leakage as module
from bertie.inspection.leakage import hash_grams, measure_leakage


@dataclass(frozen=True)
class Row:
    ids: np.ndarray
    sentences: np.ndarray
    words: np.ndarray


class Rows:
    def __init__(self, rows: list[np.ndarray]):
        self.rows = rows
        self.num_documents = len(rows)
        self.lengths = np.array([len(row) for row in rows])

    def document(self, index: int) -> Row:
        ids = self.rows[index].astype(np.uint16)
        return Row(ids, np.zeros(1, np.uint32), np.ones(len(ids), bool))


@pytest.fixture
def corpus() -> Any:
    rng = np.random.default_rng(0)
    return Rows([rng.integers(0, 60_000, 400) for _ in range(50)])


@pytest.mark.parametrize("block", [1 << 20, 900])
def test_planted_lines_are_found(corpus: Any, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.default_rng(1)
    whole, short, tiny = corpus.rows[3][10:60], corpus.rows[49][393:], corpus.rows[7][:4]
    foreign, changed = rng.integers(0, 60_000, 30), whole.copy()
    changed[25] += 1
    across = np.concatenate([corpus.rows[0][-10:], corpus.rows[1][:10]])
    found = measure_leakage([foreign, whole, short, tiny, changed, across], corpus)
    assert found.found_lines == (1, 2)
    assert (found.num_lines, found.num_short, found.num_found_lines) == (6, 1, 2)
    # 13-grams: 18 foreign, 38 of the whole line, 13 new ones where it was changed, 8 across the border.
    assert found.num_grams == 18 + 38 + 13 + 8
    assert found.num_found_grams == 38
    assert found.line_share == pytest.approx(2 / 5)


def test_no_line_no_leakage(corpus: Any) -> None:
    found = measure_leakage([], corpus)
    assert (found.line_share, found.gram_share) == (0, 0)


def test_hashes_tell_order_apart() -> None:
    ids = np.array([1, 2, 3, 1, 2, 3, 3, 2, 1])
    hashes = hash_grams(ids, 3)
    assert len(hashes) == 7
    assert hashes[0] == hashes[3]
    assert len(set(hashes.tolist())) == 6
    assert len(hash_grams(ids, 10)) == 0
