"""`bertie pretrain` under torchrun: two processes take the steps of one, and speak with one voice."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.data.corpus import write_shards
from bertie.data.shards import CorpusDocument
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
NUM_STEPS = 20
TORCHRUN = [
    *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"),
    *("--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "-m", "bertie"),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Documents of very different lengths, so that no two processes ever count the same."""
    folder = tmp_path / "corpus"
    tokenizer = wordpiece_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(40))])
    rng = np.random.default_rng(0)
    documents = []
    for number in range(80):
        length = int(rng.integers(8, 60))
        sentences, begins = np.arange(0, length, 4, dtype=np.uint32), np.ones(length, bool)
        documents.append(CorpusDocument(rng.integers(5, 45, length).astype(np.uint16), sentences, begins, str(number)))
    write_shards(folder, documents, tokenizer)
    tokenizer.save(folder / "tokenizer")
    return folder


def words(corpus: Path, out: Path) -> list[str]:
    """A recipe without dropout, whose two losses are divided by different counts: masked tokens, and rows."""
    given = f"--recipe albert --size tiny --steps {NUM_STEPS} --lr 2e-3 --seed 1 --precision float32"
    more = "--max-length 32 --batch-tokens 256 --micro-tokens 100 --held-out 10 --eval-rows 8 --save-every 10"
    return ["pretrain", *given.split(), *more.split(), "--corpus", str(corpus), "--out", str(out)]


def records(out: Path, event: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [record for record in found if record["event"] == event]


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one(run_bertie: Run, corpus: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    alone = run_bertie(*words(corpus, one))
    assert alone.returncode == 0, alone.stderr
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*TORCHRUN, *words(corpus, two)]
    together = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert together.returncode == 0, together.stderr[-2000:]

    dropouts = re.findall(r'"dropout": ([\d.]+)', (one / "options.json").read_text())
    assert dropouts and not any(map(float, dropouts)), "with dropout the two could not be compared"
    assert [records(out, "start")[0]["processes"] for out in (one, two)] == [1, 2]
    steps, others = records(one, "step"), records(two, "step")
    assert [record["step"] for record in others] == list(range(1, NUM_STEPS + 1)), "one of them writes the log"
    assert [record["tokens"] for record in others] == [record["tokens"] for record in steps]
    for name in ("loss", "masked_lm", "sentence_order", "norm"):
        expected = [record[name] for record in steps]
        assert [record[name] for record in others] == pytest.approx(expected, abs=1e-4, rel=0), name
    for name in ("loss", "masked_lm", "sentence_order"):
        measured = [records(out, "evaluation")[-1][name] for out in (one, two)]
        assert measured[0] == pytest.approx(measured[1], abs=1e-4, rel=0), name

    assert (two / "model" / "model.safetensors").exists()
    told = together.stdout.splitlines()
    assert len(told) == 1 and told[0].split(";")[0] == alone.stdout.split(";")[0].replace(str(one), str(two))
    assert together.stderr.count("computing in float32") == 1
