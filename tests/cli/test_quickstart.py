"""`bertie quickstart` on a few texts: as its user sees it. Its parts are tested in tests/quickstart."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert

Run = Callable[..., CompletedProcess[str]]

ANIMALS = "The {} number {} sleeps in the barn. It eats grass in the morning, and it is old."
ENGINES = "The engine {1} of the {0} burns oil. It turns a wheel at night, and it is loud."
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "animals.txt", tmp_path / "engines.txt"]
    for file, sentence, names in zip(
        made, (ANIMALS, ENGINES), (("cow", "horse", "goat"), ("ship", "car", "mill")), strict=True
    ):
        file.write_text("\n\n".join(sentence.format(name, number) for name in names for number in range(40)))
    return made


def test_a_first_stage_alone(files: list[Path], tmp_path: Path, run_bertie: Run) -> None:
    out = tmp_path / "out"
    done = run_bertie("quickstart", "--text", files[0], "--until", "gather", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "120 texts" in done.stderr
    assert "$ bertie quickstart --until gather" in done.stderr
    assert len((out / "entries.jsonl").read_text().splitlines()) == 120
    again = run_bertie("quickstart", "--until", "gather", "--out", out)
    assert again.returncode == 0, "options that are not given keep their values"
    assert "Finished before" in again.stderr


def test_mistakes_are_one_sentence(files: list[Path], tmp_path: Path, run_bertie: Run) -> None:
    wrong = run_bertie("quickstart", "--until", "gathre", "--out", tmp_path / "out")
    assert wrong.returncode == 2
    assert "did you mean 'gather'" in wrong.stderr
    english = run_bertie("quickstart", "--language", "zh", "--out", tmp_path / "out")
    assert english.returncode == 2
    assert "give your own texts" in english.stderr
    both = run_bertie("quickstart", "--until", "gather", "--ask", "a goat", "--out", tmp_path / "out")
    assert both.returncode == 2 and "drop --until" in both.stderr
    empty = run_bertie("quickstart", "--ask", " ", "--out", tmp_path / "out")
    assert empty.returncode == 2 and "--ask is empty" in empty.stderr
    assert not (tmp_path / "out").exists()


def test_several_files_may_follow_text(files: list[Path], tmp_path: Path, run_bertie: Run) -> None:
    done = run_bertie("quickstart", "--text", *files, "--until", "gather", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "240 texts" in done.stderr


@pytest.mark.slow
def test_a_base_is_trained_further_and_answers(files: list[Path], tmp_path: Path, run_bertie: Run) -> None:
    words = sorted(
        {word for file in files for word in file.read_text().lower().replace(".", " ").replace(",", " ").split()}
    )
    base, out = tmp_path / "base", tmp_path / "out"
    vocabulary = [*SPECIAL, *words, ".", ",", ":"]
    Pretrained(Model.new(bert(SIZES["tiny"], vocab_size=len(vocabulary)))).save(base)
    (base / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    texts = ("--text", files[0], "--text", files[1])
    done = run_bertie("quickstart", *texts, "--base", base, "--minutes", "0.2", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "What was learned" in done.stdout
    assert "texts found by their summary" in done.stdout
    assert "Try next" in (out / "results.html").read_text()
    assert set(json.loads((out / "times.json").read_text())) == {"gather", "encode", "embed"}
    asked = run_bertie("quickstart", "--out", out, "--ask", "which goat is old?")
    assert asked.returncode == 0, asked.stderr
    assert "trained here" in asked.stdout
    assert "animals.txt" in asked.stdout
    assert "What was learned" not in asked.stdout


@pytest.mark.slow
def test_from_scratch_to_answers(files: list[Path], tmp_path: Path, run_bertie: Run) -> None:
    out = tmp_path / "out"
    done = run_bertie("quickstart", "--text", files[0], "--minutes", "0.2", "--out", out, "--ask", "a goat")
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) < 60, "a few lines per stage"
    log = (out / "log.txt").read_text()
    assert "pieces per word" in log and "tokens/s" in log, "the rest is in the log"
    assert "pieces per word" not in done.stdout + done.stderr
    assert (out / "pretraining/model/model.safetensors").exists()
    assert "a goat" in done.stdout


@pytest.mark.slow
def test_real_weights_have_a_column_where_they_are_installed(
    minilm: Path, files: list[Path], tmp_path: Path, run_bertie: Run
) -> None:
    done = run_bertie("quickstart", "--text", *files, "--minutes", "0.5", "--out", tmp_path / "out", "--ask", "a goat")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all-MiniLM-L6-v2") == 2, "in the scores, and in the answer"


@pytest.mark.slow
def test_a_killed_gathering_leaves_no_process_behind(tmp_path: Path) -> None:
    """Or else whoever reads its output would wait for ever."""
    words = [sys.executable, "-m", "bertie", "quickstart", "--until", "gather", "--out", str(tmp_path / "out")]
    started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    assert any("$ bertie quickstart" in line for line in started.stderr)
    time.sleep(3)  # until workers are at work
    started.kill()
    started.communicate(timeout=30)
