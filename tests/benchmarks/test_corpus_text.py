"""The text of a corpus run: its size is that of the texts alone, and a sample ends with a whole document."""

import gzip
import json
from pathlib import Path

import pytest
from benchmarks.corpus_text import prepare

from bertie.errors import InputError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        for number in range(10):
            stream.write(json.dumps({"title": "x", "text": "é" * 50 + str(number)}) + "\n")
    return path


def test_a_whole_file_is_taken_as_it_is(file: Path, tmp_path: Path) -> None:
    source = prepare(file, tmp_path / "unused", None)
    assert (source.file, source.num_bytes, source.num_documents) == (file, 1010, 10)


def test_a_sample_is_whole_documents_from_the_front(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    source = prepare(file, folder, 250)
    assert (source.file.parent, source.num_bytes, source.num_documents) == (folder, 303, 3)
    with gzip.open(source.file, "rt", encoding="utf-8") as stream:
        assert [json.loads(line)["text"][-1] for line in stream] == ["0", "1", "2"]


def test_missing_text_is_a_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the benchmark's text is missing"):
        prepare(tmp_path / "none.jsonl.gz", tmp_path, None)
