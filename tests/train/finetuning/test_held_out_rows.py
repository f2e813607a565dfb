"""Rows held out of the training rows: a share, the same for the same seed, by label or in whole groups."""

from collections import Counter
from typing import Any

import pytest

from bertie.data.rows.memory_rows import rows_of
from bertie.errors import UserError
from bertie.tasks.classification import Classify
from bertie.tasks.labelled import Labelled, open_labelled
from bertie.train.finetuning import held_out_rows
from bertie.train.finetuning.held_out_rows import hold_out


def rows(count: int = 100) -> list[dict[str, Any]]:
    """One in five is bad; ten writers."""
    return [{"text": f"text {n}", "label": "good" if n % 5 else "bad", "writer": f"w{n % 10}"} for n in range(count)]


def labelled(given: list[dict[str, Any]]) -> Labelled:
    return open_labelled(Classify(), rows_of(given, "rows"))


def texts(data: Labelled) -> list[str]:
    return [values["text"] for values in data.all()]


def test_every_row_is_on_one_side_and_every_label_has_its_share() -> None:
    train, dev, what = hold_out(Classify(), labelled(rows()), 0.2, seed=0)
    assert sorted(texts(train) + texts(dev)) == sorted(row["text"] for row in rows())
    assert Counter(values["label"] for values in dev.all()) == {"good": 16, "bad": 4}
    assert "20 of 100 rows (20.0%) are held out" in what
    assert dev.rows.name == "20% of rows" and train.rows.name == "rows"


def test_the_seed_decides_which() -> None:
    first, again, other = (texts(hold_out(Classify(), labelled(rows()), 0.1, seed)[1]) for seed in (1, 1, 2))
    assert first == again != other


def test_groups_stay_together() -> None:
    train, dev, what = hold_out(Classify(), labelled(rows()), 0.3, 0, "writer")
    sides = [{row.values["writer"] for row in side.rows} for side in (train, dev)]
    assert not sides[0] & sides[1] and len(sides[1]) == 3
    assert "30 of 100 rows (30.0%) are held out, which are 3 of 10 groups by 'writer'" in what


def test_there_is_always_a_row_on_each_side() -> None:
    for share in (0.001, 0.999):
        train, dev, _ = hold_out(Classify(), labelled(rows(3)), share, 0)
        assert train.rows.num_rows and dev.rows.num_rows
        train, dev, _ = hold_out(Classify(), labelled(rows(100)), share, 0, "writer")
        assert train.rows.num_rows and dev.rows.num_rows


def test_many_rows_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out_rows, "SAMPLE", 50)
    data = labelled(rows())
    monkeypatch.setattr(Labelled, "values", lambda *_: pytest.fail("a row is read"))
    assert hold_out(Classify(), data, 0.1, 0)[1].rows.num_rows == 10


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(UserError, match="one row"):
        hold_out(Classify(), labelled(rows(1)), 0.5, 0)
    with pytest.raises(UserError, match="`group`: there is no column 'author'; its columns are text, label, writer"):
        hold_out(Classify(), labelled(rows()), 0.5, 0, "author")
    same = [{**row, "writer": "one"} for row in rows()]
    with pytest.raises(UserError, match="same value in all rows"):
        hold_out(Classify(), labelled(same), 0.5, 0, "writer")
