"""What can go wrong while a task is learned: kills at any moment, and a file that must not be loaded whole."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.faults.launching import Launcher, newest_checkpoint, records, wait_for

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

ROWS, BATCH, EPOCHS = 160, 4, 4
STEPS = ROWS * EPOCHS // BATCH


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(40))]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder)
    assert tokenizer is not None
    Pretrained(Model.new(bert(Size(depth=2, width=32, num_heads=2), tokenizer.size)), tokenizer).save(folder / "model")
    return folder / "model"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    lines = [f"w{number % 40} w{number * 7 % 40},{number % 3}" for number in range(ROWS)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    return path


def words(base: Path, rows: Path, out: Path, save_every: int) -> list[str]:
    given = f"--epochs {EPOCHS} --batch {BATCH} --lr 1e-3 --max-length 8 --seed 1 --save-every {save_every}"
    files = ["--base", base, "--train", rows, "--dev", rows, "--out", out]
    return ["finetune", "classify", *given.split(), *map(str, files)]


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    launched = Launcher(tmp_path / "printed")
    yield launched
    launched.end()


@pytest.mark.parametrize("num_kills", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_in_the_same_bits(
    base: Path,
    rows: Path,
    launcher: Launcher,
    tmp_path: Path,
    run_bertie: Callable[..., subprocess.CompletedProcess[str]],
    num_kills: int,
) -> None:
    out, chance = tmp_path / "killed", random.Random(num_kills)
    arguments = words(base, rows, out, save_every=7)
    for mark in sorted(chance.sample(range(STEPS - 10), num_kills)):
        process = launcher.start(arguments)
        wait_for(out, mark)
        time.sleep(chance.random() * 0.05)
        os.kill(process, signal.SIGKILL)
        assert launcher.wait() == -signal.SIGKILL, "it was to be killed before its end"
    newest = newest_checkpoint(out)
    launcher.start(arguments)
    assert launcher.wait() == 0, launcher.printed.read_text()
    assert f"continuing after step {newest}" in launcher.printed.read_text()
    whole = tmp_path / "whole"
    assert run_bertie(*words(base, rows, whole, save_every=7)).returncode == 0
    weights = [(folder / "model" / "model.safetensors").read_bytes() for folder in (out, whole)]
    assert weights[0] == weights[1]
    done = [record["step"] for record in records(out, "step")]
    assert sorted(set(done)) == list(range(1, STEPS + 1))


@pytest.mark.slow
def test_a_gigabyte_of_rows_is_not_loaded(base: Path, tmp_path: Path) -> None:
    """Rows of two lines, as people write them; the run takes three steps of them."""
    path = tmp_path / "rows.csv"
    row = '"w1 w2 ""w3""\nw4 %07d w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15",%d\n'
    with path.open("w") as file:
        file.write("text,label\n")
        number = 0
        while file.tell() < 1 << 30:
            file.write("".join(row % (one, one % 5) for one in range(number, number + 10_000)))
            number += 10_000
    epochs = 3 * 32 / number
    files = ["--base", base, "--train", path, "--out", tmp_path / "run", "--epochs", f"{epochs:.9f}"]
    command = [sys.executable, "-m", "bertie.cli.app", "finetune", "classify", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"of {number:,} rows, spread evenly" in done.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1.5 * (1 << 20), "kilobytes"
