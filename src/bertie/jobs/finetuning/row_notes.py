"""Reports what was done to rows on their way into a model: cut and unknown tokens, corrected words, unusable rows."""

from contextlib import suppress

from bertie.errors import InputError
from bertie.reporting.events import OnEvent, message, warning
from bertie.tasks.examples import Examples


def report_rows(examples: Examples, on_event: OnEvent) -> None:
    """After the rows were read."""
    if cuts := list(examples.num_cut.values()):
        what = f"{len(cuts):,} rows were longer than {examples.max_length} tokens and were cut"
        on_event(message(f"{what}: {sum(cuts):,} tokens were not read"))
    if examples.tokenizer.confusable.steps:
        report_corrected_rows(examples, on_event)
    if (what_is_unknown := examples.unknown.warning()) is not None:
        on_event(warning(what_is_unknown))
    if examples.faults.counts:
        on_event(warning(str(examples.faults)))


def report_corrected_rows(examples: Examples, on_event: OnEvent) -> None:
    """Where the tokenizer has a table of words to correct."""
    table = examples.tokenizer.confusable
    rows, numbers, count = examples.data.rows, examples.data.sample_numbers(), 0
    for number in numbers:
        with suppress(InputError):  # reported when the row is used
            count += sum(map(table.count, examples.task.written(examples.data.values(number)[0])))
    among = "" if len(numbers) == rows.num_rows else f", among {len(numbers):,} rows that were checked"
    on_event(message(f"{rows.name}: {count:,} words are corrected by the table{among}"))
