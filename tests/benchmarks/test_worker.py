"""A contender's process: its talk, its sleep between turns, its death."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.worker import Worker


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker("loud", Path(sys.executable), "tests.benchmarks.loud_contender", {}, tmp_path / "log")
    yield worker
    worker.close()


def texts_file(folder: Path, *texts: str) -> str:
    file = folder / "texts.json"
    file.write_text(json.dumps(texts), encoding="utf-8")
    return str(file)


def test_prints_of_libraries_do_not_disturb_the_talk(worker: Worker, tmp_path: Path) -> None:
    saved = tmp_path / "vectors.npy"
    asked = {"texts": texts_file(tmp_path, "one two three", "four"), "settings": {"width": 5}, "save": str(saved)}
    answers = [worker.ask(asked), worker.ask(asked)]
    assert worker.versions == {"loud": "1"}
    assert [(answer["tokens"], answer["squares"]) for answer in answers] == [(4, 10)] * 2
    assert np.load(saved).shape == (2, 5)
    assert worker.log.read_text(encoding="utf-8").count("noise on stdout") == 2


def test_a_worker_is_stopped_between_turns(worker: Worker, tmp_path: Path) -> None:
    state = Path(f"/proc/{worker.process.pid}/stat")
    if not state.exists():
        pytest.skip("this system has no /proc")
    worker.ask({"texts": texts_file(tmp_path, "one"), "settings": {"width": 1}})
    assert state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"


def test_a_worker_that_dies_says_what_it_printed_last(worker: Worker, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"loud ended with code 3:\n(.*\n)*  it hurts"):
        worker.ask({"texts": texts_file(tmp_path, "die"), "settings": {"width": 1}})


def test_a_stopped_worker_ends_when_closed(worker: Worker) -> None:
    worker.close()
    assert worker.process.returncode == 0
