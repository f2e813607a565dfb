"""Jobs as values: flat options, groups, JSON, config files, and errors that name options."""

import json
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bertie.errors import InputError, SpecError
from bertie.jobs.finetuning.predict import PredictJob
from bertie.jobs.job import Group, Job, option, read_config
from bertie.jobs.options.toml import to_toml
from bertie.reporting.events import OnEvent, ignore


class Speed(Group):
    title: ClassVar[str] = "Speed"
    steps: int | None = option(None, "Steps.", ge=1)
    time: float | None = option(None, "Seconds.")
    ramp: int | None = option(None, "Needs steps.")


class Walk(Job):
    """Walk somewhere."""

    verb: ClassVar[str] = "walk"
    example: ClassVar[str] = "bertie walk there --steps 3"
    exclusive: ClassVar[Any] = (("steps", "time"),)
    requires: ClassVar[Any] = {"ramp": "steps"}
    where: str = option(help="Where to.", argument=True)
    fast: bool = option(False, "Run.")
    speed: Speed = Speed()

    def run(self, on_event: OnEvent = ignore) -> str:
        return f"{self.where} in {self.speed.steps}"


def test_flat_options_find_their_groups() -> None:
    job = Walk.of(where="home", steps=3, time=None)
    assert job == Walk(where="home", speed=Speed(steps=3))
    assert job.run() == "home in 3"


def test_options_by_group_and_flat_mix() -> None:
    assert Walk.from_options({"where": "home", "speed": {"steps": 3}}) == Walk.of(where="home", steps=3)


def test_a_job_is_json_and_back() -> None:
    job = Walk.of(where="home", steps=3, fast=True)
    assert Walk.from_options(json.loads(json.dumps(job.given()))) == job


def test_a_config_file_holds_what_was_given(tmp_path: Path) -> None:
    job = Walk.of(where='the "old" house\n', steps=3)
    file = tmp_path / "config.toml"
    file.write_text(to_toml(job.given()), encoding="utf-8")
    assert Walk.from_options(read_config(file)) == job
    assert "fast" not in file.read_text()


def test_a_config_file_may_be_flat_and_have_dashes(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('where = "home"\n[speed]\nsteps = 2\n')
    assert Walk.from_options(read_config(file)).speed.steps == 2
    file.write_text("where = ")
    with pytest.raises(InputError, match="TOML"):
        read_config(file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": "home", "step": 3}, "there is no option `step`; did you mean `steps`?"),
        ({"where": "home", "steps": 0}, "`steps`: input should be greater than or equal to 1"),
        ({"where": "home", "steps": 3, "time": 2}, "`steps` and `time` cannot both be given"),
        ({"where": "home", "ramp": 3}, "`ramp` needs `steps`"),
        ({"steps": 3}, "`where` is missing"),
    ],
)
def test_a_mistake_names_the_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        Walk.from_options(options)
    assert message in str(caught.value)


def test_rows_and_nested_options_go_through_a_config_file() -> None:
    rows = [{"text": 'a "b"', "label": "花", "other": None}]
    also = [{"task": "tag", "train": ["x.conll"]}]
    read = tomllib.loads(to_toml({"train": rows, "also": also}))
    assert read == {"train": [{"text": 'a "b"', "label": "花"}], "also": also}


def test_paths_that_no_file_can_have_are_refused_before_any_work(run_bertie: Any) -> None:
    long = "x" * 5000
    for words in (
        ("corpus", "build", long, "--tokenizer", "v", "--out", "c"),
        ("corpus", "build", "a.txt", "--tokenizer", long, "--out", "c"),
        ("corpus", "report", long),
        ("finetune", "classify", "--train", long, "--recipe", "bert"),
        ("runs", "show", long),
    ):
        done = run_bertie(*words)
        assert done.returncode == 2 and "the path is too long; give a shorter one" in done.stderr.replace("\n", " ")
    for given in (("corpus", "build", "", "--tokenizer", "v"), ("embed", "m", "a.txt", "--out", "")):
        assert "is empty" in run_bertie(*given).stderr


def test_long_texts_are_no_paths() -> None:
    job = PredictJob.of(model="m", input=["a long text " * 1000, "a\0b", ""])
    assert len(job.input) == 3
