"""The progress line: what is said of a run, whatever its budget."""

import pytest
from rich.console import Console

from bertie.cli import run_line
from bertie.cli.run_line import Record, RunLine, step_told

STEP: Record = {"event": "step", "step": 1200, "loss": 2.34567, "tokens_per_second": 6543.2, "progress": 0.25}


def test_a_step_is_told_with_what_is_known() -> None:
    assert step_told(STEP) == "step 1,200  loss 2.346  6,543 tokens/s"
    assert step_told({**STEP, "share_of_peak": 0.617}).endswith("6,543 tokens/s  62% of peak")


def tell(monkeypatch: pytest.MonkeyPatch, *records: Record) -> tuple[RunLine, str]:
    console = Console(width=200)
    monkeypatch.setattr(run_line, "console", console)
    with console.capture() as captured, RunLine() as line:
        for record in records:
            line.tell(record)
    return line, captured.get()


def test_the_bar_is_the_share_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    line, _ = tell(monkeypatch, STEP, {**STEP, "progress": 0.5})
    assert (line.progress.tasks[0].completed, line.progress.tasks[0].total) == (0.5, 1.0)


def test_what_was_done_before_is_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    resumed: Record = {"event": "resume", "step": 1199, "exact": True, "why": []}
    line, printed = tell(monkeypatch, resumed, {**STEP, "progress": 0.6})
    assert printed == "going on after step 1,199\n"
    assert line.progress.tasks[0].completed == 0.6
    assert line.progress.tasks[0].speed is None, "the jump to 0.6 took no time"


def test_a_resume_that_is_not_exact_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    why = ["threads was 2", "its budget is time"]
    _, printed = tell(monkeypatch, {"event": "resume", "step": 5, "exact": False, "why": why})
    assert printed == "going on after step 5; not bit for bit as without a stop: threads was 2, its budget is time\n"


def test_evaluations_and_warnings_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: Record = {
        "loss": 3.0,
        "masked_lm": 2.5,
        "masked_lm_accuracy": 0.5,
        "unigram_loss": 4.0,
        "perplexity": 12.18,
    }
    _, printed = tell(
        monkeypatch,
        {"event": "evaluation", "step": 9, **figures},
        {"event": "warning", "step": 9, "what": "not better"},
        {"event": "note", "step": 0, "what": "3 of 9 rows are cut"},
        {"event": "damaged", "step": 4, "checkpoint": "step-00000008: cannot be read"},
    )
    assert (
        "step 9, held out: loss 3.0000, masked lm accuracy 50.0%, perplexity 12.2, masked lm 2.5000 against" in printed
    )
    assert "step 9: not better" in printed
    assert "\n3 of 9 rows are cut\n" in printed
    assert "is damaged and is passed over: step-00000008" in printed
