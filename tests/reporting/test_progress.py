"""Progress: no bar without a watcher or for short work, and no error is swallowed."""

import io
import re
import sys

import pytest
from rich.console import Console

from bertie.reporting import progress
from bertie.reporting.events import Event, message, warning
from bertie.reporting.events import progress as event
from bertie.reporting.progress import ProgressDisplay, progress_line


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


# --- events


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    return Terminal()


def display_on(screen: Terminal, quiet: bool = False) -> ProgressDisplay:
    return ProgressDisplay(Console(file=screen, width=160), quiet=quiet)


def lines_of(screen: Terminal) -> list[str]:
    """What was drawn, one string for each time the bar was drawn."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    return [line.strip() for line in re.split(r"[\r\n]+", plain) if line.strip()]


def test_messages_are_printed_above_the_bar(screen: Terminal) -> None:
    with display_on(screen) as display:
        display(event("counting", 0, 10, "files"))
        display(message("three [b]files[/b] :cat: are left out"))
        display(warning("one file is empty"))
        display(event("counting", 5, 10, "files"))
    lines = lines_of(screen)
    assert "three [b]files[/b] :cat: are left out" in lines, "as it is, without markup"
    assert "one file is empty" in lines
    assert any("5/10 files" in line for line in lines)


def test_messages_are_printed_and_bars_are_not_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay() as display:
        display(event("counting", 5, 10, "files"))
        display(message("a message " + "x" * 200))
        display(Event("saved", "the model is saved"))
        display(Event("finished", data={"step": 3}))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "a message " + "x" * 200 + "\nthe model is saved\n"


def test_nothing_is_shown_when_quiet(screen: Terminal) -> None:
    with display_on(screen, quiet=True) as display:
        display(event("counting", 5, 10, "files"))
        display(message("a message"))
    assert screen.getvalue() == ""


def test_what_was_done_before_does_not_count_as_speed(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with display_on(screen) as display:
        display(event("embedding", 1_000_000, 2_000_000, "texts"))
        now += 10
        display(event("embedding", 1_000_020, 2_000_000, "texts"))
    assert "1,000,020/2,000,000 texts  2 texts/s" in lines_of(screen)[-1]


def test_work_of_unknown_size_has_a_bar_too(screen: Terminal) -> None:
    with display_on(screen) as display:
        display(event("reading", 0, None, "rows"))
        display(event("reading", 1_234, None, "rows"))
        assert display._bar is not None
        display._bar.refresh()
        display(event("searching", 0, None, ""))
    assert any("1,234 rows" in line for line in lines_of(screen))
    assert "searching" in lines_of(screen)[-1] and "reading" not in lines_of(screen)[-1]


def test_a_fraction_moves_the_bar_where_the_total_is_not_known(screen: Terminal) -> None:
    with display_on(screen) as display:
        display(event("embedding", 0, None, "texts", fraction=0.0, tokens_per_second=0.0))
        display(event("embedding", 20, None, "texts", fraction=0.25, tokens_per_second=10_000.0))
        assert display._bar is not None
        display._bar.refresh()
        display(event("embedding", 50, None, "texts", fraction=1.0, tokens_per_second=12_345.6))
    assert any("25%  20 texts" in line for line in lines_of(screen))
    assert "100%  50 texts" in lines_of(screen)[-1] and "12,346 tokens/s" in lines_of(screen)[-1]
    assert "0:00:00" in lines_of(screen)[-1], "nothing is left"


def test_steps_of_a_run_show_loss_and_speed(screen: Terminal) -> None:
    record = {"step": 1_200, "progress": 0.5, "loss": 2.34567, "tokens_per_second": 9_876.5, "share_of_peak": 0.4}
    with display_on(screen) as display:
        display(Event("step", data={**record, "step": 1_190, "progress": 0.49}))
        display(event("evaluating", 3, 10, "batches"))
        assert display._bar is not None
        display._bar.refresh()
        display(Event("step", data=record))
    assert any("evaluating" in line and "training" not in line for line in lines_of(screen))
    assert "training" in lines_of(screen)[-1]
    assert "50%  step 1,200  loss 2.346  9,876 tokens/s  40% of peak" in lines_of(screen)[-1]


def test_brackets_in_a_text_field_are_shown_as_they_are(screen: Terminal) -> None:
    with display_on(screen) as display:
        display(event("reading", 1, 2, "rows", file="[bold]a.txt"))
    assert "[bold]a.txt" in lines_of(screen)[-1]
