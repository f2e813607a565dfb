"""The progress line: silent without a watcher, silent for short work, and it never swallows an error."""

import io
import sys

import pytest

from bertie import progress
from bertie.progress import progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_written_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line("embedding", 3, "texts") as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("show", [None, True])
def test_short_work_stays_silent(show: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_line("embedding", 3, "texts", show) as advance:
        advance(3)
    assert screen.getvalue() == ""


def test_short_work_stays_silent_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line("embedding", 3, "texts", show=True) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


def test_long_work_shows_what_how_many_and_how_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with progress_line("embedding", 30, "texts") as advance:
        advance(10)
        advance(5)
    assert "embedding" in screen.getvalue()
    assert "15/30" in screen.getvalue()
    assert "texts/s" in screen.getvalue()


def test_nothing_is_written_when_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with progress_line("embedding", 30, "texts", show=False) as advance:
        advance(10)
    assert screen.getvalue() == ""


def test_an_error_inside_comes_out_and_the_line_is_taken_down(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with pytest.raises(KeyError, match="gone"), progress_line("embedding", 30, "texts") as advance:
        advance(1)
        raise KeyError("gone")
    assert "\x1b[?25h" in screen.getvalue()  # the cursor is shown again
