"""Rows from what a Python program has in memory."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bertie.data.rows.memory_rows import rows_of
from bertie.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"text": "good", "label": "yes"},
    {"text": "bad", "label": "no"},
    {"text": "odd", "label": None},
]
COLUMNS = {"text": ["good", "bad", "odd"], "label": ["yes", "no", None]}


def values(data: Any) -> list[dict[str, Any]]:
    return [row.values for row in rows_of(data, "train")]


def test_a_list_of_dicts() -> None:
    rows = rows_of(ROWS, "train")
    assert values(rows) == ROWS
    assert rows.columns == ("text", "label")
    assert rows[1].where == "train: row 2"
    assert [row.where for row in rows[1:]] == ["train: row 2", "train: row 3"]


def test_dicts_may_have_different_fields() -> None:
    rows = rows_of([{"text": "a"}, {"text": "b", "label": 1}], "train")
    assert rows.columns == ("text", "label")
    assert values(rows) == [{"text": "a"}, {"text": "b", "label": 1}]


def test_a_row_that_is_changed_does_not_change_the_data() -> None:
    data = [{"text": "a"}]
    rows_of(data, "train")[0].values["text"] = "b"
    assert data == [{"text": "a"}]


def test_texts_are_rows_with_one_column() -> None:
    assert values(["good", "bad"]) == [{"text": "good"}, {"text": "bad"}]
    assert values(iter(["good", "bad"])) == [{"text": "good"}, {"text": "bad"}]
    assert rows_of(["a"], "rows").columns == ("text",)


def test_no_rows() -> None:
    assert values([]) == []
    assert rows_of([], "rows").columns == ()


def test_columns() -> None:
    assert values(COLUMNS) == ROWS
    assert values({"text": np.array(["a", "b"]), "score": np.array([0.5, math.nan])}) == [
        {"text": "a", "score": 0.5},
        {"text": "b", "score": None},
    ]


def test_numpy_values_become_plain_ones() -> None:
    (found,) = values([{"label": np.int64(3), "tokens": ("a", "b"), "vector": np.ones(2), "score": np.float32("nan")}])
    assert found == {"label": 3, "tokens": ["a", "b"], "vector": [1.0, 1.0], "score": None}
    assert type(found["label"]) is int


def test_an_arrow_table() -> None:
    rows = rows_of(pa.table(COLUMNS), "dev")
    assert values(rows) == ROWS
    assert rows[2].where == "dev: row 3"
    joined = pa.concat_tables([pa.table(COLUMNS), pa.table(COLUMNS)])
    assert values(joined) == ROWS + ROWS


def test_a_pandas_table() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**COLUMNS, "score": [1.5, math.nan, 2.0], "tags": [["A", "B"], ["C"], []]})
    assert values(frame) == [
        ROWS[0] | {"score": 1.5, "tags": ["A", "B"]},
        ROWS[1] | {"score": None, "tags": ["C"]},
        ROWS[2] | {"score": 2.0, "tags": []},
    ]
    shuffled = frame[["text", "label"]].sort_values("text")
    assert values(shuffled) == [ROWS[1], ROWS[0], ROWS[2]], "the index is no column, and the order is the table's"
    assert values(frame[["text"]].astype("category")) == [{"text": row["text"]} for row in ROWS]
    assert values(frame["text"]) == [{"text": row["text"]} for row in ROWS]
    mixed = pandas.DataFrame({"text": ["a", "b"], "label": pandas.Series([1, "one"], dtype=object)})
    assert values(mixed) == [{"text": "a", "label": 1}, {"text": "b", "label": "one"}]


def test_a_polars_table() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({**COLUMNS, "score": [1.5, math.nan, None]})
    scores = [1.5, None, None]
    assert values(frame) == [row | {"score": score} for row, score in zip(ROWS, scores, strict=True)]
    assert values(frame.lazy().select("text", "label").filter(polars.col("text") != "bad")) == [ROWS[0], ROWS[2]]
    assert values(frame.select(polars.col("text").cast(polars.Categorical))) == [{"text": row["text"]} for row in ROWS]


def test_a_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
        | {"tags": datasets.List(datasets.ClassLabel(names=["O", "B"]))}
    )
    data = datasets.Dataset.from_dict(
        {"text": ["good", "bad"], "label": [1, 0], "tags": [[0, 1], []]}, features=features
    )
    good = {"text": "good", "label": "yes", "tags": ["O", "B"]}
    bad = {"text": "bad", "label": "no", "tags": []}
    assert values(data) == [good, bad]
    assert "read as their names" in rows_of(data, "train").notices[0]
    assert values(data.select([1, 0])) == [bad, good]
    assert values(data.with_format("torch")) == [good, bad]
    assert values(data.to_iterable_dataset()) == [good, bad]
    with pytest.raises(InputError, match=r"several splits; give one of them: data\['train'\]"):
        rows_of(datasets.DatasetDict({"train": data}), "train")


def test_rows_and_paths_are_taken_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "good"}\n')
    rows = rows_of(path, "train")
    assert rows_of(rows, "dev") is rows
    for given in (path, str(path), [path]):
        assert values(given) == [{"text": "good"}]
        assert rows_of(given, "train")[0].where == f"{path}:1"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, "train: rows cannot be read from int; give paths, a list of dicts"),
        (b"text", "train: rows cannot be read from bytes"),
        ([1, 2], "train: row 1: this is int, where a row is a dict or a text"),
        (["a", {"text": "b"}], "train: row 2: this is dict"),
        ([{"text": "b"}, "a"], "train: row 2: this is str"),
        ([("a", "b")], "train: row 1: this is tuple"),
        ({"text": ["a"], "label": []}, r"train: columns are lists of the same length \(text 1, label 0\)"),
        ({"text": "a"}, r"train: columns are lists of the same length \(there is none\); one row alone is a list"),
    ],
)
def test_what_is_no_row_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(data, "train")


def test_no_library_of_tables_is_imported() -> None:
    code = (
        "import sys; from bertie.data.rows.memory_rows import rows_of; rows_of([{'text': 'a'}], 'train');"
        "print([name for name in ('pandas', 'polars', 'datasets') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
