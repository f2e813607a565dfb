"""What can go wrong while a model is trained: kills at any moment, and more memory than a small machine has."""

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.data.corpus import write_shards
from bertie.data.shards import CorpusDocument
from bertie.text.tokenizer import load_tokenizer

STEPS = 400
GIGABYTE = 1 << 30
STEP = re.compile(rb'"event": "step", "step": (\d+),')


def make_corpus(folder: Path, vocab_size: int, num_documents: int, tokens: tuple[int, int]) -> Path:
    """Random words, so many of them in a document."""
    (folder / "tokenizer").mkdir(parents=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(vocab_size - 5))]
    (folder / "tokenizer" / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder / "tokenizer")
    assert tokenizer is not None
    rng = np.random.default_rng(0)
    documents = []
    for number in range(num_documents):
        length = int(rng.integers(*tokens))
        ids = rng.integers(5, vocab_size, length).astype(np.uint16)
        sentences = np.arange(0, length, 5, dtype=np.uint32)
        documents.append(CorpusDocument(ids, sentences, np.ones(length, bool), str(number)))
    write_shards(folder, documents, tokenizer)
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "c", 45, num_documents=80, tokens=(10, 40))


def words(corpus: Path, out: Path, save_every: int) -> list[str]:
    given = f"--recipe bert --size tiny --steps {STEPS} --save-every {save_every} --seed 1"
    more = f"--length 8 --batch-tokens 24 --held-out 10 --eval-every {STEPS // 2} --eval-rows 8"
    return ["pretrain", *given.split(), *more.split(), "--corpus", str(corpus), "--out", str(out)]


class Launcher:
    """Starts the command `bertie` again and again, each time in a new process that has torch loaded already: loading it
    would take longer than all else here."""

    SCRIPT = """
import json, os, sys
import torch._dynamo
import bertie.cli.pretrain
from bertie.cli.app import main
for line in sys.stdin:
    arguments, printed = json.loads(line)
    process = os.fork()
    if not process:
        os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(2, 1)
        main(arguments)
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""

    def __init__(self, printed: Path):
        self.printed = printed  # what the last command printed
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", self.SCRIPT]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout

    def start(self, arguments: list[str]) -> int:
        """Its process number."""
        self.requests.write(json.dumps([arguments, str(self.printed)]) + "\n")
        self.requests.flush()
        return int(self.answers.readline())

    def wait(self) -> int:
        """Its exit code."""
        return int(self.answers.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    launched = Launcher(tmp_path / "printed")
    yield launched
    launched.end()


def records(out: Path, event: str) -> list[dict[str, Any]]:
    log = out / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return [record for record in found if record["event"] == event]


def last_step(out: Path) -> int:
    """Asked hundreds of times a second: only the end of the log is read."""
    log = out / "log.jsonl"
    if not log.exists():
        return 0
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2000))
        found = STEP.findall(file.read())
    return int(found[-1]) if found else 0


def newest_checkpoint(out: Path) -> int:
    """0 where there is none. What a kill left half written has another name."""
    return max((int(path.name.removeprefix("step-")) for path in out.glob("checkpoints/step-*")), default=0)


def wait_for(out: Path, mark: int) -> None:
    """Until a step was logged. A mark that was passed before means: at once."""
    limit = time.monotonic() + 120
    while last_step(out) < mark:
        assert time.monotonic() < limit, "it does not get on"
        time.sleep(0.002)


# Every kill may cost an interval: so many of them must be short.
@pytest.mark.parametrize(("num_kills", "save_every"), [(4, 25), pytest.param(20, 5, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_in_the_same_bits(
    corpus: Path,
    launcher: Launcher,
    tmp_path: Path,
    run_bertie: Callable[..., subprocess.CompletedProcess[str]],
    num_kills: int,
    save_every: int,
) -> None:
    out, chance = tmp_path / "killed", random.Random(num_kills)
    arguments = words(corpus, out, save_every)
    reached = []  # the newest checkpoint after each kill
    for mark in sorted(chance.sample(range(STEPS - 20), num_kills)):
        process = launcher.start(arguments)
        wait_for(out, mark)
        time.sleep(chance.random() * 0.1)  # not only just after a step was logged
        os.kill(process, signal.SIGKILL)
        assert launcher.wait() == -signal.SIGKILL, "it was to be killed before its end"
        reached.append(newest_checkpoint(out))
    launcher.start(arguments)
    assert launcher.wait() == 0, launcher.printed.read_text()
    assert f"going on after step {reached[-1]}" in launcher.printed.read_text()

    whole = tmp_path / "whole"
    assert run_bertie(*words(corpus, whole, save_every)).returncode == 0
    weights = [(folder / "model" / "model.safetensors").read_bytes() for folder in (out, whole)]
    assert weights[0] == weights[1]

    resumed = [record["step"] for record in records(out, "resume")]
    # A process that was killed while it was starting resumed nothing.
    assert set(resumed) <= set(reached) and resumed[-1] == reached[-1]
    assert resumed == sorted(resumed)
    assert len(set(resumed)) >= num_kills // 2, "the kills were to be spread over the run"
    done = [record["step"] for record in records(out, "step")]
    assert sorted(set(done)) == list(range(1, STEPS + 1))
    assert len(done) <= 1.3 * STEPS


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to such a limit")
def test_a_small_model_trains_in_four_gigabytes(tmp_path: Path) -> None:
    """The vocabulary and the batch that people would use. The process cannot get more than that from the system."""
    corpus = make_corpus(tmp_path / "c", 30_522, num_documents=60, tokens=(500, 900))
    given = "--recipe bert --size mini --steps 100 --save-every 50 --held-out 10 --eval-rows 256"
    command = [sys.executable, "-m", "bertie.cli.app", "pretrain", *given.split()]
    folders = ["--corpus", str(corpus), "--out", str(tmp_path / "run")]
    done = subprocess.run([*command, *folders], capture_output=True, text=True, preexec_fn=hold_to_four_gigabytes)
    assert done.returncode == 0, done.stderr
    assert "100 steps" in done.stdout


def hold_to_four_gigabytes() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (4 * GIGABYTE, 4 * GIGABYTE))
