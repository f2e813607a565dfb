"""What is said of a run, whatever its budget."""

from bertie.train.run_events import Record, format_step, run_event

STEP: Record = {"event": "step", "step": 1200, "loss": 2.34567, "tokens_per_second": 6543.2, "progress": 0.25}


def test_a_step_shows_what_is_known() -> None:
    assert format_step(STEP) == "step 1,200  loss 2.346  6,543 tokens/s"
    assert format_step({**STEP, "share_of_peak": 0.617}).endswith("6,543 tokens/s  62% of peak")


def test_a_resume_says_where_and_why_it_may_not_be_exact() -> None:
    resumed: Record = {"event": "resume", "step": 1199, "exact": True, "why": []}
    assert run_event(resumed).message == "continuing after step 1,199"
    why = ["threads was 2", "its budget is time"]
    inexact = run_event({"event": "resume", "step": 5, "exact": False, "why": why}).message
    assert inexact == "continuing after step 5; the result may differ in some bits: threads was 2, its budget is time"


def test_evaluations_and_warnings_have_messages() -> None:
    figures = {"loss": 3.0, "masked_lm": 2.5, "masked_lm_accuracy": 0.5, "unigram_loss": 4.0, "perplexity": 12.18}
    evaluation = run_event({"event": "evaluation", "step": 9, **figures}).message
    assert evaluation.startswith("step 9, held out: loss 3.0000, masked lm accuracy 50.0%, perplexity 12.2, masked lm")
    warning = run_event({"event": "warning", "step": 9, "what": "not better"})
    assert (warning.kind, warning.message) == ("warning", "step 9: not better")
    note = run_event({"event": "note", "step": 0, "what": "3 of 9 rows are cut"})
    assert (note.kind, note.message) == ("message", "3 of 9 rows are cut")
    damaged = run_event({"event": "damaged", "step": 4, "checkpoint": "step-00000008: cannot be read"})
    assert "is damaged and is skipped: step-00000008" in damaged.message
