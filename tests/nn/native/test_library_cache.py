"""The cache of libraries: what was damaged is compiled again, what others could have written is not loaded."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.nn.native.test_library import ANSWER, CHECK, kept, needs_compiler

from bertie.nn.native import library as library_file
from bertie.nn.native.library import lazy_library, load_library

LOAD = """
import sys
from pathlib import Path
from bertie.nn.native.library import load_library
sys.exit(load_library(Path(sys.argv[1]), sys.argv[2]).answer() != 42)
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("BERTIE_NATIVE", raising=False)
    library_file._warn_once.cache_clear()
    (tmp_path / "answer.c").write_text(ANSWER)
    needs_compiler(tmp_path / "answer.c")
    return tmp_path / "answer.c"


def load_apart(source: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a library that was cut short kills it where it is loaded."""
    return subprocess.run([sys.executable, "-c", LOAD, str(source), CHECK], capture_output=True, text=True)


def replace_content(path: Path, content: bytes) -> None:
    """As another file: the old one may be mapped by this process."""
    path.unlink()
    path.write_bytes(content)
    path.chmod(0o700)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_library_that_was_cut_short_is_compiled_again(source: Path, share: float) -> None:
    (path,) = kept(source, ".so")
    whole = path.read_bytes()
    replace_content(path, whole[: int(share * len(whole))])
    done = load_apart(source)
    assert done.returncode == 0, done.stderr
    assert len(path.read_bytes()) == len(whole) and (path.stat().st_mode & 0o777) == 0o700


def test_garbage_and_changed_bytes_are_compiled_again(source: Path) -> None:
    (path,) = kept(source, ".so")
    whole = path.read_bytes()
    for content in (b"not a library", os.urandom(20_000), whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]):
        replace_content(path, content)
        loaded = load_library(source, CHECK)
        assert loaded is not None and loaded.answer() == 42
        assert len(path.read_bytes()) == len(whole) and path.read_bytes() != content


def test_a_library_without_the_function_is_left_to_torch(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_file, "load_library", lambda *_: ctypes.CDLL(str(kept(source, ".so")[0])))
    load = lazy_library("gelu.c", CHECK, {"question": []})
    with pytest.warns(UserWarning, match=r"gelu\.c lacks a function .*question.*: torch does its work"):
        assert load() is None
    assert load() is None


@pytest.mark.parametrize("name", ["bertie", "bertie/native"])
def test_a_folder_that_others_may_write_is_emptied_and_closed(source: Path, name: str) -> None:
    (path,) = kept(source, ".so")
    replace_content(path, path.read_bytes())  # as somebody could have put it there
    planted = path.stat().st_ino
    folder = source.parent / "cache" / name
    folder.chmod(0o770)
    with pytest.warns(UserWarning, match="other users could write here"):
        assert load_library(source, CHECK) is not None
    assert folder.stat().st_mode & 0o022 == 0
    assert kept(source, ".so") == [path] and path.stat().st_ino != planted


def test_a_library_that_others_may_write_is_compiled_again(source: Path) -> None:
    (path,) = kept(source, ".so")
    path.chmod(0o777)
    assert load_library(source, CHECK) is not None
    assert path.stat().st_mode & 0o777 == 0o700


def test_another_users_folder_is_not_used(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = kept(source, ".so")
    owner, before = os.geteuid(), path.read_bytes()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    private = source.parent / "private"
    private.mkdir()
    monkeypatch.setattr(library_file, "_own_folder", lambda: private)
    with pytest.warns(UserWarning, match="belongs to another user, .* for this process alone"):
        assert load_library(source, CHECK) is not None
    assert [one.suffix for one in private.iterdir()] == [".so"] and path.read_bytes() == before


def test_new_folders_are_for_this_user_alone(source: Path) -> None:
    for name in ("bertie", "bertie/native"):
        assert (source.parent / "cache" / name).stat().st_mode & 0o777 == 0o700


def test_two_processes_that_compile_at_once_both_get_it(source: Path) -> None:
    for path in kept(source, ".so"):
        path.unlink()
    both: list[Any] = [subprocess.Popen([sys.executable, "-c", LOAD, str(source), CHECK]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len(kept(source, ".so")) == 1 and len(list((source.parent / "cache/bertie/native").iterdir())) == 1
