"""Turns the records of a run's log into events, with a sentence for people."""

from collections.abc import Mapping
from typing import Any

from bertie.models.recipe import prediction_losses
from bertie.reporting.events import Event
from bertie.train.folder.history import SHARES

Record = dict[str, Any]
SCORES = ("f1", "macro_f1", "exact_match", "matthews", "spearman", "pearson", "mrr")  # of tasks, as papers write them


def run_event(record: Record) -> Event:
    """The event's kind is that of the record, but a note is a "message". Its data are the record."""
    kind, step = record["event"], record["step"]
    match kind:
        case "step":
            return Event(kind, format_step(record), record)
        case "note":
            return Event("message", record["what"], record)
        case "warning":
            return Event(kind, f"step {step:,}: {record['what']}", record)
        case "evaluation":
            return Event(kind, f"step {step:,}, held out: {format_figures(record)}", record)
        case "resume":
            inexact = "" if record["exact"] else f"; the result may differ in some bits: {', '.join(record['why'])}"
            return Event(kind, f"continuing after step {step:,}{inexact}", record)
        case "damaged":
            return Event(kind, f"a checkpoint is damaged and is skipped: {record['checkpoint']}", record)
        case _:
            return Event(kind, "", record)


def format_step(record: Mapping[str, Any]) -> str:
    words = [f"step {record['step']:,}", f"loss {record['loss']:.3f}", f"{record['tokens_per_second']:,.0f} tokens/s"]
    if "share_of_peak" in record:
        words.append(f"{record['share_of_peak']:.0%} of peak")
    return "  ".join(words)


def format_figure(name: str, value: float) -> str:
    """ "accuracy 60.7%", "macro f1 0.5812", "masked lm loss 4.1234"."""
    words = name.replace("_", " ") + (" loss" if name in prediction_losses() else "")
    return f"{words} {value:.1%}" if name.endswith(SHARES) else f"{words} {value:.4f}"


def format_figures(figures: Mapping[str, Any]) -> str:
    words = [f"loss {figures['loss']:.4f}"]
    words += [format_figure(name, value) for name, value in figures.items() if name.endswith(SHARES)]
    # With several tasks each has its own: "tag.f1".
    words += [format_figure(name, value) for name, value in figures.items() if name.rpartition(".")[2] in SCORES]
    if "perplexity" in figures:
        words.append(f"perplexity {figures['perplexity']:.1f}")
    name = next((name for name in prediction_losses() if name in figures), None)
    if name is not None and "unigram_loss" in figures:
        words.append(f"{name.replace('_', ' ')} {figures[name]:.4f} against {figures['unigram_loss']:.4f} by frequency")
    return ", ".join(words)
