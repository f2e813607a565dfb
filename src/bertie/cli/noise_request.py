"""The words about misspelt texts enter, of `finetune`, `evaluate` and `predict`; noise leaves, its rates, and what is
told of words that were put right."""

from contextlib import suppress
from pathlib import Path

from bertie.cli.task_request import say
from bertie.errors import InputError, SpecError
from bertie.tasks.task import Task, Values
from bertie.text.noise import Noise, read_groups
from bertie.text.pipeline import table_of
from bertie.text.tokenizer import Tokenizer
from bertie.train.finetuning import fitting_rows
from bertie.train.task_data import Labelled


def noise_of(rate: float | None, confusable: Path | None) -> Noise | None:
    if rate is None:
        if confusable is not None:
            raise SpecError("--confusable says nothing without --noise", hint="leave out --confusable")
        return None
    groups = () if confusable is None else read_groups(confusable)
    return Noise.parse({"rate": rate, "groups": groups}, where="--noise")


def noises_of(words: str | None, confusable: Path | None) -> list[Noise]:
    """One for each of 0,0.1,0.3; none where nothing is said."""
    rates = [None] if words is None else rates_of(words)
    return [one for rate in rates if (one := noise_of(rate, confusable)) is not None]


def rates_of(words: str) -> list[float]:
    try:
        rates = [float(word) for word in words.split(",")]
    except ValueError:
        rates = []
    if not rates or not all(0 <= rate <= 1 for rate in rates):
        raise SpecError(f"--noise {words!r} is no list of shares", hint="like --noise 0,0.1,0.3,0.5")
    return sorted(set(rates))


def num_replaced(tokenizer: Tokenizer, task: Task, values: Values) -> int:
    """Words of a row that a model's table puts right."""
    return sum(map(table_of(tokenizer).count, task.written(values)))


def tell_replaced(tokenizer: Tokenizer, task: Task, rows: Labelled) -> None:
    """How many words of the rows a model's table puts right; nothing where it has no table."""
    if not table_of(tokenizer).steps:
        return
    looked = fitting_rows(rows)
    count = 0
    for number in looked:
        with suppress(InputError):  # it is told when the row is read for its own sake
            count += num_replaced(tokenizer, task, rows.values(number)[0])
    among = f"{rows.rows.name}: {count:,} words are put right by the table"
    say(among if len(looked) == rows.rows.num_rows else f"{among}, in {len(looked):,} rows that were looked at")
