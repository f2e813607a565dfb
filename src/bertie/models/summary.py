"""Describes a model in a few lines, for terminals and notebooks."""

from html import escape

from bertie.models.filling import LoadReport
from bertie.models.model import Model
from bertie.nn.stack import StackSpec
from bertie.reporting.quantities import format_count
from bertie.tasks.task import Task
from bertie.text import Tokenizer

MAX_LABELS = 6  # that are listed


def summarize(model: Model, tokenizer: Tokenizer | None, report: LoadReport, source: str | None) -> dict[str, str]:
    """What a user wants to know of a model first, by name."""
    recipe, encoder = model.recipe, model.recipe.encoder
    parameters = sum(parameter.numel() for parameter in model.parameters())
    stack = encoder.stack
    depth = f"{stack.depth} layers of width {encoder.width}" if isinstance(stack, StackSpec) else "its own stack"
    summary = {"recipe": recipe.name, "encoder": depth, "parameters": format_count(parameters)}
    kind = "no tokenizer" if tokenizer is None else tokenizer.kind
    summary["vocabulary"] = f"{recipe.vocab_size:,} pieces, {kind}"
    if limit := encoder.embeddings.max_length:
        summary["max_length"] = f"{limit:,} tokens"
    tasks = [one for one in recipe.objectives if isinstance(one, Task)]
    heads = [one.name for one in recipe.objectives if not isinstance(one, Task)]
    for task in tasks:
        head = task.hf_head()
        labels = list(head.labels) if head else []
        listed = ", ".join(labels[:MAX_LABELS]) + (f" and {len(labels) - MAX_LABELS} more" * (len(labels) > MAX_LABELS))
        key = "task" if len(tasks) == 1 else f"task {task.name}"
        summary[key] = f"{task.name}: {listed}" if listed else task.name
    if heads:
        summary["heads"] = ", ".join(heads)
    if not report.clean:
        summary["weights"] = str(report)
    if source:
        summary["from"] = source
    return summary


def summary_text(summary: dict[str, str]) -> str:
    width = max(len(name) for name in summary)
    return "\n".join(["Pretrained model", *(f"  {name:<{width}}  {value}" for name, value in summary.items())])


def summary_html(summary: dict[str, str]) -> str:
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in summary.items()
    )
    return f"<table><caption>Pretrained model</caption>{rows}</table>"
