"""Compiling, checking and keeping a library; whatever goes wrong, the answer is None."""

from pathlib import Path

import pytest

from bertie.nn.native.library import load_library

ANSWER = "int answer(void) { return 42; }\n"
CHECK = "import ctypes, sys; assert ctypes.CDLL(sys.argv[1]).answer() == 42"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("BERTIE_NATIVE", raising=False)
    (tmp_path / "answer.c").write_text(ANSWER)
    return tmp_path / "answer.c"


def kept(source: Path, ending: str) -> list[Path]:
    return sorted((source.parent / "cache/bertie/native").glob(f"*{ending}"))


def needs_compiler(source: Path) -> None:
    if load_library(source, CHECK) is None:
        pytest.skip("no C compiler with OpenMP here")


def test_a_library_is_compiled_once_and_kept(source: Path) -> None:
    needs_compiler(source)
    (library,) = kept(source, ".so")
    before = library.stat().st_mtime_ns
    loaded = load_library(source, CHECK)
    assert loaded is not None
    assert loaded.answer() == 42
    assert library.stat().st_mtime_ns == before
    source.write_text(ANSWER.replace("42", "2 * 21"))
    assert load_library(source, CHECK) is not None
    assert len(kept(source, ".so")) == 2


@pytest.mark.parametrize(
    "check", ["assert False", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"], ids=["wrong", "illegal"]
)
def test_a_library_that_fails_its_check_is_refused_for_good(source: Path, check: str) -> None:
    needs_compiler(source)
    assert load_library(source, check) is None
    assert len(kept(source, ".refused")) == 1
    assert load_library(source, check) is None


def test_source_that_does_not_compile(source: Path) -> None:
    source.write_text("this is no C")
    assert load_library(source, CHECK) is None


@pytest.mark.parametrize(("name", "value"), [("BERTIE_NATIVE", "0"), ("XDG_CACHE_HOME", "/proc/nowhere")])
def test_switched_off_or_nowhere_to_keep_it(
    source: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert load_library(source, CHECK) is None


def test_without_a_compiler(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(source.parent))
    assert load_library(source, CHECK) is None
