"""`bertie fill` as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Pretrained(Model.new(bert(SIZES["tiny"], vocab_size=len(WORDS)))).save(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return tmp_path


def test_candidates_of_each_gap_are_printed_best_first(run_bertie: Run, folder: Path) -> None:
    done = run_bertie("fill", str(folder), "the [MASK] [MASK]", "--top", "3", "--json")
    guesses = json.loads(done.stdout)
    assert [guess["gap"] for guess in guesses] == [0, 0, 0, 1, 1, 1]
    assert all(guess["token"] == WORDS[guess["id"]] for guess in guesses)
    first = [guess["probability"] for guess in guesses[:3]]
    assert first == sorted(first, reverse=True)
    lines = run_bertie("fill", str(folder), "the [MASK] sat", "--top", "2").stdout.splitlines()
    assert len(lines) == 2
    assert all("%" in line for line in lines)


def test_a_text_without_a_gap_is_refused(run_bertie: Run, folder: Path) -> None:
    done = run_bertie("fill", str(folder), "the cat sat")
    assert done.returncode == 2
    assert done.stderr.strip() == "the text has no [MASK]; put one where a word is missing"
