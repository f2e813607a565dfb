"""Reports what was done to rows on their way into a model: cut and unknown tokens, corrected words, unusable rows."""

from collections.abc import Iterable
from contextlib import suppress

from bertie.errors import InputError
from bertie.reporting.events import OnEvent, message, warning
from bertie.tasks.examples import Examples
from bertie.text.tokenizers.pipeline import table_of
from bertie.text.tokenizers.tokens import UnknownCount


def report_rows(examples: Examples, on_event: OnEvent) -> None:
    """After the rows were read."""
    report_cuts(list(examples.num_cut.values()), examples.max_length, on_event)
    report_corrected_rows(examples, on_event)
    report_unknown(examples.unknown, on_event)
    if examples.faults.num_faults:
        on_event(warning(str(examples.faults)))


def report_cuts(num_cut: Iterable[int], max_length: int, on_event: OnEvent) -> None:
    """`num_cut` are the tokens that were cut from each row."""
    if cuts := [count for count in num_cut if count]:
        what = f"{len(cuts):,} rows were longer than {max_length} tokens and were cut"
        on_event(message(f"{what}: {sum(cuts):,} tokens were not read"))


def report_unknown(count: UnknownCount, on_event: OnEvent) -> None:
    if (what := count.warning()) is not None:
        on_event(warning(what))


def report_corrected_rows(examples: Examples, on_event: OnEvent) -> None:
    table = table_of(examples.tokenizer)
    if not table.steps:
        return
    rows, numbers, count = examples.data.rows, examples.data.sample_numbers(), 0
    for number in numbers:
        with suppress(InputError):  # reported when the row is used
            count += sum(map(table.count, examples.task.written(examples.data.values(number)[0])))
    among = "" if len(numbers) == rows.num_rows else f", among {len(numbers):,} rows that were checked"
    on_event(message(f"{rows.name}: {count:,} words are corrected by the table{among}"))
