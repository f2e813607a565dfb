"""`bertie finetune --features`: what is stored and reused, the default rate, and what makes no sense."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.jobs.finetuning.finetune_options import RATE, TOP_RATE
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

Call = Callable[..., subprocess.CompletedProcess[str]]
WORDS = ["anna", "went", "to", "rome", "the", "film", "was", "good", "bad"]
QUICK = ("--epochs", 12, "--batch", 8, "--max-length", 16)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder)
    assert tokenizer is not None
    recipe = bert(Size(depth=4, width=32, num_heads=2), tokenizer.size).changed({"encoder.initial_std": 0.1})
    Pretrained(Model.new(recipe), tokenizer).save(folder / "model")
    return folder / "model"


@pytest.fixture
def tagged(tmp_path: Path) -> Path:
    path = tmp_path / "train.conll"
    path.write_text("Anna B-PER\nwent O\nto O\nRome B-LOC\n\n" * 12 + "the O\nfilm O\n\n" * 12)
    return path


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    path = tmp_path / "train.tsv"
    rows = [f"the film was {'good' if number % 2 else 'bad'}\t{number % 2}" for number in range(16)]
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    return path


def rate(run: Path) -> float:
    found: float = json.loads((run / "options.json").read_text())["options"]["optimizer"]["rate"]
    return found


def test_tags_over_frozen_features_from_file_to_answer(
    base: Path, tagged: Path, run_bertie: Call, tmp_path: Path
) -> None:
    out = tmp_path / "runs" / "task"
    words = (
        "tag",
        "--base",
        base,
        "--train",
        tagged,
        "--dev",
        tagged,
        *QUICK,
        "--features",
        "concat4",
        "--top",
        "lstm",
    )
    done = run_bertie("finetune", *words, "--lr", 1e-2, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "f1 1.0000" in done.stdout and "features of 24 rows" in done.stderr
    assert len(list((out.parent / "features").glob("concat4-*.f32"))) == 1, "train and dev are the same rows"
    assert "bertie's own names" in done.stderr
    evaluated = run_bertie("evaluate", out, "--data", tagged, "--json")
    assert json.loads(evaluated.stdout)["f1"] == 1.0
    answered = run_bertie("predict", out, "Anna went to Rome")
    assert json.loads(answered.stdout)["tags"] == ["B-PER", "O", "O", "B-LOC"]
    again = run_bertie("finetune", *words, "--seed", 1, "--out", tmp_path / "runs" / "other")
    assert again.returncode == 0 and "are stored already" in again.stderr
    assert "the learning rate is 0.001, the default for frozen features" in again.stderr
    assert rate(out) == 1e-2 and rate(tmp_path / "runs" / "other") == TOP_RATE


def test_a_linear_top_over_several_seeds_and_a_store_of_its_own(
    base: Path, reviews: Path, run_bertie: Call, tmp_path: Path
) -> None:
    out, store = tmp_path / "task", tmp_path / "store"
    words = ("classify", "--base", base, "--train", reviews, "--epochs", 1, "--features", "weighted")
    done = run_bertie("finetune", *words, "--dev", reviews, "--seeds", 2, "--feature-store", store, "--out", out)
    assert done.returncode == 0, done.stderr
    assert len(list(store.glob("weighted-*.f32"))) == 1 and not (tmp_path / "features").exists()
    assert run_bertie("predict", out, "the film was good").returncode == 0
    more = run_bertie("finetune", *words, "--dev", reviews, "--seeds", 3, "--feature-store", store, "--out", out)
    assert more.returncode == 0 and "are stored already" in more.stderr, "the third seed reads them, too"
    whole = run_bertie("finetune", *words[:-2], "--out", tmp_path / "whole")
    assert whole.returncode == 0 and rate(tmp_path / "whole") == RATE


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--features", "lasst"), "--features: 'lasst' is not one of last"),
        (("--features", "last", "--top", "gru"), "there is no --top 'gru'; choose from linear, lstm"),
        (("--top", "lstm"), "--top needs --features"),
        (("--feature-store", "there"), "--feature-store needs --features"),
        (("--features", "last", "--adversarial", "fgm"), "--adversarial changes rows"),
        (("--features", "last", "--noise", "0.1"), "--noise changes rows"),
        (("--features", "last", "--lora", "4"), "--lora has no effect"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_sentence(
    base: Path, reviews: Path, run_bertie: Call, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = run_bertie("finetune", "classify", "--base", base, "--train", reviews, *words, "--out", tmp_path / "task")
    assert done.returncode == 2 and told in done.stderr
    assert not (tmp_path / "task").exists() and not (tmp_path / "features").exists()
