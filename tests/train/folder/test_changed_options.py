"""What differs between two runs, in the names of the command line's options, without what follows from others."""

import copy
from typing import Any

import pytest

from bertie.jobs.finetuning.finetune import FinetuneJob
from bertie.jobs.job import Job
from bertie.jobs.training.pretrain import PretrainJob
from bertie.train.finetuning.finetuning import FinetuneOptions
from bertie.train.folder.changed_options import DERIVED, OBJECTIVE_OPTION_OF, OPTION_OF, START, changed_options
from bertie.train.pretraining.options import PretrainOptions

RUN: dict[str, Any] = {
    "version": 1,
    "options": FinetuneOptions.of_epochs([64], 2, 32, {}).model_dump(mode="json"),
    "recipe": {"name": "bert", "encoder": {"width": 8}, "objectives": [{"name": "classify", "labels": ["a", "b"]}]},
    "from": "0123",
    "data": [{"train": ["train.tsv", 64, {"text": "a"}], "dev": None}],
}


def changed(**changes: Any) -> list[str]:
    """Fields by their names in options.json, with two underscores for a dot."""
    now = copy.deepcopy(RUN)
    for name, value in changes.items():
        *path, last = name.split("__")
        place = now
        for step in path:
            place = place[step]
        place[last] = value
    return changed_options(RUN, now)


def test_the_same_is_the_same() -> None:
    assert changed() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"options__optimizer__rate": 0.1}, ["`lr` was 5e-05, now 0.1"]),
        (
            {"options__epochs": 3.0, "options__budget__steps": 6, "options__save_every": 9},
            ["`epochs` was 2.0, now 3.0"],
        ),
        ({"options__save_every": 9}, ["`save_every` was 2, now 9"]),
        ({"options__seed": 1, "from": "4567"}, ["`seed` was 0, now 1"]),
        ({"options__adversary": {"kind": "fgm", "epsilon": 1.0}}, ["`adversarial` was not given, now fgm"]),
        ({"options__low_rank": {"rank": 4, "alpha": None, "dropout": 0.0}}, ["`lora` was not given, now 4"]),
        ({"from": "4567", "recipe__encoder": {"width": 16}}, [START]),
        (
            {"data": [{"train": ["train.tsv", 60, {"text": "a"}], "dev": ["10% of train.tsv", 4, {}]}]},
            [
                "`train` was train.tsv (64 rows), now train.tsv (60 rows)",
                "`dev` was not given, now 10% of train.tsv (4 rows)",
            ],
        ),
        (
            {"recipe__objectives": [{"name": "classify", "stride": 3, "labels": ["a", "b"]}]},
            ["`stride` was not given, now 3"],
        ),
    ],
)
def test_users_see_the_names_of_options(changes: dict[str, Any], expected: list[str]) -> None:
    assert changed(**changes) == expected


def test_many_changes_are_counted() -> None:
    fields = {"seed": 1, "length": 9, "batch_rows": 2, "clip": 2, "patience": 1, "keep": 4, "log_every": 9}
    assert changed(**{f"options__{name}": value for name, value in fields.items()})[-1] == "and 2 more"


def test_every_name_is_an_option_and_every_field_has_one() -> None:
    jobs: list[type[Job]] = [PretrainJob, *map(FinetuneJob.for_task, FinetuneJob.tasks())]
    names = {one.name for job in jobs for one in job.options()}
    assert {*OPTION_OF.values(), *OBJECTIVE_OPTION_OF.values(), *DERIVED} - {""} <= names
    for spec in (PretrainOptions, FinetuneOptions):
        missing = [field for field in spec.model_fields if not any(f"options.{field}" in name for name in OPTION_OF)]
        assert missing == []
