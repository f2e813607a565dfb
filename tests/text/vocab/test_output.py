"""Folders that appear whole or not at all, and places that cannot be written to."""

import errno
import os
from pathlib import Path

import pytest

from bertie import disk
from bertie.errors import FolderError
from bertie.text.vocab.output import check_out, new_folder


def test_a_place_inside_a_file_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(FolderError, match=r"file: is a file.*`out`"):
        check_out(tmp_path / "file" / "below" / "vocab", overwrite=False)


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)  # root may write anywhere
    with pytest.raises(FolderError, match="the folder cannot be written to; choose another `out`"):
        check_out(tmp_path / "not" / "yet" / "vocab", overwrite=False)
    (tmp_path / "there").mkdir()
    check_out(tmp_path / "there" / "vocab", overwrite=False)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(errno.EROFS, r"writing failed \(Read-only file system\); fix that"), (errno.ENOSPC, "the disk is full; free")],
)
def test_a_failed_write_is_one_sentence_and_leaves_nothing(tmp_path: Path, number: int, sentence: str) -> None:
    with pytest.raises(FolderError, match=sentence), new_folder(tmp_path / "vocab", overwrite=False) as folder:
        (folder / "vocab.txt").write_text("a")
        raise OSError(number, os.strerror(number))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_became_read_only_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**named: object) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(disk, "mkdtemp", refuse)
    with pytest.raises(FolderError, match="Read-only"), new_folder(tmp_path / "vocab", overwrite=False):
        pass
