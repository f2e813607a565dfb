"""Paths: what they are, and those that no file can have."""

import os
from pathlib import Path

import pytest

from bertie.errors import InputError
from bertie.text.reading.paths import kind_of_path


def test_kinds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    os.mkfifo(tmp_path / "pipe")
    kinds = [kind_of_path(path) for path in (tmp_path, tmp_path / "a.txt", tmp_path / "pipe", tmp_path / "none")]
    assert kinds == ["folder", "file", "pipe", "missing"]
    assert kind_of_path("/dev/zero") == "device" and kind_of_path("~nosuchuser/a.txt") == "missing"


def test_paths_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "pool")
    (tmp_path / "pool").symlink_to(tmp_path / "loop")
    cases = {
        "x" * 5000: "the path is too long",
        "a\0b": "the path has a NUL byte",
        str(tmp_path / "loop"): "a link that leads back to itself",
        os.fsdecode(b"n\xff.txt"): "the name is not UTF-8",
    }
    for path, what in cases.items():
        with pytest.raises(InputError, match=what) as raised:
            kind_of_path(path)
        assert len(str(raised.value)) < 500
        str(raised.value).encode("utf-8")  # can be printed
