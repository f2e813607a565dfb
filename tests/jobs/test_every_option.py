"""Every numeric option of every job, with values that no run can use: a sentence or a valid job, never a traceback."""

import types
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any, Union, get_args, get_origin

import pytest

from bertie.cli.app import VERBS
from bertie.errors import UserError
from bertie.jobs.finetuning.finetune import FinetuneJob
from bertie.jobs.finetuning.finetune_options import AdaptationOptions
from bertie.jobs.job import Job, Option
from bertie.tasks import TASKS

STRANGE = ("nan", "inf", "-inf", "-1", str(10**30), "9" * 5000, "1e400", "", " ", "abc", "0x10", "1_0", "٣")
STRANGE_VALUES: tuple[Any, ...] = (float("nan"), float("inf"), -1, -0.5, 10**30, 10**400, b"1", [], {}, object())


PLAIN = {"number": 0, "runs": ("x", "x")}  # options that a text does not satisfy


def jobs(verbs: Any = VERBS) -> Iterator[type[Job]]:
    for verb in verbs.values():
        yield from jobs(verb.inner)
        if verb.job and not verb.inner and "cli" not in verb.job:
            module, name = verb.job.split(":")
            found = getattr(import_module(module), name)
            yield from map(FinetuneJob.for_task, TASKS) if found is FinetuneJob else [found]


def is_numeric(annotation: Any) -> bool:
    if annotation in (int, float):
        return True
    if get_origin(annotation) in (Union, types.UnionType, Annotated, tuple):
        return any(map(is_numeric, get_args(annotation)))
    return False


def numeric_options() -> list[tuple[type[Job], Option]]:
    return [(job, one) for job in jobs() for one in job.options() if is_numeric(one.field.annotation)]


def required(job: type[Job], but: str) -> dict[str, Any]:
    others = {name: other for name, other in job.requires.items() if name == but}
    needed = {one.name: "x" for one in job.options() if one.field.is_required() and one.name != but}
    return {
        **needed,
        **{name: PLAIN[name] for name in needed if name in PLAIN},
        **{other: "fgm" if other == "adversarial" else "1" for other in others.values()},
    }


@pytest.mark.parametrize(
    ("job", "one"), [pytest.param(*two, id=f"{two[0].__name__}-{two[1].name}") for two in numeric_options()]
)
def test_a_strange_number_is_a_sentence_or_a_job(job: type[Job], one: Option) -> None:
    for value in (*STRANGE, *STRANGE_VALUES):
        try:
            made = job.of(**{**required(job, one.name), one.name: value})
        except UserError as error:
            shown = str(value)[:20] if isinstance(value, str) else ""
            assert f"`{one.name}" in str(error), (value, str(error))
            assert "\n" not in str(error), shown
            assert len(str(error)) < 500, shown
        else:
            found = getattr(getattr(made, one.group) if one.group else made, one.name)
            for number in found if isinstance(found, tuple | list) else (found,):
                if isinstance(number, int | float):
                    assert number == number and abs(number) <= 2**63, (one.name, value)


def test_numbers_are_found() -> None:
    names = {one.name for _, one in numeric_options()}
    assert names >= {
        "ram",
        "seed",
        "epochs",
        "lr",
        "batch",
        "width",
        "size",
        "steps",
        "max_length",
        "time",
        "tokens",
        "sizes",
    }


def test_a_limit_is_named() -> None:
    with pytest.raises(UserError, match=r"`batch`: .*65536"):
        FinetuneJob.of(task="classify", train="x", batch=10**12)


@pytest.mark.parametrize("count", ["9" * 5000, "-1", "nan", "", "٣"])
def test_counts_that_may_also_be_words(count: str) -> None:
    for options in ({"freeze": count}, {"unfreeze_every": count}):
        with pytest.raises(UserError, match=f"`{next(iter(options))}`"):
            AdaptationOptions.parse(dict(options)).learning(10)
