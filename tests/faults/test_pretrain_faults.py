"""What can go wrong while a model is trained: kills at any moment, and more memory than a small machine has."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.faults.launching import Launcher, newest_checkpoint, records, wait_for

from bertie.data.corpus import write_shards
from bertie.data.shards import CorpusDocument
from bertie.text.tokenizers.tokenizer import load_tokenizer

STEPS = 400
GIGABYTE = 1 << 30


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
    more = f"--max-length 8 --batch-tokens 24 --held-out 10 --eval-every {STEPS // 2} --eval-rows 8"
    return ["pretrain", *given.split(), *more.split(), "--corpus", str(corpus), "--out", str(out)]


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    launched = Launcher(tmp_path / "printed")
    yield launched
    launched.end()


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
    assert f"continuing after step {reached[-1]}" in launcher.printed.read_text()

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
