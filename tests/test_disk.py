"""Files and folders that are whole or not there, locks between processes, and the sentence for a failed write."""

import errno
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors import SafetensorError

from bertie.disk import (
    MARK,
    atomic_file,
    atomic_folder,
    check_output,
    lock_file,
    refuse_inputs,
    sha256_of,
    write_failure,
    write_file,
    write_output,
    writing_to,
)
from bertie.errors import FolderError

HOLD_LOCK = """
import sys, time
from pathlib import Path
from bertie.disk import lock_file
file = open(sys.argv[1], "ab")
lock_file(file, Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(60)
"""


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"first")
    with atomic_file(tmp_path / "a") as file:
        file.write(b"second")
        file.flush()
        assert (tmp_path / "a").read_bytes() == b"first"
    assert (tmp_path / "a").read_bytes() == b"second"
    assert names_in(tmp_path) == ["a"]


@pytest.mark.parametrize("raised", [OSError(28, "full"), KeyboardInterrupt()])
def test_a_file_that_was_not_finished_leaves_the_old_one(tmp_path: Path, raised: BaseException) -> None:
    write_file(tmp_path / "a", b"first")
    with pytest.raises(type(raised)), atomic_file(tmp_path / "a") as file:
        file.write(b"sec")
        raise raised
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names_in(tmp_path) == ["a"]


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    for content in ("first", "second"):
        with atomic_folder(out) as folder:
            (folder / content).write_text(content)
    assert names_in(out) == ["second"]
    assert names_in(tmp_path / "deep") == ["out"]


def test_a_folder_that_was_not_finished_leaves_the_old_one(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "first").touch()
    with pytest.raises(ValueError, match="no"), atomic_folder(tmp_path / "out") as folder:
        (folder / "second").touch()
        raise ValueError("no")
    assert names_in(tmp_path) == ["out"]
    assert names_in(tmp_path / "out") == ["first"]


def test_the_digest_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1_000_000)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"x" * 1_000_000).hexdigest()


def test_a_lock_keeps_another_process_out_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD_LOCK, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other, path.open("ab") as file:
        assert other.stdout is not None and other.stdout.readline() == "locked\n"
        with pytest.raises(FolderError, match=f"another process is using {tmp_path}; wait until it ends"):
            lock_file(file, tmp_path)
        waited = []
        other.kill()
        lock_file(file, tmp_path, lambda: waited.append(time.monotonic()))
        assert len(waited) <= 1


def test_a_lock_does_not_change_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"content")
    with path.open("ab") as file:
        lock_file(file, path)
    assert path.read_bytes() == b"content"
    assert names_in(tmp_path) == ["data"]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "out: the disk is full; free some space, then run it again, or choose another `out`"),
        (errno.EDQUOT, "out: the disk is full; free some space, then run it again, or choose another `out`"),
        (errno.EROFS, "out: writing failed (Read-only file system); fix that, then run it again, or choose another"),
    ],
)
def test_a_failed_write_is_one_sentence(number: int, sentence: str) -> None:
    with pytest.raises(FolderError) as caught, writing_to(Path("out")):
        raise OSError(number, os.strerror(number))
    assert str(caught.value).startswith(sentence)


def test_the_sentence_of_a_failed_write_can_say_more() -> None:
    error = SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
    found = write_failure(error, Path("out"), then="run it again: it continues", after="300 texts")
    assert str(found) == "out: after 300 texts, the disk is full; free some space, then run it again: it continues"


# --- outputs


def test_an_output_that_is_an_input_is_refused_however_it_is_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "rows.tsv"
    rows.write_text("precious")
    (tmp_path / "link").symlink_to(rows)
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "hard").hardlink_to(rows)
    monkeypatch.chdir(tmp_path)
    same = [rows, Path("rows.tsv"), Path("..") / tmp_path.name / "rows.tsv", tmp_path / "folder" / "rows.tsv"]
    for output in (*same, tmp_path / "link", tmp_path / "hard"):
        with pytest.raises(FolderError, match="is also an input, which would be overwritten; choose another `output`"):
            check_output(output, "output", [tmp_path / "other.tsv", rows], overwrite=True)
    with pytest.raises(FolderError, match="is also an input"):
        refuse_inputs(tmp_path / "not-there", [tmp_path / "folder" / "not-there"])
    with pytest.raises(FolderError, match=r"has the input .*rows\.tsv in it; choose another `out`"):
        refuse_inputs(tmp_path, [rows])
    refuse_inputs(tmp_path / "new", [rows, "-", tmp_path])
    assert rows.read_text() == "precious"


def test_an_existing_file_is_replaced_only_where_the_user_says_so(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for file in (tmp_path / "answers.jsonl", model / "config.json"):
        file.write_text("old")
        with pytest.raises(FolderError, match="exists already; choose another `output`, or give `overwrite` to"):
            check_output(file, "output", [model], overwrite=False)
    check_output(tmp_path / "answers.jsonl", "output", [model], overwrite=True)
    with pytest.raises(FolderError, match=r"config\.json: is part of the input .*model"):
        check_output(model / "config.json", "output", [model], overwrite=True)


def test_a_page_is_replaced_only_where_bertie_wrote_it(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    check_output(page, "report")
    page.write_bytes(b"<html>my own")
    with pytest.raises(FolderError, match=r"exists already; choose another `report`$"):
        check_output(page, "report")
    write_output(page, b"<html>" + MARK, "report")
    check_output(page, "report")
    with pytest.raises(FolderError, match="is also an input"):
        check_output(page, "report", [page])


def test_places_that_cannot_be_written_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for output, message in [
        (tmp_path, "is a folder; name a file in it as `report`"),
        (tmp_path / "file" / "a.html", "file: is a file, so nothing can be written into it; choose another `report`"),
        (Path("/dev/null"), "/dev/null: is not a plain file; choose another `report`"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / ("x" * 300) / "a.html", "File name too long"),
        (tmp_path / "loop" / "a.html", "loop: is a link to nothing"),
    ]:
        with pytest.raises(FolderError, match=message):
            check_output(output, "report", [tmp_path / "file"])
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refuse(*_: object) -> None:
        raise full

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(FolderError, match="the disk is full; free some space, then run it again, or choose another"):
        write_output(tmp_path / "new" / "a.html", b"x", "report")
    assert names_in(tmp_path / "new") == []
