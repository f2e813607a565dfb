"""Data as an option: what is a path, what is a text, what is in memory."""

from pathlib import Path

import pytest

from bertie.errors import InputError
from bertie.jobs.options.data import as_data, is_paths


def test_a_single_string_is_a_path() -> None:
    assert as_data("train.tsv") == (Path("train.tsv"),)


def test_strings_that_name_files_are_paths(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a")
    assert is_paths(as_data([str(file), str(file)]))


def test_other_strings_are_texts() -> None:
    assert as_data(["a good film", "a bad one"]) == ["a good film", "a bad one"]
    assert as_data(["x" * 5000, "null\0byte"]) == ["x" * 5000, "null\0byte"]


def test_a_missing_file_is_not_taken_for_a_text(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a")
    for given in (["train.tsv"], [str(file), "other text"]):
        with pytest.raises(InputError, match="no such file"):
            as_data(given)


def test_rows_stay_as_they_are() -> None:
    rows = [{"text": "a"}]
    assert as_data(rows) is rows
