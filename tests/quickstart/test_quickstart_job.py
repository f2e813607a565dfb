"""The job `quickstart`: commands of stages as jobs, what goes to the log, and its JSON."""

import io
from pathlib import Path
from typing import Any

import pytest

from bertie.errors import SpecError
from bertie.jobs.embed import EmbedJob
from bertie.jobs.finetuning.finetune import FinetuneJob
from bertie.quickstart import quickstart_job
from bertie.quickstart.quickstart_job import QuickstartJob, job_of, run_command
from bertie.reporting.events import Event, OnEvent, message, progress


def test_words_of_a_command_are_a_job() -> None:
    words = "finetune similarity --siamese --base my-model --train a.jsonl --epochs 1.5 --max-length 64 --out run"
    job = job_of(words.split())
    assert isinstance(job, FinetuneJob)
    assert (job.task, job.task_options.siamese) == ("similarity", True)  # type: ignore[attr-defined]
    assert (job.training.epochs, job.data.max_length, job.output.out) == (1.5, 64, Path("run"))
    embed = job_of(["embed", "my-model", "texts.jsonl", "--out", "v.npy"])
    assert isinstance(embed, EmbedJob) and (embed.model, embed.texts) == ("my-model", (Path("texts.jsonl"),))


def test_what_a_command_reports_is_in_the_log_and_only_its_progress_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        def run(self, on_event: OnEvent) -> str:
            on_event(message("a detail"))
            on_event(progress("counting", 1, 2, "rows"))
            return "the result"

    monkeypatch.setattr(quickstart_job, "job_of", lambda words: Fake())
    log, shown = io.StringIO(), list[Event]()
    run_command(["embed"], log=log, on_event=shown.append)
    assert log.getvalue() == "a detail\nthe result\n"
    assert [event.kind for event in shown] == ["progress"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"until": "gathre"}, "did you mean 'gather'"),
        ({"until": "gather", "ask": ("x",)}, "drop `until`"),
        ({"ask": (" ",)}, "`ask` is empty"),
    ],
)
def test_mistakes_name_options(options: dict[str, Any], error: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=error):
        QuickstartJob.of(out=tmp_path / "out", **options).run()
    assert not (tmp_path / "out").exists()
