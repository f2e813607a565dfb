"""Parquet, Arrow files and folders that `datasets` saved: values as Python has them, labels by their names."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertie.data.rows import RowError, open_rows
from bertie.errors import InputError

Writer = Callable[[str, str | bytes], Path]

TABLE = pa.table(
    {
        "text": [f"text {number}" for number in range(3000)],
        "label": [number % 3 for number in range(3000)],
        "tags": [[number % 2, 1] for number in range(3000)],
    }
)
FEATURES = {
    "text": {"dtype": "string", "_type": "Value"},
    "label": {"names": ["bad", "fair", "good"], "_type": "ClassLabel"},
    "tags": {"feature": {"names": ["O", "B"], "_type": "ClassLabel"}, "_type": "Sequence"},
}


def save_dataset(folder: Path, tables: list[pa.Table]) -> Path:
    """As `datasets` does it: Arrow streams, and two files that tell of them."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05d}-of-{len(tables):05d}.arrow" for number in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        with pa.ipc.new_stream(str(folder / name), table.schema) as writer:
            writer.write_table(table, max_chunksize=700)
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    return folder


def test_parquet_gives_rows_by_number(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=1300)
    rows = open_rows([path])
    assert rows.num_rows == 3000 and rows.columns == ("text", "label", "tags")
    for number in (2999, 0, 1299, 1300, 1024):
        values = {"text": f"text {number}", "label": number % 3, "tags": [number % 2, 1]}
        assert rows.row(number) == (values, f"{path}: row {number + 1}")
    assert any("temporary file" in notice for notice in rows.notices)


def test_dictionaries_and_nulls_are_plain_values(tmp_path: Path) -> None:
    texts = pa.array(["a", None, "b"] * 1000).dictionary_encode()
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=500)
    assert [row.values["text"] for row in open_rows([tmp_path / "a.parquet"])] == ["a", None, "b"] * 1000


def test_a_saved_dataset_tells_labels_by_their_names(tmp_path: Path) -> None:
    folder = save_dataset(tmp_path / "set", [TABLE.slice(0, 2000), TABLE.slice(2000)])
    rows = open_rows([folder])
    assert rows.num_rows == 3000
    assert rows.row(1).values == {"text": "text 1", "label": "fair", "tags": ["B", "B"]}
    last = rows.row(2999)
    assert last.values["label"] == "good" and last.where == f"{folder}/data-00001-of-00002.arrow: row 1000"
    assert [notice for notice in rows.notices if "'label'" in notice and "'bad', 'fair', 'good'" in notice]


def test_names_in_a_schema_count_too_and_no_label_stays(tmp_path: Path) -> None:
    metadata = {"huggingface": json.dumps({"info": {"features": FEATURES}})}
    pq.write_table(pa.table({"label": [2, -1, 0]}).replace_schema_metadata(metadata), tmp_path / "a.parquet")
    assert [row.values["label"] for row in open_rows([tmp_path / "a.parquet"])] == ["good", -1, "bad"]


def test_a_folder_of_splits_is_refused_with_their_names(tmp_path: Path) -> None:
    save_dataset(tmp_path / "set/train", [TABLE])
    (tmp_path / "set/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(InputError) as raised:
        open_rows([tmp_path / "set"])
    assert str(tmp_path / "set/train") in str(raised.value) and str(tmp_path / "set/test") in str(raised.value)
    assert open_rows([tmp_path / "set/train"]).num_rows == 3000


@pytest.mark.slow
def test_what_the_library_saves(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        text=datasets.Value("string"),
        label=datasets.ClassLabel(names=["bad", "good"]),
        tags=datasets.Sequence(datasets.ClassLabel(names=["O", "B"])),
    )
    columns = {"text": ["a", "b", "c"], "label": [0, 1, 1], "tags": [[0], [1, 0], []]}
    made = datasets.Dataset.from_dict(columns, features=features)
    datasets.DatasetDict(train=made.select([2, 0])).save_to_disk(tmp_path / "sets")
    made.save_to_disk(tmp_path / "set", num_shards=2)
    made.to_parquet(tmp_path / "a.parquet")
    wanted = [["a", "bad", ["O"]], ["b", "good", ["B", "O"]], ["c", "good", []]]
    for path in (tmp_path / "set", tmp_path / "a.parquet"):
        assert [list(row.values.values()) for row in open_rows([path])] == wanted
    assert [row.values["text"] for row in open_rows([tmp_path / "sets/train"])] == ["c", "a"]


def test_an_arrow_file_alone(tmp_path: Path) -> None:
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert open_rows([tmp_path / "a.arrow"]).row(-1).values["text"] == "text 2999"


def test_text_that_is_no_utf8_is_a_wrong_row(tmp_path: Path) -> None:
    broken = pa.array([b"fine", b"caf\xe9"]).view(pa.string())
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), pa.schema({"text": pa.string()})) as writer:
        writer.write_table(pa.table({"text": broken}))
    rows = open_rows([tmp_path / "a.arrow"])
    assert rows.row(0).values == {"text": "fine"}
    with pytest.raises(RowError, match=r"a\.arrow: row 2: 'text' cannot be read"):
        rows.row(1)


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.parquet", "not a Parquet file"), ("a.arrow", "not an Arrow file"), ("a.parquet.gz", "plain file only")],
)
def test_other_bytes_are_refused(write: Writer, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows([write(name, b"nothing of the kind")])


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a saved dataset"):
        open_rows([tmp_path])
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(InputError, match=r"state\.json: cannot be read"):
        open_rows([tmp_path])
